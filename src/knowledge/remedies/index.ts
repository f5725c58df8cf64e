import { dropFlag } from './drop-flag.ts';
import { eager } from './eager.ts';
import { fewerCompilers } from './fewer-compilers.ts';
import { fewerSequences } from './fewer-sequences.ts';
import { fewerThreads } from './fewer-threads.ts';
import { followCabling } from './follow-cabling.ts';
import { gidIndex } from './gid-index.ts';
import { launchAnew } from './launch-anew.ts';
import { lookAgain } from './look-again.ts';
import { lessMemory, moreMemory } from './memory-fraction.ts';
import { moreTime } from './more-time.ts';
import { noSpeculation } from './no-speculation.ts';
import { offlineHub } from './offline-hub.ts';
import { otherAttention } from './other-attention.ts';
import { tensorThatDivides, wholeExperts } from './other-layout.ts';
import { otherPort } from './other-port.ts';
import { overSockets } from './over-sockets.ts';
import { ownArguments } from './own-arguments.ts';
import { ownCaches } from './own-caches.ts';
import { reasoningParser, toolParser } from './parser-of-model.ts';
import { provenKernels, unforcedKernels } from './proven-kernels.ts';
import { rayMemoryMonitorOff } from './ray-memory-monitor-off.ts';
import type { Remedy } from './remedy.ts';
import { rightValue } from './right-value.ts';
import { shorterContext } from './shorter-context.ts';
import { toolkitPtxas } from './toolkit-ptxas.ts';
import { tuneApart } from './tune-apart.ts';
import { useNodeAddresses } from './use-node-addresses.ts';
import { withoutNcclFiles } from './without-nccl-files.ts';

/** All cures, cheapest first: of two for one cause the earlier is tried first. */
export const remedies: readonly Remedy[] = [
  useNodeAddresses,
  ownArguments,
  lookAgain,
  launchAnew,
  otherPort,
  rightValue,
  dropFlag,
  toolkitPtxas,
  offlineHub,
  moreTime,
  ownCaches,
  reasoningParser,
  toolParser,
  unforcedKernels,
  otherAttention,
  wholeExperts,
  tensorThatDivides,
  provenKernels,
  noSpeculation,
  fewerSequences,
  moreMemory,
  lessMemory,
  shorterContext,
  rayMemoryMonitorOff,
  fewerCompilers,
  fewerThreads,
  tuneApart,
  gidIndex,
  followCabling,
  withoutNcclFiles,
  eager,
  overSockets,
];
