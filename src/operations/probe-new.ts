import type { Cluster } from '../domain/cluster.ts';
import { valueIf } from '../domain/facts.ts';
import { sentences } from '../domain/units.ts';
import { UserError } from '../domain/user-error.ts';
import { fabricAddresses } from '../planning/fabric.ts';
import { hostKeyError } from './host-key-error.ts';
import { look } from './look.ts';
import type { World } from './world.ts';

/**
 * Looks at hosts that are not in a file yet. Gives back each node's fabric address where all nodes share a
 * network that was found; a host that does not answer is a UserError, since the file would not work.
 */
export async function probeNew(world: World, cluster: Cluster): Promise<ReadonlyMap<string, string>> {
  const hosts = world.openHosts(cluster);
  const facts = await look({ hosts, clock: world.clock, signal: world.signal }, cluster.nodes, undefined);
  for (const node of facts) {
    if (node.reached) continue;
    const { sentence, remedy } = node.failure;
    const error = hostKeyError(node.failure);
    throw new UserError(
      error?.code ?? 'bad-input',
      sentences(error?.message ?? sentence, 'The file was not written'),
      `${again(remedy)}. Or write it without looking: --no-probe`,
    );
  }
  const found = fabricAddresses(cluster.nodes, facts);
  const unsure = facts.some((node) => node.reached && valueIf(node.interfaces) === undefined);
  return unsure ? new Map() : found;
}

/** There is no cluster file yet that `check` could read: the key is accepted by asking init once more. */
function again(remedy: string): string {
  return remedy
    .replace(/accept it: firstlight check (--accept-host-key \S+)$/, 'ask again with $1')
    .replace(/\.$/, '');
}
