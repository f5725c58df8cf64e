import { envFile } from './command/env-file.ts';
import { flagRefused } from './command/flag-refused.ts';
import { reparsedArguments } from './command/reparsed-arguments.ts';
import { clockSkew } from './host/clock-skew.ts';
import { cacheNotWritable, dockerGroup, imageArchitecture, imageMissing } from './host/container-refused.ts';
import { diskFull } from './host/disk-full.ts';
import { gpuHardware } from './host/gpu-hardware.ts';
import { gpuNotVisible, nvidiaRuntimeMissing } from './host/gpu-not-visible.ts';
import { heat } from './host/heat.ts';
import { lowPower } from './host/low-power.ts';
import { hostKey, sshKey, sudoPassword } from './host/ssh-keys.ts';
import { jumpForwarding, sshAddress, sshLimits } from './host/ssh-reach.ts';
import { attentionBackend } from './kernels/attention-backend.ts';
import { buildTools, fetchTools } from './kernels/build-tools.ts';
import { jitCacheShared } from './kernels/jit-cache-shared.ts';
import { kernelCrash } from './kernels/kernel-crash.ts';
import { kernelsNotBuilt, repackRanOut, sharedMemoryExceeded } from './kernels/kernels-missing.ts';
import { lateJit } from './kernels/late-jit.ts';
import { cpuOnlyTorch, noWheel, packageMissing } from './kernels/python-packages.ts';
import { cudaLibraries, driverTooOld, ptxasTooOld, toolchainNewer } from './kernels/toolchain.ts';
import { destinationMissing } from './model/copy-destination.ts';
import { hubGated, hubLimited, hubUnreachable } from './model/hub.ts';
import { blocksDoNotDivide, headsDoNotDivide, moreRanksThanGpus } from './model/layout-refused.ts';
import { lfsPointers, weightsTruncated } from './model/model-files.ts';
import { modelPathMissing } from './model/model-path-missing.ts';
import {
  modelNotSupported,
  remoteModule,
  tokenizersTooOld,
  transformersTooOld,
  trustRemoteCode,
} from './model/model-refused.ts';
import { loadBarrier } from './network/load-barrier.ts';
import { workerGone } from './network/worker-gone.ts';
import { chatTemplate, emptyAnswer } from './serving/empty-answer.ts';
import { misread } from './serving/misread.ts';
import { speculativeBug } from './serving/speculative-bug.ts';
import { toolCalls } from './serving/tool-calls.ts';
import type { Signature } from './signature.ts';

/** What is recognised of families F to M: kernels, images, flags, files, SSH, serving, power and false alarms. */
export const laterFamilies: readonly Signature[] = [
  kernelsNotBuilt,
  repackRanOut,
  sharedMemoryExceeded,
  ptxasTooOld,
  toolchainNewer,
  driverTooOld,
  cudaLibraries,
  jitCacheShared,
  attentionBackend,
  kernelCrash,
  buildTools,
  fetchTools,
  imageArchitecture,
  imageMissing,
  dockerGroup,
  cacheNotWritable,
  envFile,
  clockSkew,
  packageMissing,
  noWheel,
  cpuOnlyTorch,
  gpuNotVisible,
  nvidiaRuntimeMissing,
  flagRefused,
  reparsedArguments,
  trustRemoteCode,
  remoteModule,
  modelNotSupported,
  transformersTooOld,
  tokenizersTooOld,
  headsDoNotDivide,
  blocksDoNotDivide,
  moreRanksThanGpus,
  loadBarrier,
  modelPathMissing,
  lfsPointers,
  weightsTruncated,
  hubGated,
  hubLimited,
  hubUnreachable,
  diskFull,
  destinationMissing,
  sshAddress,
  sshLimits,
  jumpForwarding,
  sshKey,
  hostKey,
  sudoPassword,
  emptyAnswer,
  chatTemplate,
  toolCalls,
  lateJit,
  workerGone,
  speculativeBug,
  heat,
  gpuHardware,
  lowPower,
  misread,
];
