import { plainSignature } from './plain-signature.ts';
import { pattern, type Signature } from './signature.ts';

const noGpu = pattern(
  ['No CUDA GPUs are available', 'Failed to infer device type', 'no CUDA-capable device is detected'],
  /No CUDA GPUs are available|Failed to infer device type|no CUDA-capable device is detected/,
);
const noDriverLibrary = pattern(
  'libcuda.so.1: cannot open',
  /libcuda\.so\.1: cannot open shared object file/,
);
const nvmlLost = pattern(
  'Failed to initialize NVML: Unknown Error',
  /Failed to initialize NVML: Unknown Error/,
);

/** The rank sees no GPU; where NVML fails with an unknown error it had one and lost it. */
export const gpuNotVisible: Signature = {
  name: 'gpu-not-visible',
  causes: ['gpu-not-visible-in-container', 'container-lost-gpu-access'],
  seenOn: 'torch 2.11.0, November 2026; vLLM 0.11, October 2025',
  source: 'captured; NVIDIA/nvidia-container-toolkit#48',
  patterns: [noGpu, noDriverLibrary, nvmlLost],
  match({ evidence, find }) {
    const first = find(noGpu)[0];
    if (first === undefined) return undefined;
    const own = <T extends { readonly rank: number }>(all: readonly T[]) =>
      all.filter((found) => found.rank === first.rank);
    const lost = own(find(nvmlLost))[0];
    const { node } = first;
    if (lost !== undefined) {
      return {
        cause: 'container-lost-gpu-access',
        node,
        shown: [first, lost],
        title: `The container on ${node} lost its GPU`,
        why: 'systemd wrote the device rules of running containers anew, as a daemon-reload does, and left the GPU out.',
        advice: ['Start the container anew; firstlight up does.'],
        confidence: 0.85,
        specificity: 3,
      };
    }
    const runtime = evidence.recipe.run.in;
    return {
      cause: 'gpu-not-visible-in-container',
      node,
      shown: [first, ...own(find(noDriverLibrary)).slice(0, 1)],
      title: `The rank on ${node} sees no GPU`,
      why:
        runtime !== 'process'
          ? 'The container was started without access to it, or CUDA_VISIBLE_DEVICES leaves none.'
          : 'The process has no access to it, or CUDA_VISIBLE_DEVICES leaves none.',
      advice: [
        `On ${node}: nvidia-smi -L`,
        ...(runtime === 'docker' ? [`On ${node}: docker run --rm --gpus all IMAGE nvidia-smi -L`] : []),
        ...(runtime === 'podman'
          ? [`On ${node}: podman run --rm --device nvidia.com/gpu=all IMAGE nvidia-smi -L`]
          : []),
      ],
      confidence: 0.92,
      specificity: 3,
    };
  },
};

/** docker has no NVIDIA runtime at all. */
export const nvidiaRuntimeMissing = plainSignature({
  name: 'nvidia-runtime-missing',
  cause: 'nvidia-runtime-not-configured',
  seenOn: 'docker 24 to 28',
  source: 'moby daemon/devices',
  forms: [
    pattern(
      [
        'could not select device driver',
        'unknown or invalid runtime name: nvidia',
        'unresolvable CDI devices',
      ],
      /could not select device driver .*gpu|invalid runtime name: nvidia|unresolvable CDI devices/,
    ),
  ],
  title: (found) => `docker on ${found.node} has no NVIDIA runtime`,
  why: 'The NVIDIA container toolkit is not installed there, or docker was not told of it.',
  advice: (found) => [
    `On ${found.node}: sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`,
  ],
  confidence: 0.95,
  specificity: 3,
});

/** The driver is older than the CUDA in the image. */
export const driverTooOld = plainSignature({
  name: 'driver-too-old',
  cause: 'driver-too-old',
  seenOn: 'SGLang 0.5.3, October 2025',
  source: 'torch c10/cuda/CUDAFunctions.cpp',
  forms: [
    pattern(
      'The NVIDIA driver on your system is too old',
      /NVIDIA driver on your system is too old \(found version (?<version>\d+)\)/,
    ),
  ],
  title: (found) => `The NVIDIA driver on ${found.node} is older than the image needs`,
  why: 'The CUDA that the engine was built with wants a newer driver.',
  advice: () => ['Update the driver, or use an image built for that CUDA version.'],
  confidence: 0.95,
  specificity: 3,
});
