import type { NodeFacts } from '../../domain/facts.ts';
import { stoppedByGuard } from '../../domain/guard.ts';
import { guardWords } from '../../domain/guard-words.ts';
import { allRanks } from '../../planning/our-ranks.ts';
import type { BringUp } from './progress.ts';

/** Says which ranks of this recipe their guards stopped while nobody was there to see it: they are launched anew. */
export function tellGuarded({ recorder, file }: BringUp, facts: readonly NodeFacts[]): void {
  for (const { node, record } of allRanks(facts)) {
    const { recipe, rank, state, guard } = record;
    if (recipe !== file.recipe.recipe || state !== 'ended' || !stoppedByGuard(guard)) continue;
    recorder.emit({
      type: 'note',
      level: 'warning',
      node,
      text: `rank ${rank} of run ${record.run} was ${guardWords(guard)}; a smaller memory.fraction, or less beside it, keeps it running`,
    });
  }
}
