import { differentArgs } from './command/different-args.ts';
import { envNotSet } from './command/env-not-set.ts';
import { completionFailed } from './fabric/completion-failed.ts';
import { memoryRegistration } from './fabric/memory-registration.ts';
import { ncclConfig } from './fabric/nccl-config.ts';
import { ncclLibrary } from './fabric/nccl-library.ts';
import { queuePairFailed } from './fabric/queue-pair-failed.ts';
import { rdmaDeviceList, rdmaMissing } from './fabric/rdma-device-missing.ts';
import { rdmaUnderused } from './fabric/rdma-underused.ts';
import { killedFromOutside } from './host/killed-from-outside.ts';
import { processLimit } from './host/process-limit.ts';
import { cacheDrift } from './kernels/cache-drift.ts';
import { graphCaptureBroken } from './kernels/graph-capture-broken.ts';
import { laterFamilies } from './later-families.ts';
import { hostFroze } from './memory/host-froze.ts';
import { rayMemoryMonitor, userspaceOom } from './memory/host-guards.ts';
import { jitMemory } from './memory/jit-memory.ts';
import { killedWhileLoading } from './memory/killed-while-loading.ts';
import { kvCacheTooSmall, kvPoolNotPositive } from './memory/kv-cache.ts';
import { memoryRanOut } from './memory/memory-ran-out.ts';
import { memoryTaken } from './memory/memory-taken.ts';
import { oomKillCounted } from './memory/oom-kill-counted.ts';
import { sharedMemory } from './memory/shared-memory.ts';
import { stoppedByGuard } from './memory/stopped-by-guard.ts';
import { contextTooLong } from './model/context-too-long.ts';
import { duplicateHostIp } from './network/duplicate-host-ip.ts';
import { duplicateRank } from './network/duplicate-rank.ts';
import { hostnameWrong } from './network/hostname-wrong.ts';
import { loopbackAdvertised } from './network/loopback-advertised.ts';
import { messageQueueUnreached } from './network/message-queue-unreached.ts';
import { neverJoined } from './network/never-joined.ts';
import { peersSilent } from './network/peers-silent.ts';
import { portInUse } from './network/port-in-use.ts';
import { rayGpuMissing, rayNodeMissing, rayVersions } from './network/ray-nodes.ts';
import { rendezvousUnreached } from './network/rendezvous-unreached.ts';
import { socketInterface } from './network/socket-interface.ts';
import { storeRestarted } from './network/store-restarted.ts';
import { wrongNetworkAdvertised } from './network/wrong-network-advertised.ts';
import type { Signature } from './signature.ts';

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
