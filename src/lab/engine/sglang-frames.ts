import { type Frame, type PythonError, type Site, TORCH_FRAMES, traceback } from './python-error.ts';

const SRT = '/sgl-workspace/sglang/python/sglang/srt';
const at = (file: string, line: number, name: string, code: string): Frame => [
  `${SRT}/${file}`,
  line,
  name,
  code,
];

const WORKER: readonly Frame[] = [
  at('managers/scheduler.py', 5046, 'run_scheduler_process', 'scheduler = Scheduler('),
  at('managers/scheduler.py', 421, '__init__', 'self.init_model_worker()'),
  at('managers/tp_worker.py', 262, '__init__', 'self._init_model_runner()'),
];
const DISTRIBUTED: readonly Frame[] = [
  ...WORKER,
  at(
    'model_executor/model_runner.py',
    402,
    '__init__',
    'pre_model_load_memory = self.init_torch_distributed()',
  ),
];
const GROUPS: readonly Frame[] = [
  ...DISTRIBUTED,
  at('distributed/bootstrap.py', 118, 'init_torch_distributed', 'initialize_model_parallel('),
  at('distributed/parallel_state.py', 2453, 'init_model_parallel_group', 'return GroupCoordinator('),
];
const LOAD: readonly Frame[] = [
  ...WORKER,
  at('model_executor/model_runner.py', 1071, 'load_model', 'self.model = self.loader.load_model('),
];
const POOL: readonly Frame[] = [
  ...WORKER,
  at('mem_cache/kv_cache_configurator.py', 233, 'configure', 'self._init_pools()'),
];

/** Where SGLang v0.5.18 raises, by site, down to torch's own frames. */
const FRAMES: Readonly<Record<Site, readonly Frame[]>> = {
  'set-device': [
    ...DISTRIBUTED,
    at(
      'distributed/bootstrap.py',
      78,
      'init_torch_distributed',
      'torch.get_device_module(self.device).set_device(self.gpu_id)',
    ),
  ],
  store: [
    ...DISTRIBUTED,
    at('distributed/bootstrap.py', 101, 'init_torch_distributed', 'init_distributed_environment('),
    at(
      'distributed/parallel_state.py',
      2302,
      'init_distributed_environment',
      'torch.distributed.init_process_group(',
    ),
  ],
  gloo: [
    ...GROUPS,
    at('distributed/parallel_state.py', 292, '__init__', 'cpu_group = torch.distributed.new_group('),
  ],
  nccl: [
    ...GROUPS,
    at('distributed/parallel_state.py', 318, '__init__', 'self.pynccl_comm = PyNcclCommunicator('),
    at(
      'distributed/device_communicators/pynccl_wrapper.py',
      351,
      'NCCL_CHECK',
      'raise RuntimeError(f"NCCL error: {error_str}")',
    ),
  ],
  queue: [
    ...GROUPS,
    at(
      'distributed/parallel_state.py',
      372,
      '__init__',
      'self.mq_broadcaster = MessageQueue.create_from_process_group(',
    ),
    at(
      'distributed/device_communicators/shm_broadcast.py',
      241,
      '__init__',
      'self.remote_socket.bind(socket_addr)',
    ),
  ],
  balance: [
    ...DISTRIBUTED,
    at('distributed/bootstrap.py', 331, 'init_torch_distributed', 'raise RuntimeError('),
  ],
  load: LOAD,
  barrier: [
    ...LOAD,
    at(
      'model_executor/model_runner_components/load_model_utils.py',
      349,
      'wait_for_peers',
      'dist.monitored_barrier(',
    ),
  ],
  pool: [...POOL, at('mem_cache/kv_cache_configurator.py', 258, '_init_pools', 'raise RuntimeError(')],
  graphs: [
    ...WORKER,
    at(
      'model_executor/model_runner_components/cuda_graph_setup.py',
      388,
      'capture',
      'self.graph_runner.capture()',
    ),
  ],
  draft: [
    ...WORKER,
    at(
      'speculative/eagle_worker_v2.py',
      214,
      'init_cuda_graphs',
      'self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(',
    ),
    at(
      'speculative/eagle_draft_cuda_graph_runner.py',
      168,
      'capture_one_batch_size',
      'spec_info.positions[:num_tokens] = positions',
    ),
  ],
  'memory-check': WORKER,
  'kv-check': POOL,
  parser: WORKER,
  loop: [
    at('managers/scheduler.py', 5061, 'run_scheduler_process', 'scheduler.run_event_loop()'),
    at('managers/scheduler.py', 1702, 'event_loop_overlap', 'recv_reqs = self.recv_requests()'),
  ],
};

/** `Scheduler hit an exception: Traceback …`, as one message of several lines. */
export function schedulerException(error: PythonError): string {
  const frames = [...FRAMES[error.site], ...(TORCH_FRAMES[error.site] ?? [])];
  return `Scheduler hit an exception: ${traceback(error, frames).join('\n')}\n`;
}

/** The main process died before there was a scheduler. */
export function mainException(type: string, message: string): string {
  const frames: readonly Frame[] = [
    ['/usr/local/bin/sglang', 8, '<module>', 'sys.exit(main())'],
    [
      '/sgl-workspace/sglang/python/sglang/cli/serve.py',
      96,
      'serve',
      'server_args = prepare_server_args(argv)',
    ],
    at('server_args.py', 9391, 'prepare_server_args', 'return ServerArgs.from_cli_args(raw_args)'),
  ];
  return [
    'Traceback (most recent call last):',
    ...frames.flatMap(([file, line, name, code]) => [
      `  File "${file}", line ${line}, in ${name}`,
      `    ${code}`,
    ]),
    `${type}: ${message}`,
    '',
  ].join('\n');
}
