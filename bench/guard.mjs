// What a rank's guard costs: the CPU time of the guard and of all that it starts, as the kernel counts it, over a
// minute and a half beside a rank that does nothing. Quiet: this host's own memory and kernel log. Falling: memory that falls each
// second, so that the kernel's log is read and the record is written each second too. `npm run bench:guard [-- SECONDS]`.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BOUND_PERCENT = 0.5;
const seconds = Number(process.argv[2] ?? 90);
const { GUARD } = await import('../dist/remote/guard-script.js');
const shells = ['dash', 'busybox sh'].filter((shell) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, shell.split(' ')[0]))),
);
const results = await Promise.all(
  shells.flatMap((shell) => [measure(shell, 'quiet'), measure(shell, 'falling')]),
);
for (const { shell, mode, percent, milliseconds, log } of results)
  console.log(
    `guard in ${shell.padEnd(10)} ${mode.padEnd(7)} ${percent.toFixed(2)} % of one core (${milliseconds} ms of CPU in ${seconds} s, kernel log ${log}); bound ${BOUND_PERCENT} %`,
  );
process.exit(results.every(({ percent }) => percent < BOUND_PERCENT) ? 0 : 1);

async function measure(shell, mode) {
  const root = mkdtempSync(join(tmpdir(), 'fl-bench-guard-'));
  const folder = join(root, 'home/.firstlight/m/ranks/tiny-r0');
  for (const path of [folder, join(root, 'etc'), join(root, 'proc'), join(root, 'dev')])
    mkdirSync(path, { recursive: true });
  writeFileSync(join(root, 'etc/machine-id'), 'm\n');
  symlinkSync('/proc/uptime', join(root, 'proc/uptime'));
  symlinkSync('/dev/kmsg', join(root, 'dev/kmsg'));
  const rank = spawn('sleep', [String(seconds)], { detached: true, stdio: 'ignore' });
  symlinkSync(`/proc/${rank.pid}`, join(root, `proc/${rank.pid}`));
  const stat = readFileSync(`/proc/${rank.pid}/stat`, 'utf8');
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  for (const name of ['runner', 'engine']) writeFileSync(join(folder, name), `${rank.pid} ${ticks}\n`);
  let gib = 100;
  const meminfo = join(root, 'proc/meminfo');
  const fall = () => {
    gib = gib > 40 ? gib - 0.6 : 100;
    const kib = Math.round(gib * 2 ** 20);
    writeFileSync(`${meminfo}.new`, `MemTotal: 127535084 kB\nMemFree: ${kib} kB\nMemAvailable: ${kib} kB\n`);
    renameSync(`${meminfo}.new`, meminfo);
  };
  if (mode === 'quiet') symlinkSync('/proc/meminfo', meminfo);
  else fall();
  const timer = mode === 'quiet' ? undefined : setInterval(fall, 1000);
  writeFileSync(join(folder, 'guard.sh'), GUARD);
  // bash counts what the guard and its children used, to the millisecond.
  const timed = spawn(
    'bash',
    ['-c', `TIMEFORMAT='%U %S'; time ${shell} ${join(folder, 'guard.sh')} tiny-r0 process 1 set`],
    {
      env: { PATH: process.env.PATH, HOME: join(root, 'home'), FIRSTLIGHT_ROOT: root },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let said = '';
  timed.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  await new Promise((resolve) => timed.on('close', resolve));
  clearInterval(timer);
  const used = said.trim().split('\n').at(-1).split(' ').map(Number);
  const milliseconds = Math.round((used[0] + used[1]) * 1000);
  const { kernelLog: log } = JSON.parse(readFileSync(join(folder, 'guard.json'), 'utf8'));
  rmSync(root, { recursive: true, force: true });
  return { shell, mode, milliseconds, log, percent: milliseconds / seconds / 10 };
}
