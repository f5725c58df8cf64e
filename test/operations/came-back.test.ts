import { expect, it } from 'vitest';
import type { Event } from '../../src/domain/event.ts';
import { type Holder, known, type Return } from '../../src/domain/facts.ts';
import type { Blocker } from '../../src/domain/plan.ts';
import { blocked } from '../../src/operations/bring-up/blocked.ts';
import { clear } from '../../src/operations/bring-up/clear.ts';
import { atStart, type BringUp, type Progress } from '../../src/operations/bring-up/progress.ts';
import { newRecorder } from '../../src/operations/recorder.ts';
import { plan } from '../../src/planning/plan.ts';
import { fullWorker, spark, sparkNodes, sparkRecipe, sparks, storyHolders } from '../pretend/facts.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

/** A run of the story's recipe in a world without hosts, and the findings that it tells. */
function run(): { readonly up: BringUp; readonly findings: readonly Extract<Event, { type: 'finding' }>[] } {
  const findings: Extract<Event, { type: 'finding' }>[] = [];
  const world = pretendWorld({
    signal: new AbortController().signal,
    live: () => undefined,
    onEvent: (event) => {
      if (event.type === 'finding') findings.push(event);
    },
  });
  const recorder = newRecorder(world);
  const recipe = sparkRecipe();
  const up: BringUp = {
    world,
    recorder,
    file: { file: 'recipe.yaml', digest: 'aaaabbbbccccdddd', recipe },
    nodes: sparkNodes,
    input: { consent: [], replace: false, wait: false },
  };
  return { up, findings };
}

const PROGRESS: Progress = { ...atStart({ file: { recipe: sparkRecipe() } }), begun: true, worked: true };

/** What is told of a service that was stopped twice and is there again, with these things that start it. */
async function told(returns: readonly Return[]) {
  const { up, findings } = run();
  const [unit, ...rest] = storyHolders;
  if (unit === undefined) throw new Error('no holder');
  const holder: Holder = { ...unit, ...(returns.length === 0 ? {} : { returns }) };
  const facts = [spark('a'), fullWorker({ holders: known([holder, ...rest]) })];
  const made = plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe: sparkRecipe(),
    recipeDigest: 'aaaabbbbccccdddd',
    edits: [],
    engine: 'sglang',
    facts,
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
  });
  const [phase] = made.phases;
  if (phase === undefined) throw new Error('nothing to clear');
  const stopped = new Map([['spark-b stop-unit ollama.service', 2]]);
  const move = await clear(up, { ...PROGRESS, stopped }, { phase, plan: made, facts });
  return { move, finding: findings[0] };
}

it('a holder that was stopped twice and is there again is a finding that names what starts it, and what keeps it away', async () => {
  const { move, finding } = await told([
    {
      by: 'unit',
      what: 'Restart=always of ollama.service',
      keepAway: 'sudo systemctl stop ollama.service',
      handled: true,
    },
    {
      by: 'timer',
      what: 'ollama.timer, when its time comes',
      keepAway: 'sudo systemctl stop ollama.timer',
      handled: true,
    },
  ]);
  expect(move).toMatchObject({ kind: 'ended', end: { outcome: 'not-serving' } });
  expect(finding).toMatchObject({
    cause: 'leftover-process-holds-gpu-memory',
    node: 'spark-b',
    title: 'ollama.service on spark-b came back each time it was stopped',
    why: 'It is started again by Restart=always of ollama.service and ollama.timer, when its time comes.',
    advice: [
      'to keep it away, on spark-b: sudo systemctl stop ollama.service',
      'to keep it away, on spark-b: sudo systemctl stop ollama.timer',
    ],
  });
});

it('what starts it and was not seen is said to be unseen', async () => {
  const { finding } = await told([]);
  expect(finding?.why).toBe('Something starts it again, and that something was not seen.');
  expect(finding?.advice[0]).toContain('ps -o pid,ppid,lstart,args -p 1812');
});

it('a launch that has no room says what was stopped, that its memory is not back, and what holds it now', () => {
  const { up, findings } = run();
  const blocker: Blocker = {
    cause: 'insufficient-free-memory-at-startup',
    node: 'spark-b',
    title: 'It does not fit on spark-b.',
    why: 'What holds it now: 40.0 GiB are held by the GPU driver for no process that it names.',
    advice: [],
    userError: false,
  };
  const progress: Progress = {
    ...PROGRESS,
    stopped: new Map([
      ['spark-b stop-unit ollama.service', 1],
      ['spark-b stop-process python train.py', 1],
      ['spark-a stop-unit other.service', 1],
    ]),
    short: new Map([['spark-b', '50.1 GiB available, 44.0 GiB short of 94.1 GiB']]),
  };
  blocked(up, progress, [blocker], []);
  expect(findings[0]?.why).toBe(
    'ollama.service and python train.py were stopped, and not all of the memory came back: 50.1 GiB available, 44.0 GiB short of 94.1 GiB. What holds it now: 40.0 GiB are held by the GPU driver for no process that it names.',
  );
});
