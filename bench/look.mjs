// What the looking costs: firstlight's full look beside the same script by parallel ssh (the limit), `true`, and
// the peers, on 2, 16 and 64 real sshd hosts behind one head, cold and over open connections, in one run.
// Needs root. `npm run bench:look [-- 2 16 64]`. Peers that are not installed are told as such.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HOSTS = join(ROOT, 'bench', 'look-hosts.sh');
const sizes = process.argv.slice(2).map(Number).filter(Boolean);
const counts = sizes.length > 0 ? sizes : [2, 16, 64];

if (process.getuid() !== 0) {
  console.error('the hosts of this bench are network namespaces: run it as root');
  process.exit(2);
}

const { probesFor, probeHeader } = await import('../dist/knowledge/probes/index.js');
const { probesScript } = await import('../dist/remote/run-probes.js');
const request = { modelPath: undefined, images: [], programs: [], peers: [] };
const script = probesScript(probesFor(request), probeHeader(request));

for (const count of counts) await measure(count);

async function measure(count) {
  const dir = mkdtempSync(join(tmpdir(), 'flb-'));
  const prefix = `flb${process.pid}`;
  try {
    execFileSync('bash', [HOSTS, 'up', dir, prefix, String(count)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const setting = prepare(dir, prefix, count);
    console.log(`\n${count} hosts behind one head          wall s   cpu s   peak MB   failed logins`);
    for (const warm of [false, true]) {
      for (const [name, command] of commands(setting)) {
        if (command === undefined) {
          if (!warm) console.log(`${name.padEnd(34)} not installed`);
          continue;
        }
        if (warm)
          await run(setting, command); // opens what stays open
        else closeAll(setting);
        const before = failedLogins(setting);
        const figures = await run(setting, command);
        print(`${warm ? 'open' : 'cold'}  ${name}`, figures, failedLogins(setting) - before);
      }
      closeAll(setting);
    }
  } finally {
    spawnSync('bash', [HOSTS, 'down', dir, prefix]);
    rmSync(dir, { recursive: true, force: true });
  }
}

function prepare(dir, prefix, count) {
  const key = readFileSync(join(dir, 'host_key.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
  const address = (n) => (n === 1 ? '10.1.230.180' : `192.168.200.${10 + n}`);
  const names = Array.from({ length: count }, (_, index) => address(index + 1));
  writeFileSync(join(dir, 'known_hosts'), names.map((name) => `${name} ${key}\n`).join(''));
  const common = `  User root
  IdentityFile ${dir}/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile ${dir}/known_hosts
  KexAlgorithms ^curve25519-sha256
  BatchMode yes
`;
  mkdirSync(join(dir, 's'), { mode: 0o700 });
  // The limit and the peers get the same advantage: one master a host, the workers' logins through the head's.
  writeFileSync(
    join(dir, 'ssh_config'),
    `Host 10.1.230.180\n${common}Host 192.168.200.*\n  ProxyCommand ssh -F ${dir}/ssh_config -W [%h]:%p 10.1.230.180\n${common}Host *\n  ControlMaster auto\n  ControlPath ${dir}/s/%h\n  ControlPersist 60\n`,
  );
  writeFileSync(join(dir, 'plain_config'), common.replace(/^/, 'Host *\n'));
  const nodes = names.map(
    (name, index) => `  - {name: h${index + 1}, ssh: ${name}${index > 0 ? ', jump: h1' : ''}}`,
  );
  writeFileSync(
    join(dir, 'cluster.yaml'),
    `cluster: bench\nsshConfig: ./plain_config\ndefaults: {user: root}\nnodes:\n${nodes.join('\n')}\n`,
  );
  writeFileSync(join(dir, 'names'), `${names.join('\n')}\n`);
  writeFileSync(join(dir, 'script'), script);
  writeFileSync(
    join(dir, 'hosts.ini'),
    names
      .map(
        (name) =>
          `${name} ansible_ssh_common_args="-F ${dir}/ssh_config" ansible_python_interpreter=/usr/bin/python3\n`,
      )
      .join(''),
  );
  return { dir, prefix, count };
}

function commands({ dir, count }) {
  const each = (what) => `xargs -P ${count} -I{} sh -c '${what}' <${dir}/names`;
  const first = `ssh -F ${dir}/ssh_config 10.1.230.180 true; `;
  const has = (program) => existsSync(`/usr/bin/${program}`);
  return [
    [
      'firstlight check',
      `${process.execPath} ${ROOT}/dist/main.js --cluster ${dir}/cluster.yaml check --json >${dir}/out`,
    ],
    [
      'same script, parallel ssh (limit)',
      first + each(`ssh -F ${dir}/ssh_config {} sh <${dir}/script >${dir}/out-{}`),
    ],
    ['true, parallel ssh', first + each(`ssh -F ${dir}/ssh_config {} true </dev/null`)],
    [
      'pdsh',
      has('pdsh')
        ? `PDSH_SSH_ARGS_APPEND="-F ${dir}/ssh_config" pdsh -R ssh -f ${count} -w ^${dir}/names 'cat /proc/meminfo' >${dir}/out`
        : undefined,
    ],
    [
      'clush',
      has('clush')
        ? `clush -f ${count} -o "-F ${dir}/ssh_config" -b --hostfile ${dir}/names 'cat /proc/meminfo' >${dir}/out`
        : undefined,
    ],
    [
      'ansible facts',
      has('ansible')
        ? `ANSIBLE_HOST_KEY_CHECKING=False ansible -i ${dir}/hosts.ini -f ${count} -m setup all >${dir}/out`
        : undefined,
    ],
  ];
}

/** Wall and CPU of the whole tree as the shell's own accounting tells, and the peak of its summed resident memory. */
function run({ dir, prefix }, command) {
  return new Promise((resolve) => {
    const env = {
      ...process.env,
      HOME: dir,
      FIRSTLIGHT_HOME: join(dir, 'state'),
      XDG_RUNTIME_DIR: join(dir, 'run'),
    };
    const started = performance.now();
    const child = spawn(
      'nsenter',
      [
        `--net=/run/netns/${prefix}-ctl`,
        'bash',
        '-c',
        `${command}; code=$?; times >${dir}/times; exit $code`,
      ],
      { env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let peak = 0;
    const timer = setInterval(() => {
      peak = Math.max(peak, residentOf(dir));
    }, 25);
    let text = '';
    child.stderr.on('data', (data) => {
      text += data;
    });
    child.on('exit', (code) => {
      clearInterval(timer);
      const times = readFileSync(join(dir, 'times'), 'utf8').match(/\d+m[\d.]+s/g) ?? [];
      const seconds = times.reduce(
        (sum, time) => sum + Number(time.split('m')[0]) * 60 + Number.parseFloat(time.split('m')[1]),
        0,
      );
      resolve({ wall: (performance.now() - started) / 1000, cpu: seconds, peak, code, text });
    });
  });
}

/** Summed anonymous memory of every process whose HOME is this bench's: the controller's side, masters included. */
function residentOf(dir) {
  let sum = 0;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${dir}\0`)) continue;
      sum += Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
    } catch {
      // It ended meanwhile.
    }
  }
  return sum / 1024;
}

function closeAll({ dir, prefix }) {
  for (const folder of [join(dir, 's'), join(dir, 'run', 'firstlight')]) {
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder)) {
      if (/\.(conf|log)$/.test(name)) continue;
      spawnSync('nsenter', [
        `--net=/run/netns/${prefix}-ctl`,
        'ssh',
        '-F',
        join(dir, 'ssh_config'),
        '-O',
        'exit',
        '-S',
        join(folder, name),
        'x',
      ]);
    }
  }
}

/** Connections that the servers dropped before a login, from their own logs. */
function failedLogins({ dir, count }) {
  let sum = 0;
  for (let n = 1; n <= count; n += 1) {
    const text = readFileSync(join(dir, `sshd-${n}.log`), 'utf8');
    sum += (
      text.match(/drop connection|exceeded MaxStartups|beginning MaxStartups throttling|no more sessions/g) ??
      []
    ).length;
  }
  return sum;
}

function print(name, { wall, cpu, peak, code, text }, failed) {
  const wrong =
    code === 0 || name.includes('firstlight') ? '' : `   exit ${code}: ${text.trim().split('\n').at(-1)}`;
  console.log(
    `${name.padEnd(40)} ${wall.toFixed(2).padStart(7)} ${cpu.toFixed(2).padStart(7)} ${peak.toFixed(0).padStart(8)} ${String(failed).padStart(8)}${wrong}`,
  );
}
