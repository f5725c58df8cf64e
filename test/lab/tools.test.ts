import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseGpuLook } from '../../src/knowledge/probes/gpus.ts';
import { Ledger, meminfo } from '../../src/lab/ledger.ts';
import { findStory, stories } from '../../src/lab/stories/index.ts';
import { GIB, type SmiState } from '../../src/lab/story.ts';
import { goTemplate } from '../../src/lab/tools/go-template.ts';
import { tools } from '../../src/lab/tools/index.ts';
import type { ToolAnswer, ToolCall } from '../../src/lab/tools/tool.ts';
import { sample } from '../probes/golden.ts';
import { type OpenLab, openLab, until } from './world-ssh.ts';

let lab: OpenLab;
beforeAll(async () => {
  lab = await openLab('two-sparks');
});
afterAll(async () => {
  await lab.close();
});

type Said = { readonly stdout: string; readonly stderr: string; readonly code: number };

async function call(line: string, more: Partial<ToolCall> = {}): Promise<Said> {
  const [tool = '', ...argv] = line.split(' ');
  let printed = '';
  const answer: ToolAnswer | undefined = await tools[tool]?.({
    host: lab.worker,
    argv,
    env: {},
    uid: 1000,
    ppid: process.pid,
    pid: process.pid,
    cwd: '/',
    input: '',
    inputEnded: false,
    print: (_stream, text) => {
      printed += text;
    },
    onSignal: () => undefined,
    gone: new AbortController().signal,
    ...more,
  });
  if (answer === undefined || !('code' in answer)) throw new Error(`${line} → ${JSON.stringify(answer)}`);
  return { ...answer, stdout: printed + answer.stdout };
}

describe('nvidia-smi', () => {
  it('prints no memory of the GPU’s own, as a GB10', async () => {
    const { stdout } = await call(
      'nvidia-smi --query-gpu=name,memory.total,memory.used,memory.free,driver_version --format=csv,noheader,nounits',
    );
    expect(stdout).toBe('NVIDIA GB10, [N/A], [N/A], [N/A], 580.159.03\n');
    const some = await call(
      'nvidia-smi --query-gpu=pci.device_id,compute_cap,addressing_mode,utilization.gpu --format=csv,noheader',
    );
    expect(some.stdout).toBe('0x2E1210DE, 12.1, ATS, 0 %\n');
  });

  const as = (smi: SmiState) => ({
    host: new Proxy(lab.worker, { get: (host, key) => (key === 'smi' ? smi : Reflect.get(host, key, host)) }),
  });

  it('prints what one GB10 printed, whatever memory there is', async () => {
    const { stdout } = await call(
      'nvidia-smi --query-gpu=name,memory.total,memory.used,memory.free --format=csv,noheader',
      as('prints-memory'),
    );
    expect(stdout).toBe('NVIDIA GB10, 95896 MiB, 0 MiB, 95896 MiB\n');
    expect((await call('nvidia-smi', as('prints-memory'))).stdout).toContain('0MiB / 95896MiB');
  });

  it('names its parts as driver 610 does', async () => {
    const { stdout } = await call('nvidia-smi --version', as('driver-610'));
    expect(stdout).toBe(
      `${sample('discrete/rtx2080s-d610-version.txt').trimEnd()}\nfirstlight lab stand-in\n`,
    );
    expect((await call('nvidia-smi', as('driver-610'))).stdout).toContain('KMD Version: 610.57.04');
    const query = await call('nvidia-smi --query-gpu=driver_version --format=csv,noheader', as('driver-610'));
    expect(query.stdout).toBe('610.57.04\n');
  });

  it('hangs until it is ended, and says each error in its own words', async () => {
    const gone = new AbortController();
    const hung = call('nvidia-smi -L', { ...as('hangs'), gone: gone.signal });
    gone.abort();
    expect((await hung).code).toBe(137);
    const said = async (smi: SmiState) => {
      const { stdout, code } = await call('nvidia-smi -L', as(smi));
      return parseGpuLook({
        code: 0,
        stdout: `code ${code}\n${stdout.trimEnd().replace(/^/gm, 'gpu ')}\nend\n`,
        stderr: '',
        timedOut: false,
      }).driver.trouble?.kind;
    };
    expect([await said('version-mismatch'), await said('driver-not-loaded'), await said('gpu-lost')]).toEqual(
      ['version-mismatch', 'no-driver', 'lost-gpu'],
    );
  });

  it('prints memory per process', async () => {
    const { stdout } = await call(
      'nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv',
    );
    expect(stdout).toMatch(/^pid, process_name, used_gpu_memory \[MiB\]\n/);
    expect(stdout).toMatch(/^\d+, ollama, 31232 MiB$/m);
  });

  it('refuses a field that it does not know, whole', async () => {
    const said = await call('nvidia-smi --query-gpu=name,colour --format=csv');
    expect(said).toMatchObject({ code: 2, stdout: 'Field "colour" is not a valid field to query.\n' });
  });
});

