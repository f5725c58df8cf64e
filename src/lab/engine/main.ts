import { readFileSync } from 'node:fs';
import { configWords, type Invocation, readInvocation, readSglang, readVllm } from './command-line.ts';
import type { EngineWorld } from './engine-world.ts';
import { openHostWorld } from './host-world.ts';
import { openLabWorld, parseLabVariable } from './lab-world.ts';
import { write } from './output.ts';
import { pace } from './pace.ts';
import { runRayNode } from './ray-node.ts';
import { runRayProgram } from './ray-programs.ts';
import { runSglang } from './sglang.ts';
import { runVllm } from './vllm.ts';
import { rayPlaceOf } from './vllm-place.ts';
import { runRayWorker } from './vllm-ray.ts';

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
  if (invocation.kind !== 'serve') return ray(invocation);
  const { engine, program, argv } = invocation;
  const read =
    engine === 'sglang'
      ? readSglang(
          program,
          configWords(argv, (path) => readFileSync(path, 'utf8')),
          lacks(),
        )
      : readVllm(program, argv, lacks());
  if (!read.ok) {
    const asked = !read.text.includes('error: ');
    write(asked ? 1 : 2, read.text);
    return asked ? 0 : 2;
  }
  const world = await enter(words);
  if (world === undefined) return 3;
  const run = { world, pace: pace(Number(env.FIRSTLIGHT_LAB_SPEED ?? 1)), env, options: read.options };
  return engine === 'sglang' ? runSglang(run) : runVllm({ ...run, program }, argv);
}

/** Ray's own processes, and the workers that it starts. */
async function ray(
  invocation: Extract<Invocation, { kind: 'ray-node' | 'ray-program' | 'ray-worker' }>,
): Promise<number> {
  const { env } = process;
  const { argv } = invocation;
  const world = await enter([invocation.kind === 'ray-worker' ? 'ray::RayWorkerProc' : 'ray', ...argv]);
  if (world === undefined) return 3;
  const hands = { world, pace: pace(Number(env.FIRSTLIGHT_LAB_SPEED ?? 1)), env };
  if (invocation.kind === 'ray-node') return runRayNode(hands, argv);
  if (invocation.kind === 'ray-program') return runRayProgram(hands, invocation.program, argv);
  const [rank, address = '', port, ...words] = argv;
  const read = readVllm('vllm', words, lacks());
  if (!read.ok) throw new Error(read.text);
  const at = { rank: Number(rank), address, port: Number(port) };
  const { options } = read;
  return runRayWorker({ ...hands, options, program: 'vllm' }, rayPlaceOf(options, at));
}

/** Flags that this image's engine does not have yet, as its story wants it. */
function lacks(): readonly string[] {
  return (process.env.FIRSTLIGHT_LAB_LACKS ?? '').split(' ').filter((flag) => flag !== '');
}

/** The world, or undefined where it does not let this process in, which is then said. */
async function enter(words: readonly string[]): Promise<EngineWorld | undefined> {
  const world = await openWorld(words).catch(() => undefined);
  if (world === undefined)
    write(2, `${VERSION}: the lab of FIRSTLIGHT_LAB does not answer, or does not know this host\n`);
  // The lab is gone: its processes end with it.
  void world?.gone.then(() => process.kill(process.pid, 'SIGKILL'));
  return world;
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
