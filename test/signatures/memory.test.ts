import { describe } from 'vitest';
import { tells } from './tell.ts';

const check = (free: string, need: string, fraction: string, total = '121.69') =>
  `(EngineCore pid=77) ERROR 10-02 07:11:05 [core.py:1136] ValueError: Free memory on device cuda:0 (${free}/${total} GiB) on startup is less than desired GPU memory utilization (${fraction}, ${need} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.`;
const vllm = [
  '(APIServer pid=1) INFO 10-02 07:10:40 [api_server.py:1351] vLLM API server version 0.28.0',
  "(EngineCore pid=77) INFO 10-02 07:10:58 [core.py:101] Initializing a V1 LLM engine (v0.28.0) with config: model='/models/m', tensor_parallel_size=1",
];
const failed =
  '(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}';
const oom = (more = '') =>
  `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 119.70 GiB of which 812.00 MiB is free. ${more}`;
const sgl = (text: string, tp = 0, time = '10:00:09') => `[2026-10-02 ${time} TP${tp}] ${text}`;

describe('memory that is short at the start', () => {
  tells([
    {
      as: 'free -g shows the cache',
      cause: 'page-cache-hides-unified-memory',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          '               total        used        free      shared  buff/cache   available',
          'Mem:             119           7          12           0          99         108',
          'Swap:             15           0          15',
          check('11.90', '101.75', '0.85', '119.70'),
          failed,
        ],
      },
    },
    {
      as: 'an older vLLM without a device name, on the worker',
      cause: 'page-cache-hides-unified-memory',
      at: 'worker',
      logs: {
        head: vllm,
        worker: [
          'Cached:          88123456 kB',
          'ValueError: Free memory on device (31.02/119.70 GiB) on startup is less than desired GPU memory utilization (0.8, 95.76 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.',
        ],
      },
    },
    {
      as: 'the query itself fails on a GB10',
      cause: 'page-cache-hides-unified-memory',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          '  File "/usr/lib/python3.12/torch/cuda/memory.py", line 838, in mem_get_info',
          '    return torch.cuda.cudart().cudaMemGetInfo(device)',
          'RuntimeError: CUDA error: out of memory',
          failed,
        ],
      },
    },
    {
      as: 'nearly all is asked for',
      cause: 'insufficient-free-memory-at-startup',
      at: 'head',
      logs: { head: [...vllm, check('109.80', '115.61', '0.95'), failed] },
    },
    {
      as: 'a little is missing on a discrete card',
      cause: 'insufficient-free-memory-at-startup',
      at: 'head',
      logs: { head: [...vllm, check('21.10', '21.60', '0.90', '24.00'), failed] },
    },
    {
      as: 'a row of nvidia-smi with its csv form',
      cause: 'leftover-process-holds-gpu-memory',
      at: 'worker',
      logs: {
        head: vllm,
        worker: [
          'pid, process_name, used_gpu_memory [MiB]',
          '90211, sglang::scheduler_TP1, 96311 MiB',
          check('9.15', '97.35', '0.80'),
        ],
      },
    },
    {
      as: 'CUDA names the process',
      cause: 'leftover-process-holds-gpu-memory',
      at: 'head',
      logs: {
        head: [
          sgl('Init torch distributed begin.'),
          'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 7.06 MiB is free. Process 33122 has 78.60 GiB memory in use. Including non-PyTorch memory, this process has 512.00 MiB memory in use.',
        ],
      },
    },
    {
      as: 'the ranks see different amounts, told by the one that has plenty',
      cause: 'leftover-process-holds-gpu-memory',
      at: 'worker',
      logs: {
        head: [
          sgl('Init torch distributed begin.'),
          'RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=21.44, local_gpu_memory=109.10, local_gpu_memory * 0.9=98.19',
        ],
        worker: [sgl('Init torch distributed begin.', 1)],
      },
    },
    {
      as: 'the container before was stopped a moment ago',
      cause: 'gpu-memory-still-being-reclaimed',
      at: 'head',
      logs: {
        head: [
          'a1b2c3d4e5f6   vllm/vllm-openai:v0.28.0   "vllm serve"   2 hours ago   Exited (137) 9 seconds ago   vllm-old',
          ...vllm,
          check('38.20', '103.44', '0.85'),
          failed,
        ],
      },
    },
    {
      as: 'a start script that watched it come back',
      cause: 'gpu-memory-still-being-reclaimed',
      at: 'head',
      logs: {
        head: [
          '[start.sh] available memory: 31.9 GiB',
          '[start.sh] available memory: 47.0 GiB',
          '[start.sh] available memory: 58.4 GiB',
          ...vllm,
          check('58.10', '103.44', '0.85'),
        ],
      },
    },
    {
      as: 'free memory rises while vLLM measures',
      cause: 'gpu-memory-still-being-reclaimed',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          'AssertionError: Error in memory profiling. Initial free memory 41.20 GiB, current free memory 77.93 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container.',
          failed,
        ],
      },
    },
    {
      as: 'used by nobody and not cached',
      cause: 'gpu-memory-still-being-reclaimed',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          '|  No running processes found                                                             |',
          'Mem:             121          84          33           0           3          36',
          check('33.00', '103.44', '0.85'),
        ],
      },
    },
    {
      as: 'the reserve of the kernel, as sysctl prints it',
      cause: 'vm-watermark-reserve-too-high',
      at: 'worker',
      logs: {
        head: vllm,
        worker: ['vm.min_free_kbytes=8388608', check('95.10', '98.57', '0.81')],
      },
    },
    {
      as: 'a newer driver',
      cause: 'driver-version-regression',
      at: 'head',
      logs: {
        head: [
          'NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  595.44.02  Release Build',
          ...vllm,
          check('96.90', '99.79', '0.82'),
        ],
      },
    },
  ]);
});

