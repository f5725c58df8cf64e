// The command line over a pretended run of two Sparks: told up to the weights, then held until the test lets it end.
import { existsSync, writeFileSync } from 'node:fs';
import type { EventBody } from '../../../src/domain/event.ts';
import { runCli } from '../../../src/faces/cli/run.ts';
import type { World } from '../../../src/operations/world.ts';
import { pretendWorld } from '../../pretend/pretend-world.ts';
import { storyEvents, storyUntil } from '../../pretend/story-events.ts';
import { operation } from '../run-cli.ts';

const { PTY_FOLDER: folder = '.', PTY_ASKS: asks, PTY_BREAKS: breaks } = process.env;
const ASKED = 8;
const WEIGHTS = 172;

function body(event: (typeof storyEvents)[number]): EventBody {
  const { v: _v, seq: _seq, run: _run, at: _at, ...rest } = event;
  return rest;
}

async function answered(world: World, run: string): Promise<void> {
  for (;;) {
    const answer = world.journal.read(run).find((event) => event.type === 'consent-given');
    if (answer !== undefined) {
      writeFileSync(`${folder}/answer`, JSON.stringify(answer));
      return;
    }
    await world.clock.wait(20, world.signal);
  }
}

const up = operation(
  'up',
  async (_input, world) => {
    const run = world.journal.newRun();
    const told = (event: (typeof storyEvents)[number]): void => void world.journal.append(run, body(event));
    const before = storyUntil(ASKED).length;
    for (const event of storyEvents.slice(0, before)) if (asks || event.type !== 'consent-asked') told(event);
    if (asks) {
      await world.clock.wait(700, world.signal);
      await answered(world, run);
    }
    for (const event of storyUntil(WEIGHTS).slice(before)) if (event.type !== 'consent-given') told(event);
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index} 模型加载中 \x1b[31mred`);
    world.live({ kind: 'lines', rank: 1, node: 'spark-b', lines });
    if (breaks)
      setTimeout(() => {
        throw new Error('a mistake of ours');
      }, 700);
    while (!existsSync(`${folder}/end`)) {
      if (world.signal.aborted) break;
      await new Promise((done) => setTimeout(done, 20));
    }
    const rest = storyEvents.slice(storyUntil(WEIGHTS).length);
    for (const event of rest) if (!world.signal.aborted || event.type === 'run-ended') told(event);
    writeFileSync(`${folder}/ended`, '');
    const ended = world.journal.read(run).at(-1);
    if (ended?.type !== 'run-ended') throw new Error('the story has no end');
    return { report: { kind: 'run', run, ended }, exit: 0 };
  },
  'changes',
);

writeFileSync(`${folder}/pid`, String(process.pid));
process.exitCode = await runCli(process.argv.slice(2), {
  operations: [up],
  makeWorld: (given) => pretendWorld(given),
  version: '0.1.0',
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  exit: (code) => process.exit(code),
});
