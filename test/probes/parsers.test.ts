import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseContainers } from '../../src/knowledge/probes/containers.ts';
import { parseDisks } from '../../src/knowledge/probes/disks.ts';
import { parseEngines } from '../../src/knowledge/probes/engines.ts';
import { parseInterfaces } from '../../src/knowledge/probes/interfaces.ts';
import { parseMeminfo } from '../../src/knowledge/probes/meminfo.ts';
import { parseModelFolder } from '../../src/knowledge/probes/model-folder.ts';
import { parseOwnName } from '../../src/knowledge/probes/own-name.ts';
import { parseOwnRecords } from '../../src/knowledge/probes/own-records.ts';
import { parsePorts, plainPort } from '../../src/knowledge/probes/ports.ts';
import { readProcesses } from '../../src/knowledge/probes/process-reading.ts';
import { parseSudo } from '../../src/knowledge/probes/sudo.ts';
import { expectGolden, sample } from './golden.ts';
import { outputOf } from './output-of.ts';

describe('/proc/meminfo', () => {
  for (const file of readdirSync(new URL('../samples/sys', import.meta.url)).filter((name) =>
    name.startsWith('meminfo'),
  )) {
    it(`reads ${file}`, () => {
      expectGolden(file.replace('.txt', ''), parseMeminfo(outputOf(sample(`sys/${file}`))));
    });
  }

  it('is unknown without MemAvailable, which is not the same as nothing available', () => {
    expect(parseMeminfo(outputOf('MemTotal: 100 kB\nMemFree: 5 kB\n'))).toMatchObject({ known: false });
  });
});

describe('interfaces', () => {
  const peers = [
    { node: 'b', address: '192.168.200.13' },
    { node: 'self', address: '192.168.200.12' },
  ];
  it('reads ip -j addr of a Spark', () => {
    const route =
      '[{"dst":"192.168.200.13","dev":"enp1s0f0np0","prefsrc":"192.168.200.12","flags":[],"cache":[]}]';
    const own = '[{"type":"local","dst":"192.168.200.12","dev":"lo","prefsrc":"192.168.200.12"}]';
    const text = `sys enp1s0f0np0 9000 200000 up\nsys enp1s0f1np1 1500 -1 down\njson ${sample('net/ip-j-addr.shape.json')}\nroute 192.168.200.13 ${route}\nroute 192.168.200.12 ${own}\n`;
    expectGolden('interfaces', parseInterfaces(outputOf(text), peers));
  });

  it('reads the plain words of an ip that knows no -j', () => {
    const text = sample('net/ip-s-link-gb10-no-cable.txt').replace(/^/gm, 'text ');
    const tunnel =
      'text 9: tun0: <POINTOPOINT,UP,LOWER_UP> mtu 1400 qdisc\ntext     inet 10.0.0.2 peer 10.0.0.1/32 scope global tun0\ntext     inet6 fe80::1/64 scope link\n';
    const route = 'route 192.168.200.13 192.168.200.13 via 10.0.0.1 dev enP7s7 src 10.0.0.2 uid 0\n';
    const addressed = `${text}\n${tunnel}${route}`;
    expectGolden('interfaces-plain', parseInterfaces(outputOf(addressed), peers));
  });

  it('tells by the subnet what is reached where the host had no time to ask for routes', () => {
    const text = `json ${sample('net/ip-j-addr.shape.json')}\n`;
    const facts = parseInterfaces(outputOf(text, { timedOut: true }), peers);
    const asked = parseInterfaces(outputOf(`${text}route 192.168.200.13 \n`), peers);
    const reaches = (of: typeof facts): readonly string[] =>
      of.known ? of.value.flatMap((each) => each.reaches) : [];
    expect(reaches(facts)).toEqual(['b']);
    expect(reaches(asked)).toEqual([]);
  });

  it('tells a link that somebody has set down from one without a carrier', () => {
    const json =
      'json [{"ifname":"down0","flags":["BROADCAST"],"operstate":"DOWN"},{"ifname":"bare0","flags":["NO-CARRIER","UP"],"operstate":"DOWN"}]\n';
    const plain = 'text 2: down0: <BROADCAST> mtu 1500\ntext 3: bare0: <NO-CARRIER,BROADCAST,UP> mtu 1500\n';
    for (const text of [json, plain]) {
      const facts = parseInterfaces(outputOf(text), []);
      const seen = facts.known ? facts.value.map(({ name, up, setDown }) => ({ name, up, setDown })) : [];
      expect(seen).toEqual([
        { name: 'down0', up: false, setDown: true },
        { name: 'bare0', up: false, setDown: undefined },
      ]);
    }
  });

  it('says what is missing where there is no ip', () => {
    expect(parseInterfaces(outputOf('missing ip\n'), [])).toEqual({
      known: false,
      why: 'the program `ip` is not installed: addresses cannot be read',
    });
  });
});

