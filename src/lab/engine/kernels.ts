import { lacks } from './lacks.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** What an image may lack on this GPU: a ptxas that knows it, and code for it in the usual kernels of quantised experts. */
const LACKS = { ptxas: 'ptxas-sm_121a', experts: 'expert-kernels-sm_121' } as const;
/** Where the CUDA toolkit of every image here has its own ptxas, which is new enough. */
const TOOLKIT_PTXAS = '/usr/local/cuda/bin/ptxas';

/** Triton compiles: throws its PTXASError where its own ptxas is too old and no other one is named. */
export function compileKernels(env: Env): void {
  if (!lacks(env, LACKS.ptxas) || env['TRITON_PTXAS_PATH'] === TOOLKIT_PTXAS) return;
  throw new PythonError(
    'graphs',
    'triton.runtime.errors.PTXASError',
    'PTXAS error: Internal Triton PTX codegen error',
    ['`ptxas` stderr:', "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", ''],
  );
}

/** The experts' kernels are loaded: throws CUDA's error where the image has none for this GPU but Marlin's. */
export function loadKernels(env: Env, backend: string | undefined): void {
  if (!lacks(env, LACKS.experts) || backend === 'marlin') return;
  throw new PythonError(
    'load',
    'torch.AcceleratorError',
    'CUDA error: no kernel image is available for execution on the device',
    [
      "Search for `cudaErrorNoKernelImageForDevice' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
      'CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.',
      'For debugging consider passing CUDA_LAUNCH_BLOCKING=1',
      'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.',
      '',
    ],
  );
}
