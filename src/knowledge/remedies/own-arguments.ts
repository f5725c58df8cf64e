import { argsOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';

/** What each rank is given by the plan: the same word in the recipe's args overrides it on every node. */
const OF_ONE_RANK: ReadonlySet<string> = new Set([
  '--node-rank',
  '-r',
  '--nnodes',
  '-n',
  '--master-addr',
  '--master-port',
  '--dist-init-addr',
  '--nccl-init-addr',
  '--headless',
  '--data-parallel-address',
  '--data-parallel-start-rank',
]);

/** Leaves ranks and addresses to the plan, where the recipe's args give all ranks the same. */
export const ownArguments: Remedy = {
  name: 'own-arguments',
  causes: [
    'duplicate-node-rank',
    'loopback-address-advertised',
    'wrong-network-address-advertised',
    'hostname-resolves-to-wrong-address',
  ],
  title: () => 'Give each rank its own number and address instead of the same for all',
  cost: () => 'nothing',
  apply({ recipe, engine }) {
    const args = argsOf(recipe, engine);
    const to = without(args);
    return to.length === args.length ? undefined : [{ path: `args.${engine}`, from: args, to }];
  },
};

function without(args: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? '';
    if (!OF_ONE_RANK.has(word.split('=')[0] ?? '')) {
      kept.push(word);
      continue;
    }
    const next = args[at + 1];
    if (!word.includes('=') && next !== undefined && !next.startsWith('-')) at++;
  }
  return kept;
}
