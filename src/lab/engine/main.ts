import { readFileSync } from 'node:fs';
import { configWords, readInvocation, readSglang, readVllm } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import { openHostWorld } from './host-world.ts';
import { openLabWorld, parseLabVariable } from './lab-world.ts';
import { write } from './output.ts';
import { pace } from './pace.ts';
import { runSglang } from './sglang.ts';
import { runVllm } from './vllm.ts';

const VERSION = 'firstlight lab stand-in';

/** Entry of the stand-ins: `node main.js sglang serve …`, `… vllm serve …`, `… python -m sglang.launch_server …`. */
async function main(words: readonly string[]): Promise<number> {
  const env = process.env;
  const invocation = readInvocation(words);
  if (invocation.kind === 'unknown') {
    write(2, `${VERSION}: this stand-in serves models only: sglang serve …, vllm serve …\n`);
    return 2;
  }
  if (invocation.kind === 'version') {
    write(1, `${VERSION}\n`);
    return 0;
  }
  const { engine, program, argv } = invocation;
  const read =
    engine === 'sglang'
      ? readSglang(
          program,
          configWords(argv, (path) => readFileSync(path, 'utf8')),
        )
      : readVllm(program, argv);
  if (!read.ok) {
    const asked = !read.text.includes('error: ');
    write(asked ? 1 : 2, read.text);
    return asked ? 0 : 2;
  }
  const world = await openWorld(words).catch(() => undefined);
  if (world === undefined) {
    write(2, `${VERSION}: the lab of FIRSTLIGHT_LAB does not answer, or does not know this host\n`);
    return 3;
  }
  // The lab is gone: its processes end with it.
  void world.gone.then(() => process.kill(process.pid, 'SIGKILL'));
  const run = { world, pace: pace(Number(env.FIRSTLIGHT_LAB_SPEED ?? 1)), env, options: read.options };
  return engine === 'sglang' ? runSglang(run) : runVllm({ ...run, program });
}

function openWorld(argv: readonly string[]): Promise<EngineWorld> {
  const { env } = process;
  const lab = parseLabVariable(env.FIRSTLIGHT_LAB ?? '');
  if (lab === undefined)
    return Promise.resolve(openHostWorld(Number(env.FIRSTLIGHT_STANDIN_SCALE ?? 1 / 1024)));
  return openLabWorld(lab, {
    pid: process.pid,
    ppid: process.ppid,
    uid: env.FIRSTLIGHT_LAB_UID ?? '',
    argv,
  });
}

const code = await main(process.argv.slice(2));
// A negative code is the signal that the engine ends itself with.
if (code < 0) process.kill(process.pid, 'SIGKILL');
process.exit(code);
