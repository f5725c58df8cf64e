import { type Frame, type PythonError, type Site, TORCH_FRAMES, traceback } from './python-error.ts';

const VLLM = '/usr/local/lib/python3.12/dist-packages/vllm';
const at = (file: string, line: number, name: string, code: string): Frame => [
  `${VLLM}/${file}`,
  line,
  name,
  code,
];

const WORKER: readonly Frame[] = [
  at('v1/executor/multiproc_executor.py', 841, 'worker_main', 'worker = WorkerProc(*args, **kwargs)'),
  at('v1/executor/multiproc_executor.py', 612, '__init__', 'self.worker.init_device()'),
];
const DISTRIBUTED: readonly Frame[] = [
  ...WORKER,
  at('v1/worker/gpu_worker.py', 268, 'init_device', 'init_worker_distributed_environment('),
];
const GROUPS: readonly Frame[] = [
  ...DISTRIBUTED,
  at(
    'distributed/parallel_state.py',
    1672,
    'init_distributed_environment',
    '_WORLD = init_world_group(ranks, local_rank, backend)',
  ),
];
const LOAD: readonly Frame[] = [
  at('v1/executor/multiproc_executor.py', 841, 'worker_main', 'worker = WorkerProc(*args, **kwargs)'),
  at('v1/executor/multiproc_executor.py', 618, '__init__', 'self.worker.load_model()'),
  at('v1/worker/gpu_worker.py', 361, 'load_model', 'self.model_runner.load_model(eep_scale_up=eep_scale_up)'),
];
const CORE: readonly Frame[] = [
  at(
    'v1/engine/core.py',
    1127,
    'run_engine_core',
    'engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)',
  ),
  at('v1/engine/core.py', 168, '__init__', 'kv_cache_config = self._initialize_kv_caches(vllm_config)'),
];

/** Where vLLM (main, August 2026) raises, by site, down to torch's own frames. */
const FRAMES: Readonly<Record<Site, readonly Frame[]>> = {
  'set-device': [
    ...WORKER,
    at('v1/worker/gpu_worker.py', 241, 'init_device', 'current_platform.set_device(self.device)'),
  ],
  store: [
    ...DISTRIBUTED,
    at(
      'distributed/parallel_state.py',
      1655,
      'init_distributed_environment',
      'torch.distributed.init_process_group(',
    ),
  ],
  gloo: [
    ...GROUPS,
    at('distributed/parallel_state.py', 372, '__init__', 'cpu_group = torch.distributed.new_group('),
  ],
  nccl: [
    ...GROUPS,
    at(
      'distributed/device_communicators/cuda_communicator.py',
      71,
      '__init__',
      'self.pynccl_comm = PyNcclCommunicator(',
    ),
    at(
      'distributed/device_communicators/pynccl_wrapper.py',
      382,
      'NCCL_CHECK',
      'raise RuntimeError(f"NCCL error: {error_str}")',
    ),
  ],
  queue: [
    ...GROUPS,
    at(
      'distributed/parallel_state.py',
      1843,
      'create_mq_broadcaster',
      'return MessageQueue.create_from_process_group(',
    ),
    at(
      'distributed/device_communicators/shm_broadcast.py',
      421,
      '__init__',
      'self.remote_socket.bind(socket_addr)',
    ),
  ],
  balance: WORKER,
  load: LOAD,
  barrier: LOAD,
  pool: LOAD,
  graphs: [...CORE, at('v1/worker/gpu_model_runner.py', 7011, 'capture_model', 'self._capture_cudagraphs(')],
  draft: [
    at('v1/worker/gpu_model_runner.py', 7011, 'capture_model', 'self._capture_cudagraphs('),
    at('v1/worker/gpu_model_runner.py', 5204, '_dummy_run', 'self.drafter.dummy_run('),
    at('v1/spec_decode/eagle.py', 1187, 'dummy_run', 'self.positions[:num_tokens] = positions'),
  ],
  'memory-check': [
    ...WORKER,
    at(
      'v1/worker/gpu_worker.py',
      291,
      'init_device',
      'self.requested_memory = request_memory(init_snapshot, self.cache_config)',
    ),
    at('v1/worker/utils.py', 452, 'request_memory', 'raise ValueError('),
  ],
  'kv-check': [
    ...CORE,
    at('v1/core/kv_cache_utils.py', 1712, 'get_kv_cache_configs', '_check_enough_kv_cache_memory('),
  ],
  parser: [
    at(
      'v1/engine/core.py',
      1127,
      'run_engine_core',
      'engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)',
    ),
    at(
      'v1/engine/core.py',
      181,
      '__init__',
      'self.structured_output_manager = StructuredOutputManager(vllm_config)',
    ),
    at(
      'v1/structured_output/__init__.py',
      82,
      '__init__',
      'self.reasoner = reasoner_cls(tokenizer=self.tokenizer)',
    ),
    at('reasoning/basic_parsers.py', 55, '__init__', 'raise RuntimeError('),
  ],
  loop: [at('v1/executor/multiproc_executor.py', 388, 'get_response', 'status, result = mq.dequeue(')],
};

export function vllmTraceback(error: PythonError): string {
  return traceback(error, [...FRAMES[error.site], ...(TORCH_FRAMES[error.site] ?? [])])
    .join('\n')
    .trimEnd();
}

const API: readonly Frame[] = [
  ['/usr/local/bin/vllm', 8, '<module>', 'sys.exit(main())'],
  at('entrypoints/cli/main.py', 75, 'main', 'args.dispatch_function(args)'),
  at('entrypoints/cli/serve.py', 124, 'cmd', 'uvloop.run(run_server(args))'),
];

/** An exception that ends the API server or the headless parent: printed whole, without a level. */
export function mainTraceback(type: string, message?: string, frames = API): string {
  return [
    'Traceback (most recent call last):',
    ...frames.flatMap(([file, line, name, code]) => [
      `  File "${file}", line ${line}, in ${name}`,
      `    ${code}`,
    ]),
    message === undefined ? type : `${type}: ${message}`,
  ].join('\n');
}

/** A worker's failure as its parent raises it. */
/** Where the engine core learns of it. */
export const WORKER_FAILED_FRAMES: readonly Frame[] = [
  at(
    'v1/engine/core.py',
    1127,
    'run_engine_core',
    'engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)',
  ),
  at('v1/engine/core.py', 142, '__init__', 'self.model_executor = executor_class(vllm_config)'),
  at(
    'v1/executor/multiproc_executor.py',
    198,
    '_init_executor',
    'self.workers = WorkerProc.wait_for_ready(unready_workers)',
  ),
];
export const WORKER_FAILED =
  'WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.';
export const CORE_FAILED = 'Engine core initialization failed. See root cause above. Failed core proc(s): {}';
