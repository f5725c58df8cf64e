// How fast a diagnosis reads: one million lines (about 150 MB) of a long run, on one core, beside grep -F -f and
// ripgrep over the same file with the same number of literals. `npm run bench:diagnose`; never a timed test.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const DIST = process.env.FIRSTLIGHT_DIST ?? join(import.meta.dirname, '..', 'dist');
const LINES = Number(process.env.LINES ?? 1_000_000);
const { netLiterals } = await import(pathToFileURL(join(DIST, 'diagnosis', 'scan-net.js')).href);

/** Numbers that look drawn, and are the same in every run. */
let seed = 20_261_129;
const random = (below) => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed % below;
};
const two = (number) => String(number).padStart(2, '0');

/** What an engine prints while it serves for days, then how it ends. */
function line(index) {
  const at = `2026-11-${two(1 + (Math.floor(index / 86_400) % 28))} ${two(Math.floor(index / 3600) % 24)}:${two(Math.floor(index / 60) % 60)}:${two(index % 60)}`;
  switch (random(8)) {
    case 0:
      return `[${at} TP0] Prefill batch. #new-seq: ${1 + random(8)}, #new-token: ${random(8192)}, #cached-token: ${random(9000)}, token usage: 0.${two(random(99))}, #running-req: ${random(64)}, #queue-req: ${random(9)}, input throughput (token/s): ${random(9000)}.${two(random(99))}`;
    case 1:
      return `[${at}] INFO:     192.168.100.${random(250)}:${30_000 + random(9999)} - "POST /v1/chat/completions HTTP/1.1" 200 OK, request id chatcmpl-${random(1e9)}-${random(1e9)}, ${random(4096)} prompt tokens, ${random(900)} ms`;
    case 2:
      return `spark-a:210:${random(900)} [0] NCCL INFO Channel ${two(random(16))}/0 : 0[0] -> 1[0] [send] via NET/IB/${random(4)}/GDRDMA comm 0x${random(1e9).toString(16)} nRanks 02 busId 1000 commId 0x${random(1e9).toString(16)} - buffers ready`;
    default:
      return `[${at} TP0] Decode batch. #running-req: ${random(64)}, #token: ${random(90_000)}, token usage: 0.${two(random(99))}, cuda graph: True, gen throughput (token/s): ${random(900)}.${two(random(99))}, #queue-req: ${random(9)}, accept len: ${1 + random(3)}.${two(random(99))}`;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'fl-bench-diagnose-'));
try {
  const log = join(folder, 'head.log');
  const file = openSync(log, 'w');
  writeSync(
    file,
    '[2026-11-01 00:00:00] server_args=ServerArgs(model_path="/models/m", tp_size=2, nnodes=2)\n[2026-11-01 00:09:00] The server is fired up and ready to roll!\n',
  );
  for (let index = 0; index < LINES; index += 1000)
    writeSync(
      file,
      `${Array.from({ length: Math.min(1000, LINES - index) }, (_, more) => line(index + more)).join('\n')}\n`,
    );
  writeSync(
    file,
    '[2026-11-12 00:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.20 GiB is free.\n',
  );
  closeSync(file);
  const literals = netLiterals();
  const words = join(folder, 'literals.txt');
  writeFileSync(words, `${literals.join('\n')}\n`);
  const megabytes = statSync(log).size / 1e6;
  process.stdout.write(
    `${LINES.toLocaleString('en')} lines, ${megabytes.toFixed(0)} MB, ${literals.length} literals, one core\n\n`,
  );
  const rows = [
    [
      'firstlight diagnose',
      process.execPath,
      [join(DIST, 'main.js'), 'diagnose', '--json', '--log', `head=${log}`],
    ],
    ['grep -F -f', 'grep', ['-c', '-F', '-f', words, log]],
    ['ripgrep -F -f', 'rg', ['-c', '-j', '1', '-F', '-f', words, log]],
  ];
  for (const [name, program, argv] of rows) told(name, program, argv);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function told(name, program, argv) {
  const timed = ['-f', '%e %M', program, ...argv];
  const began = performance.now();
  const { status, stdout, stderr, error } = spawnSync('taskset', ['-c', '0', '/usr/bin/time', ...timed], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const [, seconds, kibibytes] = /([\d.]+) (\d+)\s*$/.exec(stderr ?? '') ?? [];
  if (error !== undefined || seconds === undefined || (status ?? 2) > 1) {
    process.stdout.write(
      `${name.padEnd(20)} not measured: ${(error?.message ?? stderr ?? '').trim().split('\n').at(-1)}\n`,
    );
    return;
  }
  const took = Number(seconds) || (performance.now() - began) / 1000;
  const said =
    program === process.execPath ? `  ${JSON.parse(stdout).cause}` : `  ${stdout.trim()} lines hold one`;
  process.stdout.write(
    `${name.padEnd(20)} ${took.toFixed(2).padStart(6)} s  ${Math.round(LINES / took)
      .toLocaleString('en')
      .padStart(10)} lines/s  ${(Number(kibibytes) / 1024).toFixed(0).padStart(4)} MiB${said}\n`,
  );
}
