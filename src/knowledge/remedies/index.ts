import { dropFlag } from './drop-flag.ts';
import { fewerSequences } from './fewer-sequences.ts';
import { launchAnew } from './launch-anew.ts';
import { lookAgain } from './look-again.ts';
import { lessMemory, moreMemory } from './memory-fraction.ts';
import { otherPort } from './other-port.ts';
import type { Remedy } from './remedy.ts';
import { shorterContext } from './shorter-context.ts';
import { useNodeAddresses } from './use-node-addresses.ts';

/** All cures, cheapest first: of two for one cause the earlier is tried first. */
export const remedies: readonly Remedy[] = [
  useNodeAddresses,
  lookAgain,
  launchAnew,
  otherPort,
  dropFlag,
  moreMemory,
  lessMemory,
  fewerSequences,
  shorterContext,
];