describe('listening ports', () => {
  const read = (text: string) => {
    const ports = parsePorts(outputOf(text === '' ? '' : `${text}D\n`));
    return ports.known
      ? ports.value
          .map(plainPort)
          .map(({ address, port, pid }) => [address, port, pid.known ? pid.value : '?'])
      : ports.why;
  };
  it('reads /proc/net/tcp where there is no ss', () => {
    expect(
      read(
        'L read tcp\nL hex 0100007F:1F90\nL hex 00000000:0016\nL hex 00000000000000000000000000000000:7530\nL hex 00000000000000000000000001000000:0CEA\nL hex 0000000000000000FFFF00000100007F:0035\nL hex 000080FE00000000FF0202005452FEFF:0222\n',
      ),
    ).toEqual([
      ['127.0.0.1', 8080, '?'],
      ['0.0.0.0', 22, '?'],
      ['::', 30000, '?'],
      ['::1', 3306, '?'],
      ['::ffff:127.0.0.1', 53, '?'],
      ['fe80::2:2ff:fffe:5254', 546, '?'],
    ]);
  });
  it('reads rows of ss with names that try to be more', () => {
    expect(
      read(
        'L read ss\nL ss LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:*\nL ss LISTEN 0 5 [::1]:9 [::]:* users:(("a",pid=1,fd=2)",pid=77,fd=3))\nL ss State Recv-Q\n',
      ),
    ).toEqual([
      ['127.0.0.53', 53, '?'],
      ['::1', 9, 1],
    ]);
  });
  it('knows that nothing listens from not having looked', () => {
    expect(read('L read tcp\n')).toEqual([]);
    expect(read('')).toContain('listening ports');
  });
});

describe('containers', () => {
  it('tells a refusal from a daemon that does not run', () => {
    const denied =
      'refused docker permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock';
    expect(parseContainers(outputOf(`${denied}\nnone podman\n`))).toEqual({
      known: false,
      why: 'docker refuses this user: it is not in the group docker',
    });
    expect(
      parseContainers(
        outputOf(
          'refused docker Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n',
        ),
      ),
    ).toEqual({ known: false, why: 'the daemon of docker does not run' });
  });
  it('knows a host without any runtime to have none', () => {
    expect(parseContainers(outputOf('none docker\nnone podman\nend\n'))).toEqual({ known: true, value: [] });
  });
  it('lists a container once where docker is podman', () => {
    const one = `["${'a'.repeat(64)}","x","i","running",5,"no",true,null,null]`;
    const seen = parseContainers(
      outputOf(`asked docker\none docker ${one}\nasked podman\none podman ${one}\nend\n`),
    );
    expect(seen).toMatchObject({ value: [{ runtime: 'podman', autoRemove: true, labels: {} }] });
    expect(seen.known && seen.value.length).toBe(1);
  });
});

describe('sudo', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['root\n', 'free'],
    ['code 0\n\n', 'free'],
    [`code 1\n${sample('errors/sudo-password-required.stderr.txt')}`, 'password'],
    ['code 1\nsudo: interactive authentication is required\n', 'password'],
    [`code 1\n${sample('errors/sudo-no-new-privileges.stderr.txt')}`, 'none'],
    ['code 1\naurora is not in the sudoers file.\n', 'none'],
    ['missing\n', 'none'],
  ];
  for (const [text, expected] of cases) {
    it(`${text.trim().replace('\n', ' ')} means ${expected}`, () => {
      expect(parseSudo(outputOf(text))).toEqual({ known: true, value: expected });
    });
  }
  it('is unknown by what it said otherwise', () => {
    expect(parseSudo(outputOf('code 1\nsudo: unable to resolve host\n'))).toEqual({
      known: false,
      why: 'sudo: unable to resolve host',
    });
  });
});

