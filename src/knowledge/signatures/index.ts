import { cacheDrift } from './cache-drift.ts';
import { completionFailed } from './completion-failed.ts';
import { contextTooLong } from './context-too-long.ts';
import { differentArgs } from './different-args.ts';
import { duplicateHostIp } from './duplicate-host-ip.ts';
import { duplicateRank } from './duplicate-rank.ts';
import { envNotSet } from './env-not-set.ts';
import { graphCaptureBroken } from './graph-capture-broken.ts';
import { hostFroze } from './host-froze.ts';
import { rayMemoryMonitor, userspaceOom } from './host-guards.ts';
import { hostnameWrong } from './hostname-wrong.ts';
import { jitMemory } from './jit-memory.ts';
import { killedFromOutside } from './killed-from-outside.ts';
import { killedWhileLoading } from './killed-while-loading.ts';
import { kvCacheTooSmall, kvPoolNotPositive } from './kv-cache.ts';
import { laterFamilies } from './later-families.ts';
import { loopbackAdvertised } from './loopback-advertised.ts';
import { memoryRanOut } from './memory-ran-out.ts';
import { memoryRegistration } from './memory-registration.ts';
import { memoryTaken } from './memory-taken.ts';
import { messageQueueUnreached } from './message-queue-unreached.ts';
import { ncclConfig } from './nccl-config.ts';
import { ncclLibrary } from './nccl-library.ts';
import { neverJoined } from './never-joined.ts';
import { oomKillCounted } from './oom-kill-counted.ts';
import { peersSilent } from './peers-silent.ts';
import { portInUse } from './port-in-use.ts';
import { processLimit } from './process-limit.ts';
import { queuePairFailed } from './queue-pair-failed.ts';
import { rayGpuMissing, rayNodeMissing, rayVersions } from './ray-nodes.ts';
import { rdmaDeviceList, rdmaMissing } from './rdma-device-missing.ts';
import { rdmaUnderused } from './rdma-underused.ts';
import { rendezvousUnreached } from './rendezvous-unreached.ts';
import { sharedMemory } from './shared-memory.ts';
import type { Signature } from './signature.ts';
import { socketInterface } from './socket-interface.ts';
import { stoppedByGuard } from './stopped-by-guard.ts';
import { storeRestarted } from './store-restarted.ts';
import { wrongNetworkAdvertised } from './wrong-network-advertised.ts';

/** All that firstlight recognises; their order means nothing. */
export const signatures: readonly Signature[] = [
  loopbackAdvertised,
  rendezvousUnreached,
  wrongNetworkAdvertised,
  messageQueueUnreached,
  socketInterface,
  duplicateRank,
  neverJoined,
  peersSilent,
  portInUse,
  memoryTaken,
  memoryRanOut,
  killedWhileLoading,
  killedFromOutside,
  stoppedByGuard,
  oomKillCounted,
  contextTooLong,
  kvCacheTooSmall,
  kvPoolNotPositive,
  rayNodeMissing,
  rayGpuMissing,
  rayVersions,
  queuePairFailed,
  completionFailed,
  rdmaDeviceList,
  rdmaMissing,
  memoryRegistration,
  ncclLibrary,
  sharedMemory,
  rayMemoryMonitor,
  userspaceOom,
  jitMemory,
  hostFroze,
  hostnameWrong,
  duplicateHostIp,
  storeRestarted,
  differentArgs,
  cacheDrift,
  envNotSet,
  processLimit,
  graphCaptureBroken,
  ncclConfig,
  rdmaUnderused,
  ...laterFamilies,
];
