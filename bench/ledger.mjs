// What the ledger of a node costs on the node: one look of `firstlight memory` as it is sent, beside nvidia-smi's own
// time for the same questions, interleaved in one run. `npm run bench:ledger [-- ROUNDS]`; never a timed test.
// Without an NVIDIA driver a stand-in answers as a GB10, and without docker one answers as docker; both are said so.
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
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

const ROUNDS = Number(process.argv[2] ?? 30);
const AIM_MS = 150;
/** A Spark at rest has some 300 processes beside the kernel's own threads. */
const PROCESSES = 300;
const HOLDERS = 3;
/** What the look asks of GPUs, one after the other. */
const GPU_QUERIES = [
  '--query-gpu=index,uuid,pci.device_id,memory.total,memory.free,driver_version,mig.mode.current,name',
  '--query-gpu=index,utilization.gpu,temperature.gpu,power.draw,clocks.sm',
];

const DIST = process.env.FIRSTLIGHT_DIST ?? fileURLToPath(new URL('../dist', import.meta.url));
const { lookAtMemory } = await import(join(DIST, 'operations/look.js'));
const { nodeMemory } = await import(join(DIST, 'planning/node-memory.js'));

const dir = mkdtempSync(join(tmpdir(), 'fl-ledger-'));
const bin = join(dir, 'bin');
mkdirSync(bin);
const children = [];
try {
  const real = has('nvidia-smi');
  if (!real) tool('nvidia-smi', standInSmi());
  if (!has('docker')) tool('docker', 'sleep 0.03; case $1 in ps) : ;; inspect) : ;; esac');
  await crowd();
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOME: dir, FIRSTLIGHT_ROOT: '' };
  const shells = [
    ['sh'],
    ...(existsSync('/usr/bin/busybox') || existsSync('/bin/busybox') ? [['busybox', 'sh']] : []),
  ];
  const count = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length;
  console.log(
    `${ROUNDS} looks at this host: ${count} processes, ${HOLDERS} large ones, nvidia-smi ${real ? 'real' : 'a stand-in of 60 ms'}, docker ${has('docker') ? 'real' : 'a stand-in of 30 ms a call'}`,
  );
  for (const shell of shells) await measure(shell, env);
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
}

async function measure(shell, env) {
  const whole = [];
  const own = [];
  const read = [];
  const cpu = [];
  let trips = 0;
  const node = { name: 'here', ssh: 'here' };
  const host = {
    node,
    connect: async () => undefined,
    leave: async () => undefined,
    run: () => {
      throw new Error('a look is one stream');
    },
    // The time on the node: from the first byte of the script to the end of the shell.
    stream: (command, { stdout }) =>
      new Promise((resolve) => {
        trips += 1;
        const started = performance.now();
        const child = spawn(
          'sh',
          ['-c', `"$@"; times >'${dir}/times'`, 'sh', ...shell, ...command.argv.slice(1)],
          {
            env,
            stdio: ['pipe', 'pipe', 'ignore'],
          },
        );
        child.stdout.on('data', stdout);
        child.on('close', (code) => {
          whole.push(performance.now() - started);
          cpu.push(cpuMs());
          resolve({ kind: 'ran', code: code ?? 255, stdout: '', stderr: '', milliseconds: 0 });
        });
        child.stdin.end(command.stdin);
      }),
  };
  const world = {
    hosts: { of: () => host },
    clock: { now: Date.now },
    signal: new AbortController().signal,
  };
  let facts;
  for (let round = -1; round < ROUNDS; round += 1) {
    const ownTime = await smi(env);
    const before = performance.now();
    [facts] = await lookAtMemory(world, [node]);
    nodeMemory(facts, undefined);
    const all = performance.now() - before;
    if (round < 0) {
      // The first one reads programs from the disk.
      whole.length = 0;
      cpu.length = 0;
      trips = 0;
      continue;
    }
    own.push(ownTime);
    read.push(all - whole.at(-1));
  }
  const holders = facts.reached && facts.holders.known ? facts.holders.value.length : 0;
  if (!facts.memory.known || holders < HOLDERS)
    throw new Error('the look did not see the memory of this host');
  const beyond = whole.map((time, at) => time - own[at]);
  const ratio = middle(whole) / middle(own);
  console.log(`\n${shell.join(' ')}`);
  console.log(`  round trips a look            ${(trips / ROUNDS).toFixed(0)}`);
  row('one look on the node', whole);
  row("nvidia-smi's own, all calls", own);
  row('beyond nvidia-smi', beyond, `aim ${AIM_MS}: ${middle(beyond) < AIM_MS ? 'held' : 'missed'}`);
  console.log(`  look / nvidia-smi             ${ratio.toFixed(2)}`);
  row('CPU of a look on the node', cpu, 'nvidia-smi included');
  row('parsing and judging, here', read);
}

/** CPU of the last look and of all that it waited for, as the shell's own accounting tells. */
function cpuMs() {
  const seconds = (readFileSync(join(dir, 'times'), 'utf8').match(/\d+m[\d.]+s/g) ?? []).map(
    (time) => Number(time.split('m')[0]) * 60 + Number.parseFloat(time.split('m')[1]),
  );
  return seconds.reduce((sum, time) => sum + time, 0) * 1000;
}

/** nvidia-smi's own time for what a look asks it: what it says of GPUs beside what it says of processes, as in a look. */
async function smi(env) {
  const started = performance.now();
  const ask = (query) =>
    new Promise((resolve) => {
      spawn('nvidia-smi', [query, '--format=csv,noheader,nounits'], { env, stdio: 'ignore' }).on(
        'close',
        resolve,
      );
    });
  const gpus = async () => {
    for (const query of GPU_QUERIES) await ask(query);
  };
  await Promise.all([gpus(), ask('--query-compute-apps=pid,gpu_uuid,used_memory,process_name')]);
  return performance.now() - started;
}

async function crowd() {
  for (let at = 0; at < PROCESSES; at += 1)
    children.push(spawn('sleep', ['600'], { stdio: 'ignore', detached: true }));
  const hold = 'const b = Buffer.alloc(300 * 2 ** 20, 1); console.log("up"); setInterval(() => b[0], 1e6);';
  for (let at = 0; at < HOLDERS; at += 1) {
    const child = spawn(process.execPath, ['-e', hold], { stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    await new Promise((resolve) => child.stdout.once('data', resolve));
  }
}

function standInSmi() {
  return `sleep 0.06
case $1 in
--query-gpu=index,util*) echo '0, 0, 42, 10.20, 208' ;;
--query-gpu=*) echo '0, GPU-00000000-0000-0000-0000-000000000000, 0x2E1210DE, [N/A], [N/A], 580.159.03, [N/A], NVIDIA GB10' ;;
esac`;
}

function tool(name, body) {
  writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`);
  chmodSync(join(bin, name), 0o755);
}

function has(name) {
  return spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0;
}

function row(name, times, more = '') {
  const sorted = [...times].sort((a, b) => a - b);
  const high = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] ?? 0;
  console.log(
    `  ${name.padEnd(30)}${middle(times).toFixed(0).padStart(5)} ms   95th ${high.toFixed(0).padStart(5)} ms   ${more}`.trimEnd(),
  );
}

function middle(times) {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
}