describe('the rest', () => {
  it('reads df whatever blanks its first column holds', () => {
    const text =
      'root /dev/nvme0n1p2 960302096 171264048 740182584 19% /\npath /home/a\nhome my share 100 90 -5 101% /home\nmodel \n';
    expect(parseDisks(outputOf(text), '/m')).toEqual({
      known: true,
      value: [
        { path: '/', totalBytes: 960302096 * 1024, freeBytes: 740182584 * 1024 },
        { path: '/home/a', totalBytes: 102400, freeBytes: 0 },
      ],
    });
  });

  it('takes the hosts file where the resolver hangs', () => {
    expect(parseOwnName(outputOf('file 127.0.1.1\nfile 127.0.1.1\n', { timedOut: true }))).toEqual({
      known: true,
      value: ['127.0.1.1'],
    });
    expect(parseOwnName(outputOf('', { timedOut: true }))).toEqual({
      known: false,
      why: 'the resolver gave no answer in time',
    });
    expect(parseOwnName(outputOf('file 127.0.1.1\nname 10.0.0.1\n'))).toEqual({
      known: true,
      value: ['10.0.0.1'],
    });
  });

  it('tells an absent folder from one that is closed', () => {
    expect(parseModelFolder(outputOf('absent\n'), '/m')).toEqual({
      known: true,
      value: { present: false, path: '/m' },
    });
    expect(parseModelFolder(outputOf('closed\n'), '/m')).toMatchObject({ known: false });
    expect(parseModelFolder(outputOf('no-folder\n'), '/m')).toMatchObject({ known: false });
    expect(parseModelFolder(outputOf('present\nF 5 81a4 a\n', { timedOut: true }), '/m')).toMatchObject({
      value: { present: true, config: { known: false, why: 'reading the folder took too long' } },
    });
    expect(parseModelFolder(outputOf('present\nK here\n{"a": \n'), '/m')).toMatchObject({
      value: { config: { known: false } },
    });
  });

  it('knows an image that is not there from a docker that does not answer', () => {
    const request = {
      modelPath: undefined,
      images: [{ engine: 'sglang' as const, image: 'i' }],
      programs: [],
      peers: [],
    };
    expect(
      parseEngines(outputOf('image 0 1 \nimage 0 1 Error response from daemon: No such image: i\n'), request),
    ).toEqual({ known: true, value: [] });
    expect(parseEngines(outputOf('image 0 1 permission denied\n'), request)).toMatchObject({ known: false });
    expect(parseEngines(outputOf('image 0 127 sh: docker: not found\n'), request)).toEqual({
      known: false,
      why: 'docker is not installed',
    });
    const podman = { ...request, runtime: 'podman' as const };
    expect(parseEngines(outputOf('image 0 127 sh: podman: not found\n'), podman)).toEqual({
      known: false,
      why: 'podman is not installed',
    });
    const id = 'a'.repeat(64);
    expect(parseEngines(outputOf(`image 0 0 ${id} amd64\n`), podman)).toMatchObject({
      value: [{ where: { in: 'podman', imageId: id, arch: 'amd64' } }],
    });
  });

  it('reads a lock that is being taken as a lock', () => {
    expect(parseOwnRecords(outputOf('read\nlock 3 \nend\n'))).toMatchObject({
      value: { lock: { value: { owner: 'unknown', ageSeconds: 3 } } },
    });
    expect(parseOwnRecords(outputOf('read\nlock -3 {"owner":"a"}\nend\n'))).toMatchObject({
      value: { lock: { value: { owner: 'a', ageSeconds: 0 } } },
    });
    expect(parseOwnRecords(outputOf('read\nnolock\nend\n'))).toMatchObject({
      value: { lock: { known: false, why: expect.stringContaining('/tmp takes no files') } },
    });
    expect(parseOwnRecords(outputOf('read\n', { timedOut: true }))).toMatchObject({ known: false });
  });

  it('tells where the server of a rank answers, under which name and with which key', () => {
    const service = {
      name: 'qwen-r0',
      engine: 'vllm',
      health: { address: '192.168.200.12', port: 30000 },
      servedName: 'qwen',
      apiKeyEnv: 'KEY',
    };
    const told = (record: object): unknown => {
      const facts = parseOwnRecords(
        outputOf(`read\nrank /x/qwen-r0\nservice ${JSON.stringify(record)}\nrunner alive 7\nend\n`),
      );
      return facts.known ? facts.value.ranks[0] : undefined;
    };
    expect(told(service)).toMatchObject({
      health: { address: '192.168.200.12', port: 30000 },
      servedName: 'qwen',
      apiKeyEnv: 'KEY',
    });
    expect(Object.keys(told({ name: 'qwen-r1', engine: 'vllm' }) ?? {})).not.toContain('health');
  });

  it('keeps what /proc told where nvidia-smi hangs', () => {
    const reading = readProcesses(
      outputOf('P 5 1 5 5 0 900000 77 python3\nC 5 0::/\nX 5 1 python3\u0001\nD\n', { timedOut: true }),
    );
    expect(reading).toMatchObject({
      known: true,
      value: { gpuBytes: { known: false, why: 'nvidia-smi gave no answer in time' } },
    });
    expect(reading.known && reading.value.details.get(5)?.args).toEqual(['python3']);
  });
});
