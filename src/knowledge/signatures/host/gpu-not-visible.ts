import { inOrder, lineSignature, movedOn, sameLog, type Where, whoSaid } from '../line-signature.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { hardwareFailed } from './gpu-hardware.ts';

const noGpu = pattern(
  [
    'No CUDA GPUs are available',
    'Failed to infer device type',
    'no CUDA-capable device is detected',
    'No accelerator (',
    'Found no NVIDIA driver on your system',
    'No GPU found',
    'no NVIDIA GPU',
    'CUDA is not available',
    'cudaErrorNoDevice',
    'No supported device detected',
    'CUDA unknown error',
  ],
  /No CUDA GPUs are available|Failed to infer device type|no CUDA-capable device is detected|No accelerator \(.{0,600}is available|Found no NVIDIA driver on your system|(?:Error|ERROR|error:).{0,600}(?:No GPU found|[Nn]o NVIDIA GPU|CUDA is not available)|cudaErrorNoDevice|No supported device detected|CUDA unknown error - this may be due to/,
);
const noDriverLibrary = pattern(
  ['libcuda.so.1: cannot open', 'NVIDIA Driver was not detected'],
  /libcuda\.so\.1: cannot open shared object file|NVIDIA Driver was not detected/,
);
const noDriver = pattern(
  ["couldn't communicate with the NVIDIA driver", 'nvml error: driver not loaded', 'No devices were found'],
  /couldn't communicate with the NVIDIA driver|nvml error: driver not loaded|^No devices were found/,
);
const unseen = pattern(
  'CUDA_VISIBLE_DEVICES=',
  /CUDA_VISIBLE_DEVICES=(?:(?<none>-1|""|'')|(?<list>[\d,]{1,400}))(?:\s|$)/,
);
const nvmlLost = pattern(
  ['Failed to initialize NVML: Unknown Error', 'NVMLError_Unknown', 'NVML: Unknown Error'],
  /Failed to initialize NVML: Unknown Error|NVMLError_Unknown|NVML: Unknown Error/,
);

/** The rank sees no GPU; where NVML fails with an unknown error it had one and lost it. */
export const gpuNotVisible: Signature = {
  name: 'gpu-not-visible',
  causes: ['gpu-not-visible-in-container', 'container-lost-gpu-access'],
  seenOn: 'torch 2.11.0, November 2026; vLLM 0.11, October 2025; SGLang 0.5',
  source:
    'captured; NVIDIA/nvidia-container-toolkit#48; NVIDIA/nvidia-docker#1730; entry script of NGC images',
  whileServing: true,
  patterns: [noGpu, noDriverLibrary, noDriver, unseen, nvmlLost],
  looks: ['RuntimeError: No CUDA GPUs are available', 'Failed to initialize NVML: Unknown Error'],
  match(view) {
    const gone = inOrder([noGpu], view).filter(
      (found) => !/UserWarning|^WARNING/.test(found.message) && !movedOn(found, view),
    );
    const lost = inOrder([nvmlLost], view);
    const dead = inOrder([noDriver], view);
    const first = lost[0] ?? gone[0] ?? dead[0];
    if (first === undefined || hardwareFailed(view, first)) return undefined;
    const all = [...lost, ...gone, ...(gone.length === 0 ? dead : [])];
    const place = whoSaid(first, all, view);
    const where = place.node ?? 'every node';
    const shown = [...all, ...inOrder([noDriverLibrary], view)].filter((found) => sameLog(found, first));
    return lost.length > 0
      ? lostAccess(place, where, shown.slice(0, 3))
      : invisible(view, place, where, shown.slice(0, 3), gone.length > 0);
  },
};

function lostAccess(place: Where, where: string, shown: readonly Found[]): Match {
  return {
    cause: 'container-lost-gpu-access',
    ...place,
    shown,
    title: `The container on ${where} lost its GPU`,
    why: 'systemd wrote the device rules of running containers anew, as a daemon-reload does, and left the GPU out. The host itself is fine.',
    advice: [
      'Start the container anew; firstlight up does.',
      `For good, on ${where}: set "exec-opts": ["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json, or give the GPU by its CDI name (--device nvidia.com/gpu=all)`,
    ],
    confidence: 0.88,
    specificity: 3,
  };
}

function invisible(view: View, place: Where, where: string, shown: readonly Found[], said: boolean): Match {
  const runtime = view.evidence.recipe.run.in;
  const hidden = view.find(unseen).find(({ groups }) => groups['none'] !== undefined);
  return {
    cause: 'gpu-not-visible-in-container',
    ...place,
    shown: hidden === undefined ? shown : [...shown, hidden],
    title: `The rank on ${where} sees no GPU`,
    why:
      hidden !== undefined
        ? 'CUDA_VISIBLE_DEVICES leaves it none.'
        : runtime !== 'process'
          ? 'The container was started without access to it, or CUDA_VISIBLE_DEVICES leaves none.'
          : 'It was started without access to it (a container without --gpus all), or CUDA_VISIBLE_DEVICES leaves none.',
    advice: [
      `On ${where}: nvidia-smi -L; the same in the container must list the GPU too, then it has worked:`,
      ...(runtime === 'podman'
        ? [`On ${where}: podman run --rm --device nvidia.com/gpu=all IMAGE nvidia-smi -L`]
        : [`On ${where}: docker run --rm --gpus all IMAGE nvidia-smi -L`]),
    ],
    confidence: said ? 0.92 : 0.62,
    specificity: 3,
  };
}

/** docker has no NVIDIA runtime at all. */
export const nvidiaRuntimeMissing = lineSignature({
  name: 'nvidia-runtime-missing',
  cause: 'nvidia-runtime-not-configured',
  seenOn: 'docker 20 to 29, podman 4 and 5, nvidia-container-toolkit 1.14 to 1.20',
  source: 'moby daemon/devices and daemon/runtime_unix.go; podman CDI; libnvidia-container',
  forms: [
    pattern('could not select device driver', /could not select device driver .*(?:gpu|nvidia|"")/i),
    pattern(
      ['runtime name: nvidia', 'runtime specified nvidia', 'unresolvable CDI devices', 'from CDI'],
      /(?:unknown or )?invalid runtime name: nvidia|Unknown runtime specified nvidia|unresolvable CDI devices|failed to discover GPU vendor from CDI/,
    ),
    pattern(
      ['nvidia-container-runtime', 'nvidia-container-cli', 'libnvidia-ml.so.1'],
      /exec: "nvidia-container-runtime(?:-hook)?": executable file not found|nvidia-container-(?:cli|runtime)\S{0,300}: (?:command )?not found|nvidia-container-cli: initialization error: load library failed/,
    ),
  ],
  title: (_found, where) => `The container runtime on ${where} does not know how to give it a GPU`,
  why: 'The NVIDIA container toolkit is not installed there, or docker was not told of it.',
  advice: ({ message }, where) => [
    ...(/CDI/.test(message)
      ? [`On ${where}: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; nvidia-ctk cdi list`]
      : []),
    `On ${where}: sudo apt install nvidia-container-toolkit && sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`,
    `firstlight plan looks again; on ${where}: docker info | grep -i -A1 runtimes`,
  ],
  confidence: 0.95,
  specificity: 3,
  looks: [
    'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
  ],
});
