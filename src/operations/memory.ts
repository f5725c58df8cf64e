import type { MemoryReport } from '../domain/report.ts';
import { UserError } from '../domain/user-error.ts';
import { nodeMemory } from '../planning/node-memory.ts';
import { inputs } from './inputs.ts';
import { lookAtMemory } from './look.ts';
import type { Answer, Operation } from './operation.ts';
import type { World } from './world.ts';

const WATCH_MS = 2000;

/** `firstlight memory`: who holds how much on each node, what can be had, what would have to go; changes nothing. */
export const memory: Operation<typeof inputs.memory> = {
  name: 'memory',
  summary: 'show who holds the memory of the hosts, and what could be had',
  effect: 'reads',
  input: inputs.memory,
  async run(input, world) {
    const nodes =
      input.node.length === 0 ? world.cluster.nodes : input.node.map((name) => named(world, name));
    const see = async (): Promise<MemoryReport> => {
      const started = world.clock.now();
      const facts = await lookAtMemory(world, nodes);
      return {
        kind: 'memory',
        cluster: world.cluster.name,
        milliseconds: world.clock.now() - started,
        needBytes: input.need,
        nodes: facts.map((seen) => nodeMemory(seen, input.need)),
      };
    };
    let report = await see();
    while (input.watch && !world.signal.aborted) {
      world.live({ kind: 'memory', report });
      // Both end with Ctrl-C, which is how a watch is left: what was seen last is the answer.
      const next = await world.clock
        .wait(WATCH_MS, world.signal)
        .then(see)
        .catch((error: unknown) => {
          if (world.signal.aborted) return undefined;
          throw error;
        });
      if (next !== undefined) report = next;
    }
    return { report, exit: exitOf(report) };
  },
};

function named(world: World, name: string): World['cluster']['nodes'][number] {
  const node = world.cluster.nodes.find((one) => one.name === name);
  if (node !== undefined) return node;
  const known = world.cluster.nodes.map((one) => one.name).join(', ');
  throw new UserError('bad-input', `there is no node ${name}`, `nodes are: ${known}`);
}

/** 1 where a node was not seen, or has not what is needed; a host key that is not trusted is the user's to mend. */
function exitOf({ nodes, needBytes }: MemoryReport): Answer['exit'] {
  if (nodes.some(({ facts }) => !facts.reached && facts.failure.why.startsWith('host-key'))) return 2;
  const fine = nodes.every(
    ({ facts, canGetBytes }) =>
      facts.reached && (needBytes === undefined || (canGetBytes.known && canGetBytes.value >= needBytes)),
  );
  return fine ? 0 : 1;
}
