import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** Triton brings a ptxas of its own, which is older than the GPU. */
export const ptxasTooOld = lineSignature({
  name: 'ptxas-too-old',
  cause: 'bundled-ptxas-too-old',
  seenOn: 'Triton 3.3 to 3.5 on a GB10, October 2025',
  source: 'triton-lang/triton#8539; ptxas and nvcc of CUDA 12',
  forms: [
    pattern(
      [
        "is not defined for option 'gpu-name'",
        'Unsupported gpu architecture',
        'is not a recognized processor',
      ],
      /(?:ptxas|PTXAS)?.{0,600}Value '(?<arch>sm_\w{1,80})' is not defined for option 'gpu-name'|nvcc fatal.{0,600}Unsupported gpu architecture '(?<compute>\w{1,80})'|'(?<cpu>sm_1\w{1,80})' is not a recognized processor/,
    ),
    pattern(
      ['Unsupported .version', 'ptxas fatal'],
      /Unsupported \.version (?<ptx>[\d.]{1,400}); current version is '?(?<own>[\d.]{1,400})/,
    ),
  ],
  also: [
    pattern(
      ['PTXASError', 'Internal Triton PTX codegen error', 'Repro command'],
      /PTXASError|Internal Triton PTX codegen error|Repro command: (?<ptxas>\S{0,300}ptxas)/,
    ),
  ],
  title: ({ groups }, where) =>
    `The ptxas in the image does not know ${groups['arch'] ?? groups['compute'] ?? groups['cpu'] ?? 'the GPU'} of ${where}`,
  why: 'Triton compiles kernels with a ptxas that it brings along, from a CUDA that is older than this GPU.',
  advice: (_found, where) => [
    'Set TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas in env of the recipe, where the image has CUDA 13 there.',
    `Look what it knows, in the image on ${where}: /usr/local/cuda/bin/ptxas --version`,
  ],
  confidence: ({ groups }) => (groups['compute'] === undefined ? 0.96 : 0.75),
  specificity: 3,
  looks: ["ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"],
});

/** Code compiled in the image is too new for the driver that is to load it. */
export const toolchainNewer = lineSignature({
  name: 'toolchain-newer',
  cause: 'image-toolchain-newer-than-driver',
  seenOn: 'CUDA 12 and 13',
  source: 'CUDA driver API, errors 218 and 222',
  forms: [
    pattern(
      [
        'compiled with an unsupported toolchain',
        'cudaErrorUnsupportedPtxVersion',
        'CUDA_ERROR_UNSUPPORTED_PTX_VERSION',
        'PTX JIT compilation failed',
        'CUDA_ERROR_INVALID_PTX',
      ],
      /(?:provided )?PTX was compiled with an unsupported toolchain|UnsupportedPtxVersion|UNSUPPORTED_PTX_VERSION|PTX JIT compilation failed|CUDA_ERROR_INVALID_PTX/,
    ),
  ],
  title: (_found, where) => `The image compiles code that the driver of ${where} is too old to load`,
  why: 'Its CUDA is newer than the driver: what it compiles at run time the driver does not understand.',
  advice: (_found, where) => [
    `On ${where}: nvidia-smi shows the driver and the newest CUDA that it takes`,
    'Update the driver and restart the host, or use an image with an older CUDA; firstlight plan then shows the new driver.',
  ],
  confidence: 0.93,
  specificity: 3,
  looks: ['CUDA error: the provided PTX was compiled with an unsupported toolchain.'],
});

/** The driver is older than the CUDA in the image. */
export const driverTooOld = lineSignature({
  name: 'driver-too-old',
  cause: 'driver-too-old',
  seenOn: 'SGLang 0.5.3, October 2025; nvidia-container-toolkit 1.17',
  source:
    'torch c10/cuda/CUDAFunctions.cpp; CUDA runtime errors 35, 803 and 804; libnvidia-container; entry script of NGC images',
  forms: [
    pattern(
      ['driver on your system is too old', 'cudaErrorInsufficientDriver'],
      /NVIDIA driver on your system is too old(?: \(found version (?<version>\d+)\))?|cudaErrorInsufficientDriver/,
    ),
    pattern('driver version is insufficient', /CUDA driver version is insufficient for CUDA runtime version/),
    pattern(
      ['forward compatibility was attempted', 'cudaErrorCompatNotSupportedOnDevice'],
      /forward compatibility was attempted on non supported HW|cudaErrorCompatNotSupportedOnDevice/,
    ),
    pattern(
      ['unsatisfied condition: cuda', 'please update your driver to a newer version'],
      /unsatisfied condition: cuda ?>= ?(?<cuda>[\d.]{1,400})|please update your driver to a newer version/,
    ),
    pattern(
      ['This container was built for NVIDIA Driver Release', 'compatibility mode is UNAVAILABLE'],
      /built for NVIDIA Driver Release (?<wanted>[\d.]{1,400}) or later, but\s*(?:version (?<found>[\d.]{1,400}) was detected)?(?!.{0,600}ENABLED)|compatibility mode is UNAVAILABLE/,
    ),
    pattern(
      'unsupported display driver / cuda driver combination',
      /unsupported display driver \/ cuda driver combination/,
    ),
  ],
  title: (_found, where) => `The NVIDIA driver on ${where} is older than the image needs`,
  why: ({ message }) =>
    /forward compatibility/.test(message)
      ? "The image brings the libraries of a newer driver, which work on data centre GPUs only; the host's own driver is too old for it."
      : 'The CUDA that the engine was built with wants a newer driver.',
  advice: (_found, where) => [
    `On ${where}: nvidia-smi shows the driver and the newest CUDA that it takes`,
    'Update the driver and restart the host, or use an image built for that CUDA; firstlight plan then shows the new driver.',
  ],
  values: ({ groups }): Readonly<Record<string, string>> => {
    const found = Number(groups['version']);
    return found > 0 ? { cuda: `${Math.floor(found / 1000)}.${Math.floor((found % 1000) / 10)}` } : {};
  },
  confidence: ({ message }) => (/forward compat|combination/.test(message) ? 0.78 : 0.95),
  specificity: 3,
  looks: ['RuntimeError: The NVIDIA driver on your system is too old (found version 12040).'],
});

