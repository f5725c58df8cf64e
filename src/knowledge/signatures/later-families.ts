import { attentionBackend } from './attention-backend.ts';
import { buildTools, fetchTools } from './build-tools.ts';
import { clockSkew } from './clock-skew.ts';
import { cacheNotWritable, dockerGroup, imageArchitecture, imageMissing } from './container-refused.ts';
import { destinationMissing } from './copy-destination.ts';
import { diskFull } from './disk-full.ts';
import { chatTemplate, emptyAnswer } from './empty-answer.ts';
import { envFile } from './env-file.ts';
import { flagRefused } from './flag-refused.ts';
import { gpuHardware } from './gpu-hardware.ts';
import { gpuNotVisible, nvidiaRuntimeMissing } from './gpu-not-visible.ts';
import { heat } from './heat.ts';
import { hubGated, hubLimited, hubUnreachable } from './hub.ts';
import { jitCacheShared } from './jit-cache-shared.ts';
import { kernelCrash } from './kernel-crash.ts';
import { kernelsNotBuilt, repackRanOut, sharedMemoryExceeded } from './kernels-missing.ts';
import { lateJit } from './late-jit.ts';
import { blocksDoNotDivide, headsDoNotDivide, moreRanksThanGpus } from './layout-refused.ts';
import { loadBarrier } from './load-barrier.ts';
import { lowPower } from './low-power.ts';
import { misread } from './misread.ts';
import { lfsPointers, weightsTruncated } from './model-files.ts';
import { modelPathMissing } from './model-path-missing.ts';
import {
  modelNotSupported,
  remoteModule,
  tokenizersTooOld,
  transformersTooOld,
  trustRemoteCode,
} from './model-refused.ts';
import { cpuOnlyTorch, noWheel, packageMissing } from './python-packages.ts';
import { reparsedArguments } from './reparsed-arguments.ts';
import type { Signature } from './signature.ts';
import { speculativeBug } from './speculative-bug.ts';
import { hostKey, sshKey, sudoPassword } from './ssh-keys.ts';
import { jumpForwarding, sshAddress, sshLimits } from './ssh-reach.ts';
import { toolCalls } from './tool-calls.ts';
import { cudaLibraries, driverTooOld, ptxasTooOld, toolchainNewer } from './toolchain.ts';
import { workerGone } from './worker-gone.ts';

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