describe('memory that runs out on the way', () => {
  tells([
    {
      as: 'while weights are read, with the kernel’s line',
      cause: 'oom-killer-during-weight-load',
      at: 'worker',
      logs: {
        head: [sgl('Load weight begin. avail mem=105.20 GB')],
        worker: [
          sgl('Load weight begin. avail mem=104.10 GB', 1),
          '[ 8123.331] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/docker-1.scope,task=sglang::schedul,pid=4711,uid=0',
          '[ 8123.332] Out of memory: Killed process 4711 (sglang::schedul) total-vm:190432100kB, anon-rss:71234000kB, file-rss:0kB, shmem-rss:0kB, UID:0',
        ],
      },
    },
    {
      as: 'docker says so',
      cause: 'oom-killer-during-weight-load',
      at: 'head',
      logs: {
        head: [
          '(Worker_TP0 pid=281) Loading safetensors checkpoint shards:  43% Completed | 13/30 [01:02<01:20,  4.7s/it]',
          '"State": { "Status": "exited", "OOMKilled": true, "ExitCode": 137 }',
        ],
      },
    },
    {
      as: 'vLLM’s worker ends with -9 in the middle of the files',
      cause: 'oom-killer-during-weight-load',
      at: 'worker',
      logs: {
        head: [
          '(Worker_TP0 pid=281) Loading safetensors checkpoint shards:  43% Completed | 13/30 [01:02<01:20,  4.7s/it]',
        ],
        worker: [
          '(Worker_TP1 pid=91) INFO 10-02 07:12:00 [weight_utils.py:858] Filesystem type for checkpoints: ext4. Checkpoint size: 180.20 GiB. Available RAM: 60.10 GiB.',
          'ERROR 10-02 07:14:00 [multiproc_executor.py:246] Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.',
        ],
      },
    },
    {
      as: 'Ray 2.44 on the other node',
      cause: 'ray-memory-monitor-killed-worker',
      at: 'worker',
      logs: {
        head: [
          '(EngineCore pid=652) ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.',
          'Memory on the node (IP: 172.22.0.8, ID: e5d953ef03e5) where the task (task ID: 43534ce9, name=RayWorkerWrapper.execute_method, pid=977, memory used=61.20GB) was running was 114.1GB / 119.7GB (0.953), which exceeds the memory usage threshold of 0.95.',
        ],
        worker: ['2026-10-02 18:59:40,101 INFO scripts.py:1152 -- Local node IP: 172.22.0.8'],
      },
    },
    {
      as: 'systemd-oomd',
      cause: 'userspace-oom-daemon-killed-worker',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          'Oct 02 07:14:11 gx10-a systemd-oomd[811]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service due to memory pressure for /user.slice/user-1000.slice/user@1000.service being 71.31% > 50.00% for > 20s with reclaim activity',
        ],
        worker: [],
      },
    },
    {
      as: 'earlyoom, in the journal of the worker',
      cause: 'userspace-oom-daemon-killed-worker',
      at: 'worker',
      logs: {
        head: [
          'torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error',
        ],
        worker: [
          'earlyoom: mem avail:  4120 of 122570 MiB ( 3.36%), swap free:    0 of 16383 MiB ( 0.00%)',
          'earlyoom: low memory! at or below SIGKILL limits: mem  5.00%, swap  5.00%',
          'earlyoom: sending SIGKILL to process 20114 uid 0 "sglang::schedul": badness 1301, VmRSS 80211 MiB',
        ],
      },
    },
    {
      as: 'the compilers',
      cause: 'jit-compile-parallelism-oom',
      at: 'head',
      logs: {
        head: [
          '[12/64] c++ -MMD -MF pybind.o.d -DTORCH_EXTENSION_NAME=moe -c pybind.cpp',
          'c++: fatal error: Killed signal terminated program cc1plus',
          'compilation terminated.',
          'ninja: build stopped: subcommand failed.',
        ],
      },
    },
    {
      as: 'the kernel ends cicc',
      cause: 'jit-compile-parallelism-oom',
      at: 'worker',
      logs: {
        head: [],
        worker: [
          'Out of memory: Killed process 9123 (cicc) total-vm:9120100kB, anon-rss:8123000kB',
          "RuntimeError: Error building extension 'fused_moe_120'",
        ],
      },
    },
    {
      as: 'the host froze, and the head lost it',
      cause: 'unified-memory-exhausted-host-freeze',
      at: 'worker',
      logs: {
        head: [
          'Timeout, server 192.168.100.11 not responding.',
          '[rank0]:[E1002 10:41:20.118 ProcessGroupNCCL.cpp:683] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=11, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.',
        ],
        worker: [
          'Oct 02 10:30:09 spark-b kernel: NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359',
          'Oct 02 10:30:44 spark-b kernel: INFO: task kswapd0:121 blocked for more than 120 seconds.',
        ],
      },
    },
    {
      as: 'the driver finds nothing although much is available',
      cause: 'unified-memory-exhausted-driver-alloc',
      at: 'head',
      logs: {
        head: [
          '(EngineCore pid=220) INFO 10-02 10:02:20 [default_loader.py:430] Loading weights took 188.40 seconds',
          'MemAvailable: 22.5 GiB',
          'kernel: NVRM: GPU0 nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal',
          'torch.AcceleratorError: CUDA error: out of memory',
        ],
      },
    },
    {
      as: 'neither docker nor the kernel knows who sent it',
      cause: 'device-allocation-failed-sigkill-unattributed',
      at: 'head',
      logs: {
        head: [
          'RuntimeError: CUDA error: out of memory',
          'container sglang-head exited with code 137',
          '"OOMKilled": false',
        ],
      },
    },
    {
      as: 'page cache while the weights are read',
      cause: 'page-cache-hides-unified-memory',
      at: 'worker',
      logs: {
        head: [sgl('Load weight begin. avail mem=108.10 GB')],
        worker: [
          sgl('Load weight begin. avail mem=108.00 GB', 1),
          oom(
            'Including non-PyTorch memory, this process has 51.20 GiB memory in use. Of the allocated memory 50.90 GiB is allocated by PyTorch.',
          ),
        ],
      },
    },
  ]);
});