const CUDA_LIBRARY =
  'lib(?:cudart|nvrtc|cublas|cublasLt|cusparse|cusparseLt|cusolver|cufft|curand|nvJitLink|cudnn\\w{0,30}|cufile|cupti|nvfatbin|nvshmem\\w{0,30}|nvToolsExt|cutensor)';

/** A library of another CUDA version than the one in the image, or built against another torch. */
export const cudaLibraries = lineSignature({
  name: 'cuda-libraries',
  cause: 'cuda-library-version-mismatch',
  seenOn: 'SGLang 0.5.14, 2026; torch 2.4 to 2.13',
  source:
    'glibc dl-load; torch utils/cpp_extension.py and backends/cudnn; sgl-kernel load_utils.py; flashinfer',
  forms: [
    pattern(
      [
        'libcudart',
        'libnvrtc',
        'libcublas',
        'libcusparse',
        'libcusolver',
        'libcufft',
        'libcurand',
        'libnvJitLink',
        'libcudnn',
        'libcufile',
        'libcupti',
        'libnvshmem',
        'libnvToolsExt',
      ],
      new RegExp(
        `(?<library>${CUDA_LIBRARY}[\\w.-]{0,400}\\.so[\\d.]{0,400}): (?:cannot open shared object file|version \\S{1,300} not found|undefined symbol)|(?:undefined symbol|Could not load library|Unable to load any of|Failed to load|Unable to dynamically load).{0,600}?(?<other>${CUDA_LIBRARY}[\\w.-]{0,400}\\.so[\\d.]{0,400})`,
      ),
    ),
    pattern(
      [
        'undefined symbol: _Z',
        'undefined symbol: cu',
        'undefined symbol: __cuda',
        'undefined symbol: __nvJit',
      ],
      /undefined symbol: (?<symbol>_Z\w{0,80}(?:c10|torch|at\d)\w{0,80}|cu(?:blas|dnn|da|sparse)\w{0,80}|__cuda\w{1,80}|__nvJit\w{1,80})/,
    ),
    pattern(
      'detected CUDA version',
      /detected CUDA version \((?<have>[\d.]{1,400})\) mismatches the version that was used to compile\s*PyTorch \((?<built>[\d.]{1,400})\)/,
    ),
    pattern('version incompatibility', /cuDNN version incompatibility: PyTorch was compiled\s+against/),
    pattern(
      ['does not match flashinfer version', 'less than the minimum required version'],
      /flashinfer-\S{1,300} version \((?<have>[^)]{1,400})\) does not match flashinfer version|(?<package>[\w-]{1,400}) is installed with version (?<old>\S{1,300}), which is less than the minimum required version/,
    ),
    pattern('Driver/library version mismatch', /Driver\/library version mismatch/),
    pattern('Could not load any common_ops library', /Could not load any common_ops library/),
  ],
  // Engines try optional libraries and say so in passing.
  counts: ({ message }) =>
    !/\bIgnore import error|WARNING|Failed to import from vllm\._C_stable/.test(message),
  title: ({ groups }, where) =>
    `The libraries on ${where} belong to different CUDA versions${(groups['library'] ?? groups['other']) ? `: ${groups['library'] ?? groups['other']} does not fit` : ''}`,
  why: ({ message, groups }) =>
    /Driver\/library/.test(message)
      ? 'The driver was updated and the host was not restarted since: the kernel still runs the old one.'
      : groups['built'] !== undefined
        ? `The CUDA there is ${groups['have']}, and torch was built with ${groups['built']}.`
        : 'A package was built against another CUDA or another torch than the ones that are installed.',
  advice: ({ message }, where) =>
    /Driver\/library/.test(message)
      ? [`Restart ${where}: sudo reboot; firstlight plan then shows the new driver.`]
      : [
          'Install the build of that package that fits torch (cu130 for CUDA 13), or use an image that was built as a whole.',
          `See what is there, in the environment on ${where}: python3 -c "import torch; print(torch.__version__, torch.version.cuda)"`,
        ],
  confidence: ({ message }) => (/cannot open shared|detected CUDA|cuDNN version/.test(message) ? 0.9 : 0.72),
  specificity: 3,
  looks: ['ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory'],
});
