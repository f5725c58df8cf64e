import { expect, it } from 'vitest';
import type { Event } from '../../src/domain/event.ts';
import { known, type NodeFacts } from '../../src/domain/facts.ts';
import { blocked } from '../../src/operations/bring-up/blocked.ts';
import { atStart, type BringUp, type Progress } from '../../src/operations/bring-up/progress.ts';
import { newRecorder } from '../../src/operations/recorder.ts';
import { plan } from '../../src/planning/plan.ts';
import { spark, sparkNodes, sparkRecipe, sparks } from '../pretend/facts.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

const PROGRESS: Progress = { ...atStart({ file: { recipe: sparkRecipe() } }), begun: true };

/** What a bring-up makes of hosts on which somebody listens at these ports of the head. */
function meets(ports: readonly number[], progress = PROGRESS) {
  const events: Event[] = [];
  const world = pretendWorld({
    signal: new AbortController().signal,
    live: () => undefined,
    onEvent: (event) => events.push(event),
  });
  const recipe = sparkRecipe();
  const up: BringUp = {
    world,
    recorder: newRecorder(world),
    file: { file: 'recipe.yaml', digest: 'aaaabbbbccccdddd', recipe },
    nodes: sparkNodes,
    input: { consent: [], replace: false, wait: false },
  };
  const listeners = ports.map((port) => ({
    address: '0.0.0.0',
    port,
    pid: known(4711),
    process: known('python3'),
  }));
  const facts: readonly NodeFacts[] = [spark('a', { ports: known(listeners) }), spark('b')];
  const made = plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe,
    recipeDigest: 'aaaabbbbccccdddd',
    edits: [],
    engine: 'sglang',
    facts,
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
  });
  return { events, move: blocked(up, progress, made.blockers, facts) };
}

it('a rendezvous port that somebody has is named with who has it, and the ranks meet at another', () => {
  const { events, move } = meets([20000, 20105]);
  expect(events).toMatchObject([
    {
      type: 'finding',
      cause: 'port-already-in-use',
      family: 'C',
      node: 'spark-a',
      title: 'Port 20000 of spark-a, for the rendezvous, is in use by python3 (0.0.0.0).',
      values: { port: '20000', kind: 'rendezvous', holder: 'python3' },
    },
    { type: 'remedy-applied', remedy: 'other-port', cause: 'port-already-in-use', node: 'spark-a' },
  ]);
  expect(move).toMatchObject({
    kind: 'again',
    progress: { edits: [{ path: 'rendezvousPort', from: 20000, to: 20200 }] },
  });
});

it('it moves once, and not where something else is in the way as well', () => {
  const tried = [{ engine: 'sglang', remedy: 'other-port', cause: 'port-already-in-use' }] as const;
  expect(meets([20000], { ...PROGRESS, tried }).move.kind).toBe('ended');
  expect(meets([20000, 30000]).move.kind).toBe('ended');
});
