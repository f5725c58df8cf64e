import { completionFailed } from './completion-failed.ts';
import {
  cacheNotWritable,
  dockerGroup,
  imageArchitecture,
  imageMissing,
  packageMissing,
} from './container-refused.ts';
import { contextTooLong } from './context-too-long.ts';
import { duplicateRank } from './duplicate-rank.ts';
import { flagRefused } from './flag-refused.ts';
import { driverTooOld, gpuNotVisible, nvidiaRuntimeMissing } from './gpu-not-visible.ts';
import { killedWhileLoading } from './killed-while-loading.ts';
import { kvCacheTooSmall, kvPoolNotPositive } from './kv-cache.ts';
import { loadBarrier } from './load-barrier.ts';
import { loopbackAdvertised } from './loopback-advertised.ts';
import { memoryRanOut } from './memory-ran-out.ts';
import { memoryRegistration } from './memory-registration.ts';
import { memoryTaken } from './memory-taken.ts';
import { messageQueueUnreached } from './message-queue-unreached.ts';
import { lfsPointers, weightsTruncated } from './model-files.ts';
import { modelPathMissing } from './model-path-missing.ts';
import {
  blocksDoNotDivide,
  headsDoNotDivide,
  modelNotSupported,
  transformersTooOld,
  trustRemoteCode,
} from './model-refused.ts';
import { ncclLibrary } from './nccl-library.ts';
import { portInUse } from './port-in-use.ts';
import { queuePairFailed } from './queue-pair-failed.ts';
import { rayGpuMissing, rayNodeMissing, rayVersions } from './ray-nodes.ts';
import { rdmaDeviceList, rdmaMissing } from './rdma-device-missing.ts';
import { rendezvousUnreached } from './rendezvous-unreached.ts';
import { sharedMemory } from './shared-memory.ts';
import type { Signature } from './signature.ts';
import { socketInterface } from './socket-interface.ts';
import { stoppedByGuard } from './stopped-by-guard.ts';
import { wrongNetworkAdvertised } from './wrong-network-advertised.ts';

/** All that firstlight recognises; their order means nothing. */
export const signatures: readonly Signature[] = [
  loopbackAdvertised,
  rendezvousUnreached,
  wrongNetworkAdvertised,
  messageQueueUnreached,
  socketInterface,
  duplicateRank,
  portInUse,
  memoryTaken,
  memoryRanOut,
  killedWhileLoading,
  stoppedByGuard,
  contextTooLong,
  kvCacheTooSmall,
  kvPoolNotPositive,
  loadBarrier,
  flagRefused,
  modelPathMissing,
  lfsPointers,
  weightsTruncated,
  trustRemoteCode,
  modelNotSupported,
  transformersTooOld,
  headsDoNotDivide,
  blocksDoNotDivide,
  gpuNotVisible,
  nvidiaRuntimeMissing,
  rayNodeMissing,
  rayGpuMissing,
  rayVersions,
  driverTooOld,
  imageArchitecture,
  imageMissing,
  dockerGroup,
  packageMissing,
  cacheNotWritable,
  queuePairFailed,
  completionFailed,
  rdmaDeviceList,
  rdmaMissing,
  memoryRegistration,
  ncclLibrary,
  sharedMemory,
];