describe('docker', () => {
  it('lists and inspects what runs', async () => {
    const { stdout } = await call('docker ps -a --no-trunc --format json');
    expect(JSON.parse(stdout)).toMatchObject({ Names: 'comfyui', State: 'running' });
    const inspect = await call('docker inspect comfyui');
    expect(JSON.parse(inspect.stdout)[0]).toMatchObject({
      Name: '/comfyui',
      HostConfig: { RestartPolicy: { Name: 'always' }, AutoRemove: false },
      State: { Running: true },
    });
  });

  it('knows the images of the story, the same on every host, and pulls none', async () => {
    const [image] = lab.world.story.images;
    const line = `docker image inspect -f {{.Id}}/{{.Architecture}} ${image?.reference}`;
    const { stdout } = await call(line);
    expect(stdout).toMatch(/^sha256:[0-9a-f]{64}\/arm64\n$/);
    expect((await call(line, { host: lab.head })).stdout).toBe(stdout);
    expect(await call('docker run -d some/image')).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('No such image: some/image'),
    });
  });

  it('keeps a container’s output by line and time, and hands it out afterwards', async () => {
    const image = lab.world.story.images[0]?.reference ?? '';
    await call(`docker run --name talker ${image}`, {
      argv: ['run', '--name', 'talker', image, 'sh', '-c', 'echo one; echo two >&2; printf three; exit 3'],
    }).then((said) => expect(said.code).toBe(3));
    const { stdout } = await call('docker logs -f --timestamps talker');
    const stamp = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z`;
    expect(stdout).toMatch(new RegExp(`^${stamp} one$`, 'm'));
    expect(stdout.match(new RegExp(`^${stamp} (one|two|three)$`, 'gm'))).toHaveLength(3);
    expect((await call('docker inspect -f {{.State.Status}}/{{.State.ExitCode}} talker')).stdout).toBe(
      'exited/3\n',
    );
    expect((await call('docker wait talker')).stdout).toBe('3\n');
    expect(await call(`docker run --name talker ${image} sh`)).toMatchObject({ code: 125 });
    expect(await call('docker rm talker')).toMatchObject({ code: 0, stdout: 'talker\n' });
    expect((await call('docker inspect talker')).code).toBe(1);
  });

  it('follows a container that runs until it ends', async () => {
    const image = lab.world.story.images[0]?.reference ?? '';
    await call('docker run', {
      argv: ['run', '-d', '--rm', '--name', 'slow', image, 'sh', '-c', 'echo begun; exec sleep 30'],
    });
    const logs = call('docker logs -f slow');
    await until(
      () => lab.worker.docker.find('slow')?.log.lines.length ?? 0,
      (count) => count > 0,
    );
    expect(await call('docker stop -t 5 slow')).toMatchObject({ code: 0 });
    expect((await logs).stdout).toBe('begun\n');
    expect(lab.worker.docker.find('slow')).toBeUndefined();
  });

  it('refuses the same mount point twice, and a flag that it does not know', async () => {
    const image = lab.world.story.images[0]?.reference ?? '';
    expect((await call(`docker run -v /a:/m -v /b:/m ${image} sh`)).stderr).toMatch(
      /Duplicate mount point: \/m/,
    );
    expect(await call(`docker run --gpu all ${image} sh`)).toMatchObject({ code: 125 });
  });
});

describe('go templates', () => {
  it('prints paths, json, index, and refuses what it does not know', () => {
    const value = { A: { B: 'x', C: [1, 2] }, L: { 'com.x': 'y' } };
    expect(goTemplate('{{.A.B}} {{json .A.C}} {{index .L "com.x"}}', value)).toBe('x [1,2] y');
    expect(goTemplate('{{range .A.C}}<{{.}}>{{end}}{{if .L}}yes{{else}}no{{end}}', value)).toBe('<1><2>yes');
    expect(() => goTemplate('{{.A.D}}', value)).toThrow('map has no entry for key "D"');
  });
});

describe('systemctl', () => {
  it('shows what is asked for, and that a unit is not there', async () => {
    const { stdout } = await call('systemctl show -p Restart,FragmentPath,MainPID ollama.service');
    expect(stdout).toMatch(
      /^Restart=always\nMainPID=\d+\nFragmentPath=\/etc\/systemd\/system\/ollama.service\n$/,
    );
    expect((await call('systemctl show -p LoadState nothing')).stdout).toBe('LoadState=not-found\n');
    expect(await call('systemctl is-active nothing')).toMatchObject({ code: 3, stdout: 'inactive\n' });
  });

  it('lets nobody but root stop a unit of the system', async () => {
    const said = await call('systemctl stop ollama.service');
    expect(said.code).toBe(1);
    expect(said.stderr).toMatch(/^Failed to stop ollama.service: Interactive authentication required.\n/);
  });
});

describe('sudo', () => {
  it('asks for a password, and never without -S', async () => {
    expect(await call('sudo -n true')).toMatchObject({ code: 1, stderr: 'sudo: a password is required\n' });
    expect((await call('sudo true')).stderr).toMatch(/a terminal is required/);
  });

  it('reads one line at a time, and knows right from wrong', async () => {
    const ask = (input: string, inputEnded = false) =>
      tools['sudo']?.({ ...plainCall(['-S', '-p', '', '-v']), input, inputEnded });
    expect(ask('')).toEqual({ readLine: true, stderr: '' });
    expect(ask('wrong\n')).toEqual({ readLine: true, stderr: 'Sorry, try again.\n' });
    expect(ask('wrong\n', true)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('1 incorrect password attempt'),
    });
    expect(ask('a\nb\nc\n')).toMatchObject({ code: 1, stderr: 'sudo: 3 incorrect password attempts\n' });
    expect(ask('northern-light\n')).toMatchObject({ code: 0 });
    expect(tools['sudo']?.(plainCall(['-n', 'true']))).toMatchObject({ run: ['true'] });
    // The ticket is this parent's alone.
    expect(tools['sudo']?.({ ...plainCall(['-n', 'true']), ppid: 1 })).toMatchObject({ code: 1 });
  });

  it('gives a command root’s environment, and the lab’s own variables', () => {
    const env = { PATH: '/x', SECRET: 'y', FIRSTLIGHT_ROOT: '/r' };
    const set = tools['sudo']?.({ ...plainCall(['-n', 'A=b', 'env']), env });
    expect(set).toMatchObject({
      run: ['env'],
      env: { A: 'b', PATH: '/x', FIRSTLIGHT_ROOT: '/r', USER: 'root', FIRSTLIGHT_LAB_UID: '0' },
    });
    expect(JSON.stringify(set)).not.toContain('SECRET');
  });
});

function plainCall(argv: readonly string[]): ToolCall {
  return {
    host: lab.worker,
    argv,
    env: {},
    uid: 1000,
    ppid: process.pid,
    pid: process.pid,
    cwd: '/',
    input: '',
    inputEnded: false,
    print: () => undefined,
    onSignal: () => undefined,
    gone: new AbortController().signal,
  };
}

describe('ip and ss', () => {
  it('tell which interface leads to the peer, by name of this host’s own cage', async () => {
    const worker = JSON.parse((await call('ip -j route get 192.168.200.12')).stdout);
    expect(worker).toMatchObject([{ dev: 'enp1s0f1np1', prefsrc: '192.168.200.13' }]);
    const head = JSON.parse((await call('ip -j route get 192.168.200.13', { host: lab.head })).stdout);
    expect(head).toMatchObject([{ dev: 'enp1s0f0np0', prefsrc: '192.168.200.12' }]);
    expect((await call('ip route get 8.8.8.8')).stdout).toMatch(/via 10\.1\.231\.1 dev enP7s7/);
  });

  it('show who listens to root alone', async () => {
    expect((await call('ss -ltnpH')).stdout).toMatch(/127\.0\.0\.1:11434 +0\.0\.0\.0:\*$/m);
    expect((await call('ss -ltnpH', { uid: 0 })).stdout).toMatch(
      /:11434 .*users:\(\("ollama",pid=\d+,fd=7\)\)/,
    );
  });
});

describe('stand-ins', () => {
  it('say so in their versions', async () => {
    const line =
      'docker --version; systemctl --version; nvidia-smi --version; sudo --version; ip -V; hostname --version; id --version';
    const { stdout } = await lab.on('spark-a', line);
    expect(stdout.match(/firstlight lab stand-in/g)).toHaveLength(7);
  });

  it('answer as the host’s own files say', async () => {
    const { stdout } = await lab.on(
      'spark-b',
      'hostname -I; id -un; id -u; uname -m; getent hosts spark-b; getent passwd ollama',
    );
    expect(stdout).toBe(
      '10.1.231.181 192.168.200.13 192.168.201.13 aurora\n1000\naarch64\n127.0.1.1       spark-b\nollama:x:997:997:ollama:/usr/share/ollama:/bin/false\n',
    );
  });

  it('leave a script on standard input alone, and cost little', async () => {
    const script =
      'docker ps -q >/dev/null\nnvidia-smi -L >/dev/null\nsystemctl is-active ollama\necho end\n';
    const { stdout } = await lab.on('spark-b', 'sh -s', script);
    expect(stdout).toBe('active\nend\n');
  });

  it('run a command as root behind a password that stands on the input’s first line', async () => {
    const line = `sh -c "sudo -S -p '' -v && sudo -n id -u && cat"`;
    const said = await lab.on('spark-b', line, 'northern-light\nthe rest\n');
    expect(said).toMatchObject({ code: 0, stdout: '0\nthe rest\n', stderr: '' });
    expect(await lab.on('spark-b', line, 'wrong\n')).toMatchObject({ code: 1 });
  });
});

describe('the ledger', () => {
  const ledger = () =>
    new Ledger({
      totalBytes: 100 * GIB,
      systemBytes: 4 * GIB,
      cacheBytes: 80 * GIB,
      cacheLimitBytes: 110 * GIB,
      backAfter: () => 20,
      changed: () => undefined,
    });

  it('counts a GPU context against free memory alone, and lets what follows push the cache out', () => {
    const memory = ledger();
    expect(memory.hold('a', 20 * GIB, true)).toBe(false);
    expect(memory.hold('a', 3 * GIB, true)).toBe(true);
    expect(memory.hold('a', 60 * GIB, true)).toBe(true);
    expect(memory.snapshot.cacheBytes).toBeLessThan(40 * GIB);
    expect(memory.hold('b', 60 * GIB, false)).toBe(false);
  });

  it('gives memory back late', async () => {
    const memory = ledger();
    memory.hold('a', 10 * GIB, false);
    const { availableBytes } = memory.snapshot;
    memory.release('a');
    expect(memory.snapshot.availableBytes).toBe(availableBytes);
    await until(
      () => memory.snapshot.availableBytes,
      (bytes) => bytes === availableBytes + 10 * GIB,
    );
  });

  it('loses no byte', () => {
    const memory = ledger();
    memory.hold('a', 30 * GIB, false);
    memory.warm(50 * GIB);
    memory.dropCache('3');
    memory.warm(3 * GIB);
    const { totalBytes, freeBytes, cacheBytes, systemBytes, heldBytes } = memory.snapshot;
    expect(freeBytes + cacheBytes + systemBytes + heldBytes).toBe(totalBytes);
    expect(meminfo(memory.snapshot, 0)).toMatch(/^MemTotal: {7}104857600 kB\nMemFree:/);
  });
});

describe('seeds', () => {
  it('change names, users, addresses, ports and sizes, and keep what the story refers to', () => {
    for (const story of stories) {
      for (const seed of [2, 3, 4, 5, 6]) {
        const varied = findStory(story.name, seed);
        expect(varied).toEqual(findStory(story.name, seed));
        expect(varied.hosts[0]?.name).not.toBe(story.hosts[0]?.name);
        const known = varied.hosts.flatMap(({ name, holders }) =>
          holders.map((holder) => `${name} ${holder.name}`),
        );
        for (const { node, holder } of varied.consents) expect(known).toContain(`${node} ${holder}`);
        const nodes = varied.hosts.map(({ name }) => name);
        for (const turn of varied.timeline) {
          expect(nodes).toContain(turn.node);
          if ('startHolder' in turn) expect(known).toContain(`${turn.node} ${turn.startHolder}`);
        }
        for (const node of Object.keys(varied.passwords)) expect(nodes).toContain(node);
        expect(JSON.stringify(varied)).not.toContain('undefined');
      }
    }
  });

  it('keep two-sparks from fitting before it is cleared', () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const worker = findStory('two-sparks', seed).hosts[1];
      const held = worker?.holders.reduce((sum, holder) => sum + holder.gpuGiB + holder.residentGiB, 0) ?? 0;
      const left = (worker?.totalGiB ?? 0) - (worker?.systemGiB ?? 0) - held;
      expect(left).toBeLessThan(55);
      expect(left - (worker?.cacheGiB ?? 0)).toBeGreaterThan(0.5);
    }
  });
});