describe('the KV cache and graphs', () => {
  tells([
    {
      as: 'V0’s words',
      cause: 'kv-cache-too-small-for-max-len',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (88352). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        ],
      },
    },
    {
      as: 'V1’s words',
      cause: 'kv-cache-too-small-for-max-len',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          "ValueError: To serve at least one request with the models's max seq len (65536), (8.00 GiB KV cache is needed, which is larger than the available KV cache memory (6.11 GiB). Based on the available memory, the estimated maximum model length is 50032. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        ],
      },
    },
    {
      as: 'the head says what the worker lacks',
      cause: 'kv-cache-too-small-for-max-len',
      at: 'worker',
      logs: {
        head: [
          ...vllm,
          '(Worker_TP0 pid=80) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: 2.11 GiB',
          "(EngineCore pid=77) ERROR 10-02 07:12:21 [core.py:1136] ValueError: To serve at least one request with the model's max seq len (262144), 3.07 GiB KV cache is needed, which is larger than the available KV cache memory (1.04 GiB). Based on the available memory, the estimated maximum model length is 84880.",
          failed,
        ],
        worker: [
          '(Worker_TP1 pid=81) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: 1.04 GiB',
        ],
      },
    },
    {
      as: 'the head says that nothing is left on the worker',
      cause: 'gpu-memory-utilization-too-low',
      at: 'worker',
      logs: {
        head: [
          ...vllm,
          '(Worker_TP0 pid=80) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: 0.31 GiB',
          '(EngineCore pid=77) ERROR 10-02 07:12:21 [core.py:1136] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
          failed,
        ],
        worker: [
          '(Worker_TP1 pid=81) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: -0.66 GiB',
        ],
      },
    },
    {
      as: 'the profile counted memory of somebody else',
      cause: 'kv-cache-negative-other-process-counted',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          'INFO 10-02 07:12:11 [worker.py:287] the current vLLM instance can use total_gpu_memory (121.69GiB) x gpu_memory_utilization (0.80) = 97.35GiB; model weights take 41.20GiB; non_torch_memory takes 58.71GiB; PyTorch activation peak memory takes 1.40GiB; the rest of the memory reserved for KV Cache is -3.96GiB.',
          'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
        ],
      },
    },
    {
      as: 'the sum shows that another one was counted',
      cause: 'kv-cache-negative-other-process-counted',
      at: 'head',
      logs: {
        head: [
          "(APIServer pid=1) INFO 10-02 07:10:40 [utils.py:233] non-default args: {'model': '/models/m', 'gpu_memory_utilization': 0.8}",
          ...vllm,
          '(EngineCore pid=77) INFO 10-02 07:12:00 [gpu_model_runner.py:2700] Model loading took 31.20 GiB memory and 61.1 seconds',
          '    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.',
          '(EngineCore pid=77) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: -14.02 GiB',
          'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
        ],
      },
    },
    {
      as: 'the weights alone fill the share',
      cause: 'gpu-memory-utilization-too-low',
      at: 'head',
      logs: {
        head: [
          "(APIServer pid=1) INFO 10-02 07:10:40 [utils.py:233] non-default args: {'model': '/models/m', 'gpu_memory_utilization': 0.5}",
          ...vllm,
          '(EngineCore pid=77) INFO 10-02 07:12:00 [gpu_model_runner.py:2700] Model loading took 60.90 GiB memory and 61.1 seconds',
          '(EngineCore pid=77) INFO 10-02 07:12:20 [gpu_worker.py:430] Available KV cache memory: -1.77 GiB',
          'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.',
        ],
      },
    },
    {
      as: 'SGLang’s pool, older and newer words',
      cause: 'kv-pool-size-not-positive',
      at: 'head',
      logs: {
        head: [
          sgl(
            'Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=9.10 GB, mem usage=98.30 GB.',
          ),
          'RuntimeError: Not enough memory. Please try increasing --mem-fraction-static.',
        ],
      },
    },
    {
      as: 'SGLang’s capture',
      cause: 'cuda-graph-capture-oom',
      at: 'head',
      logs: {
        head: [
          sgl('Capture cuda graph begin. This can take up to several minutes. avail mem=1.92 GB'),
          'Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 300.00 MiB is free.',
          'Possible solutions:',
          '1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)',
        ],
      },
    },
    {
      as: 'vLLM’s capture',
      cause: 'cuda-graph-capture-oom',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          '(EngineCore pid=77) Capturing CUDA graphs (decode, FULL):  35%|###5      | 18/51 [00:09<00:17,  1.9it/s]',
          '(EngineCore pid=77) ERROR 10-02 07:15:00 [core.py:1136] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 121.69 GiB of which 11.00 MiB is free.',
        ],
      },
    },
    {
      as: 'the sampler’s warm-up',
      cause: 'too-many-sequences-for-memory',
      at: 'head',
      logs: {
        head: [
          ...vllm,
          'RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.',
        ],
      },
    },
    {
      as: 'graphs that break over several nodes',
      cause: 'cuda-graph-capture-with-host-staged-nccl',
      at: 'both',
      logs: {
        head: [
          '(Worker_TP0 pid=280) Capturing CUDA graphs (decode, FULL):   2%|2         | 1/51 [00:00<00:40,  1.2it/s]',
          "spark-a:280:410 [0] NCCL WARN Cuda failure 900 'operation not permitted when stream is capturing'",
        ],
        worker: [
          '(Worker_TP1 pid=188) Capturing CUDA graphs (decode, FULL):   2%|2         | 1/51 [00:00<00:40,  1.2it/s]',
          '(Worker_TP1 pid=188) ERROR 10-02 18:02:10 [multiproc_executor.py:870] RuntimeError: CUDA error: operation failed due to a previous error during capture',
        ],
      },
    },
  ]);
});
