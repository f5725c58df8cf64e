import { describe, expect, it } from 'vitest';
import { answer, tells } from './tell.ts';

const world = (rank: number, address: string, port = 29501, size = 2) =>
  `INFO 10-03 16:22:51 [parallel_state.py:1638] world_size=${size} rank=${rank} local_rank=0 distributed_init_method=tcp://${address}:${port} backend=nccl`;
const bootstrap = (host: string, name: string, address: string) =>
  `${host}:301:301 [0] NCCL INFO Bootstrap: Using ${name}:${address}<0>`;
const waited =
  '[rank0]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.';
const gaveUp = (address: string, port = 29501) =>
  `[E1003 16:32:54.201882412 socket.cpp:1011] [c10d] The client socket has timed out after 600000ms while trying to connect to (${address}, ${port}).`;
const retrying = (address: string, reason: string, port = 29501) =>
  `[W1003 16:24:14.117003311 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host ${address}:${port} - retrying (try=3, timeout=600000ms, delay=1042ms): ${reason}`;
const gloo = (address: string, words: string) =>
  `RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: ${words}, remote=[${address}]:43121`;
const sgl = (text: string, tp = 0, time = '10:00:09') => `[2026-10-03 ${time} TP${tp}] ${text}`;
const stuck =
  '(EngineCore pid=199) INFO 10-03 12:10:01 [shm_broadcast.py:705] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).';

describe('addresses that lead nowhere', () => {
  tells([
    {
      as: 'SGLang is told to meet at localhost',
      cause: 'loopback-address-advertised',
      at: 'launcher',
      logs: {
        head: [
          "[2026-10-03 10:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=0, dist_init_addr='localhost:20000')",
          sgl('Init torch distributed begin.'),
        ],
        worker: [
          "[2026-10-03 10:00:02] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=1, dist_init_addr='localhost:20000')",
          sgl('Init torch distributed begin.', 1),
        ],
      },
    },
    {
      as: 'vLLM’s own default',
      cause: 'loopback-address-advertised',
      at: 'launcher',
      logs: {
        head: [world(0, '127.0.0.1')],
        worker: [
          'INFO 10-03 16:22:40 [serve.py:216] Launching vLLM (v0.28.0) headless multiproc executor, with head node address 127.0.0.1:29501 for torch.distributed process group.',
          retrying('127.0.0.1', 'Connection refused'),
        ],
      },
    },
    {
      as: 'Debian’s line in /etc/hosts',
      cause: 'loopback-address-advertised',
      at: 'both',
      logs: {
        head: [sgl('Init torch distributed begin.'), gloo('127.0.1.1', 'Connection refused')],
        worker: [sgl('Init torch distributed begin.', 1)],
      },
    },
    {
      as: 'the file of hosts, printed beside the wait',
      cause: 'loopback-address-advertised',
      at: 'worker',
      logs: {
        head: [world(0, '10.10.10.1'), waited],
        worker: ['127.0.0.1\tlocalhost', '127.0.1.1\tgx10-b', world(1, '10.10.10.1')],
      },
    },
    {
      as: 'Ray calls itself 127.0.0.1',
      cause: 'loopback-address-advertised',
      at: 'worker',
      logs: {
        head: [
          '2026-10-03 18:59:40,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.1',
          "(EngineCore pid=9) INFO 10-03 19:00:09 [ray_utils.py:241] Waiting for creating a placement group of specs for 310 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}].",
        ],
        worker: ['2026-10-03 18:59:44,101 INFO scripts.py:1152 -- Local node IP: 127.0.0.1'],
      },
    },
    {
      as: 'the head’s LAN address, which the worker does not reach',
      cause: 'wrong-network-address-advertised',
      at: 'launcher',
      logs: {
        head: [world(0, '10.1.230.20'), waited],
        worker: [
          bootstrap('spark-b', 'enp1s0f0np0', '192.168.200.13'),
          world(1, '10.1.230.20'),
          retrying('10.1.230.20', 'Connection timed out'),
          gaveUp('10.1.230.20'),
        ],
      },
    },
    {
      as: 'Gloo on another network, IPv6 around it',
      cause: 'wrong-network-address-advertised',
      at: 'worker',
      logs: {
        head: [bootstrap('a', 'eth2', '172.30.1.4'), gloo('::ffff:10.20.30.40', 'No route to host')],
        worker: [bootstrap('b', 'eth2', '172.30.1.5')],
      },
    },
    {
      as: 'NCCL dials the Wi-Fi',
      cause: 'wrong-network-address-advertised',
      at: 'head',
      logs: {
        head: [bootstrap('spark-a', 'wlP9s9', '192.168.1.44')],
        worker: [
          bootstrap('spark-b', 'enp1s0f1np1', '10.10.10.2'),
          'spark-b:88:120 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.168.1.44<50823> failed : Network is unreachable',
          'torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9',
        ],
      },
    },
    {
      as: 'Ray sees one more address than nodes',
      cause: 'wrong-network-address-advertised',
      at: 'worker',
      logs: {
        head: [
          "(EngineCore pid=9) RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['9f', '3c'] and 3 unique IP addresses {'192.168.7.11', '192.168.7.12', '10.40.0.12'}. Please check your network configuration. If you set `VLLM_HOST_IP` environment variable, make sure it is unique for each node.",
        ],
        worker: ['2026-10-03 18:59:44,101 INFO scripts.py:1152 -- Local node IP: 192.168.7.12'],
      },
    },
    {
      as: 'and one fewer',
      cause: 'duplicate-host-ip',
      at: 'launcher',
      logs: {
        head: [
          "(EngineCore pid=9) RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['9f', '3c'] and 1 unique IP addresses {'192.168.7.11'}. Please check your network configuration.",
        ],
        worker: [],
      },
    },
    {
      as: 'the same variable in both logs',
      cause: 'duplicate-host-ip',
      at: 'launcher',
      logs: {
        head: ['SGLANG_HOST_IP=10.10.10.1', sgl('Init torch distributed begin.')],
        worker: ['SGLANG_HOST_IP=10.10.10.1', sgl('Init torch distributed begin.', 1)],
      },
    },
    {
      as: 'the name is not known',
      cause: 'hostname-resolves-to-wrong-address',
      at: 'worker',
      logs: {
        head: [world(0, 'gx10-a'), waited],
        worker: [
          '[W1003 16:22:54.10 socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29501 (errno: 97 - Address family not supported by protocol).',
          '[W1003 16:22:54.11 socket.cpp:697] [c10d] The IPv4 network addresses of (gx10-a, 29501) cannot be retrieved (gai error: -2 - Name or service not known).',
        ],
      },
    },
    {
      as: 'the name leads to the management network',
      cause: 'hostname-resolves-to-wrong-address',
      at: 'head',
      logs: {
        head: [bootstrap('gx10-a', 'enp1s0f0np0', '10.10.10.1'), world(0, 'gx10-a'), waited],
        worker: [
          'PING gx10-a (192.168.178.40) 56(84) bytes of data.',
          '[c10d] The client socket has timed out after 600000ms while trying to connect to (gx10-a, 29501).',
        ],
      },
    },
  ]);
});

describe('interfaces, firewalls and containers', () => {
  tells([
    {
      as: 'a name that only the head has',
      cause: 'wrong-socket-interface',
      at: 'worker',
      logs: {
        head: [bootstrap('a', 'enp1s0f0np0', '10.10.10.1')],
        worker: [
          'NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0',
          'b:71:71 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found',
        ],
      },
    },
    {
      as: 'Gloo’s name, on both',
      cause: 'wrong-socket-interface',
      at: 'both',
      logs: {
        head: [
          '[rank0]: RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ib0',
        ],
        worker: [
          '[rank1]: RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ib0',
        ],
      },
    },
    {
      as: 'an IPv6 address for a name',
      cause: 'wrong-socket-interface',
      at: 'launcher',
      logs: {
        head: [
          'RuntimeError: [enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: fd00:10::1',
        ],
        worker: [],
      },
    },
    {
      as: 'named interfaces on two networks',
      cause: 'wrong-socket-interface',
      at: 'both',
      logs: {
        head: [
          'a:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0',
          bootstrap('a', 'enp1s0f0np0', '192.168.100.1'),
        ],
        worker: [
          'b:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enP7s7',
          bootstrap('b', 'enP7s7', '10.0.0.12'),
          'b:1:1 [0] NCCL WARN socketStartConnect: Connect to 192.168.100.1<40121> failed : Connection timed out',
        ],
      },
    },
    {
      as: 'named interfaces on two networks, and silence',
      cause: 'wrong-socket-interface',
      at: 'both',
      logs: {
        head: [
          'a:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0',
          bootstrap('a', 'enp1s0f0np0', '192.168.100.1'),
          stuck,
        ],
        worker: [
          'b:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0',
          bootstrap('b', 'enp1s0f0np0', '192.168.77.2'),
        ],
      },
    },
    {
      as: 'the kernel’s line of ufw',
      cause: 'firewall-blocks-ports',
      at: 'network',
      logs: {
        head: [
          world(0, '10.10.10.1'),
          'Oct 03 16:25:00 spark-a kernel: [UFW BLOCK] IN=enp1s0f0np0 OUT= SRC=10.10.10.2 DST=10.10.10.1 PROTO=TCP SPT=40210 DPT=29501',
          waited,
        ],
        worker: [
          world(1, '10.10.10.1'),
          retrying('10.10.10.1', 'Connection timed out'),
          gaveUp('10.10.10.1'),
        ],
      },
    },
    {
      as: 'the store is reached, NCCL’s own port is not',
      cause: 'firewall-blocks-ports',
      at: 'network',
      logs: {
        head: [world(0, '10.10.10.1'), bootstrap('a', 'eth1', '10.10.10.1')],
        worker: [
          world(1, '10.10.10.1'),
          bootstrap('b', 'eth1', '10.10.10.2'),
          'b:88:120 [0] NCCL WARN socketPollConnect: connect to 10.10.10.1<43219> returned Connection timed out, exceeded error retry count (35)',
        ],
      },
    },
    {
      as: 'the head’s chain drops, and the ranks wait',
      cause: 'firewall-blocks-ports',
      at: 'network',
      logs: {
        head: [
          'Chain INPUT (policy DROP)',
          'ACCEPT     tcp  --  anywhere             anywhere             tcp dpt:ssh',
          world(0, '10.10.10.1'),
          waited,
        ],
        worker: [world(1, '10.10.10.1')],
      },
    },
    {
      as: 'a network of compose',
      cause: 'container-network-isolated',
      at: 'head',
      logs: {
        head: [world(0, '172.19.0.3'), waited],
        worker: [world(1, '172.19.0.3'), retrying('172.19.0.3', 'No route to host'), gaveUp('172.19.0.3')],
      },
    },
    {
      as: 'a bridge of docker',
      cause: 'container-network-isolated',
      at: 'worker',
      logs: {
        head: [bootstrap('spark-a', 'enp1s0f0np0', '192.168.100.1'), gloo('172.17.0.2', 'No route to host')],
        worker: [],
      },
    },
    {
      as: 'both in bridges',
      cause: 'container-network-isolated',
      at: 'both',
      logs: {
        head: [bootstrap('3f9c11aa02de', 'eth0', '172.17.0.2'), world(0, '172.17.0.2'), waited],
        worker: [
          bootstrap('77ac02ee1b90', 'eth0', '172.17.0.3'),
          world(1, '172.17.0.2'),
          retrying('172.17.0.2', 'Connection timed out'),
          gaveUp('172.17.0.2'),
        ],
      },
    },
    {
      as: 'a variable that Python misses',
      cause: 'env-not-set-in-container',
      at: 'worker',
      logs: {
        head: [world(0, '10.10.10.1'), waited],
        worker: [
          'ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected, but not set',
        ],
      },
    },
    {
      as: 'a variable that dash misses',
      cause: 'env-not-set-in-container',
      at: 'worker',
      logs: {
        head: [world(0, '10.10.10.1'), waited],
        worker: ['/opt/start.sh: 4: GLOO_SOCKET_IFNAME: parameter not set or null'],
      },
    },
    {
      as: 'a port of the store',
      cause: 'port-already-in-use',
      at: 'head',
      logs: {
        head: [
          '[E1003 16:22:54.10 socket.cpp:1023] [c10d] The server socket has failed to listen on any local network address.',
          'torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29501, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use',
        ],
        worker: [retrying('10.10.10.1', 'Connection reset by peer')],
      },
    },
    {
      as: 'Ray’s head',
      cause: 'port-already-in-use',
      at: 'head',
      logs: {
        head: [
          'ConnectionError: Ray is trying to start at 10.10.10.1:6379, but is already running at 10.10.10.1:6379. Please specify a different port using the `--port` flag of `ray start` command.',
        ],
        worker: [],
      },
    },
  ]);
});

describe('the port that a line does not name', () => {
  const taken = 'OSError: [Errno 98] Address already in use';
  const titled = (...before: readonly string[]) => answer({ head: [...before, taken] }).finding?.title;

  it('is the one of the command that the log repeats, and no default that nobody said', () => {
    const args = "INFO 10-03 10:00:00 [utils.py:253] non-default args: {'model': '/m', 'port': 8123}";
    expect(titled(args)).toBe('Port 8123 on head is taken');
    expect(titled()).toBe('A port that it wants on head is taken');
  });
});

describe('ranks that do not fit together', () => {
  tells([
    {
      as: 'two heads of SGLang',
      cause: 'duplicate-node-rank',
      at: 'launcher',
      logs: {
        head: [
          "[2026-10-03 10:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=0, dist_init_addr='10.10.10.1:20000')",
          sgl('Init torch distributed begin.'),
        ],
        worker: [
          "[2026-10-03 10:00:03] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=0, dist_init_addr='10.10.10.1:20000')",
          sgl('Init torch distributed begin.'),
        ],
      },
    },
    {
      as: 'NCCL’s root',
      cause: 'duplicate-node-rank',
      at: 'launcher',
      logs: {
        head: [
          'a:1:90 [0] bootstrap.cc:121 NCCL WARN Bootstrap Root : rank 1 of 2 ranks has already checked in',
        ],
        worker: [],
      },
    },
    {
      as: 'the sizes of Gloo',
      cause: 'ranks-with-different-args',
      at: 'launcher',
      logs: {
        head: [
          'RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 16384 vs 4096',
        ],
        worker: [
          'RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.10.10.1]:1222',
        ],
      },
    },
    {
      as: 'SGLang’s arguments',
      cause: 'ranks-with-different-args',
      at: 'launcher',
      logs: {
        head: [
          "[2026-10-03 10:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=0, chunked_prefill_size=8192)",
          '[rank0]:[E1003 10:42:19.882 ProcessGroupNCCL.cpp:690] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.',
        ],
        worker: [
          "[2026-10-03 10:00:01] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=1, chunked_prefill_size=2048)",
        ],
      },
    },
    {
      as: 'torch says what each runs',
      cause: 'ranks-with-different-args',
      at: 'launcher',
      logs: {
        head: [
          'RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType=BROADCAST, TensorShape=[4096]), but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[1]).',
        ],
        worker: [],
      },
    },
    {
      as: 'the head was started again',
      cause: 'head-store-restarted-while-worker-attached',
      at: 'head',
      logs: {
        head: [
          '(APIServer pid=1) INFO 10-03 09:10:40 [api_server.py:1351] vLLM API server version 0.28.0',
          world(0, '10.10.10.1'),
          '(APIServer pid=1) INFO 10-03 09:31:02 [api_server.py:1351] vLLM API server version 0.28.0',
          world(0, '10.10.10.1'),
          waited,
        ],
        worker: [
          world(1, '10.10.10.1'),
          '[rank1]:[W1003 09:30:41.880412 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=31, addr=[spark-b]:40220, remote=[spark-a]:29501): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?',
          '[rank1]:[W1003 09:30:41.9 ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0(default_pg) Rank 1] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Connection reset by peer',
        ],
      },
    },
    {
      as: 'FlashInfer’s cache is warm on one side',
      cause: 'rank-local-kernel-cache-drift',
      at: 'worker',
      logs: {
        head: [
          '(Worker_TP0 pid=300) INFO 10-03 00:08:20 [flashinfer_autotune_cache.py:91] Config cache hit for trtllm::fused_moe::gemm1',
          '(Worker_TP0 pid=300) [Autotuner]: Autotuning process ends',
          '(Worker_TP0 pid=300) RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.100.0.15]:1222',
        ],
        worker: [
          '(Worker_TP1 pid=301) [Autotuner]: Autotuning process starts ...',
          '(Worker_TP1 pid=301) [AutoTuner]: Tuning trtllm::fused_moe::gemm1:   3%|3         | 1/32 [30:00<15:30:00, 1800.90s/profile]',
          '(Worker_TP1 pid=301) RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Application timeout caused pair closure',
        ],
      },
    },
    {
      as: 'both tune, at different places',
      cause: 'rank-local-kernel-cache-drift',
      at: 'both',
      logs: {
        head: [
          '(Worker_TP0 pid=300) [AutoTuner]: Tuning fp4_gemm: 100%|##########| 12/12 [00:03<00:00,  4.90profile/s]',
          stuck,
        ],
        worker: [
          '(Worker_TP1 pid=301) [AutoTuner]: Tuning fp4_gemm:   8%|8         | 1/12 [00:00<00:03, ?profile/s]',
        ],
      },
    },
  ]);
});

describe('Ray', () => {
  tells([
    {
      as: 'another version of Python',
      cause: 'ray-version-mismatch',
      at: 'worker',
      logs: {
        head: ['2026-10-03 18:59:40,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.1'],
        worker: [
          'RuntimeError: Version mismatch: The cluster was started with:',
          '    Ray: 2.55.0',
          '    Python: 3.12.11',
          'This process on node 10.7.0.2 was started with:',
          '    Ray: 2.55.0',
          '    Python: 3.11.9',
        ],
      },
    },
    {
      as: 'the placement group waits for a GPU',
      cause: 'ray-gpu-not-registered',
      at: 'worker',
      logs: {
        head: [
          '2026-10-03 18:59:40,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.1',
          "(EngineCore pid=9) INFO 10-03 19:00:09 [ray_utils.py:241] Waiting for creating a placement group of specs for 640 seconds. specs=[{'node:10.7.0.1': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` and `ray list nodes` to see if you have enough resources.",
          ' 1.0/1.0 GPU',
          "Error: No available node types can fulfill resource request {'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue.",
        ],
        worker: ['2026-10-03 18:59:44,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.2'],
      },
    },
    {
      as: 'vLLM counts too few',
      cause: 'ray-gpu-not-registered',
      at: 'worker',
      logs: {
        head: [
          'ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.',
        ],
        worker: ['2026-10-03 18:59:44,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.2'],
      },
    },
    {
      as: 'a TPU that is none',
      cause: 'ray-gpu-not-registered',
      at: 'worker',
      logs: {
        head: [
          '2026-10-03 18:59:40,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.1',
          ' 0.0/1.0 GPU',
          ' 0.0/1.0 TPU',
        ],
        worker: [
          '2026-10-03 18:59:44,101 INFO scripts.py:1152 -- Local node IP: 10.7.0.2',
          "resources: {'TPU': 1.0, 'CPU': 20.0}",
        ],
      },
    },
    {
      as: 'OpenBLAS cannot start a thread',
      cause: 'process-limit-too-low',
      at: 'worker',
      logs: {
        head: ['2026-10-03 22:40:12,410\tINFO worker.py:2007 -- Connected to Ray cluster.'],
        worker: [
          'OpenBLAS blas_thread_init: pthread_create failed for thread 44 of 64: Resource temporarily unavailable',
          'OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max',
        ],
      },
    },
    {
      as: 'the kernel refuses a fork',
      cause: 'process-limit-too-low',
      at: 'head',
      logs: {
        head: ['kernel: cgroup: fork rejected by pids controller in /system.slice/docker-9f.scope'],
        worker: [],
      },
    },
  ]);
});

describe('an own name on loopback, as older Gloo has it', () => {
  tells([
    {
      as: 'the peer was dialled once',
      cause: 'loopback-address-advertised',
      at: 'both',
      logs: {
        head: [
          world(0, '192.168.200.12'),
          'RuntimeError: [./gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:18323: Connection refused',
        ],
        worker: [world(1, '192.168.200.12')],
      },
    },
  ]);
});

describe('a rank of which there is no word', () => {
  const head = [world(0, '192.168.200.12'), waited];
  tells([
    {
      as: 'its log was not handed over',
      cause: 'rank-never-started',
      at: 'worker',
      logs: { head },
    },
    {
      as: 'older torch says no more than this',
      cause: 'rank-never-started',
      at: 'worker',
      logs: { head: [world(0, '192.168.200.12'), 'RuntimeError: Socket Timeout'] },
    },
  ]);

  it('is told more surely where its log is empty', () => {
    const said = answer({ head, worker: [] });
    expect(said).toMatchObject({ cause: 'rank-never-started', atFault: 'worker' });
    expect(said.confidence).toBeGreaterThan(answer({ head }).confidence);
  });

  it('is another matter where it has spoken', () => {
    expect(answer({ head, worker: [world(1, '192.168.200.12')] }).cause).not.toBe('rank-never-started');
  });
});

describe('ranks that had met and hear nothing of each other', () => {
  const silence = (rank: number) => [
    world(rank, '192.168.200.12'),
    'INFO 10-03 16:23:51 [gpu_model_runner.py:1] Starting to load model /m...',
    `[rank${rank}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete`,
  ];
  tells([
    {
      as: 'both wait in vain',
      cause: 'fabric-link-down',
      at: 'network',
      logs: { head: silence(0), worker: silence(1) },
    },
  ]);

  it('is not told where one alone waits: its peer may be busy, or gone', () => {
    const worker = silence(1).slice(0, 2);
    expect(answer({ head: silence(0), worker }).cause).not.toBe('fabric-link-down');
  });
});

describe('arguments of the ranks, read in their commands', () => {
  const serve = (rank: number, more: string) =>
    `+ vllm serve /m --tensor-parallel-size 2 --nnodes 2 --node-rank ${rank} ${more}`;
  const args =
    "INFO 10-03 16:22:41 [api_utils.py:286] non-default args: {'model_tag': '/m', 'nnodes': 2, 'enforce_eager': True}";
  const heard = (worker: string) => {
    const head = [serve(0, '--enforce-eager --max-num-seqs 4'), args, world(0, '192.168.200.12'), waited];
    return answer({ head, worker: [serve(1, worker), world(1, '192.168.200.12')] });
  };

  it('are the same where a switch stands before another flag', () => {
    expect(heard('--enforce-eager --max-num-seqs 4').cause).not.toBe('ranks-with-different-args');
  });

  it('differ where the switch says the contrary', () => {
    const said = heard('--no-enforce-eager --max-num-seqs 4');
    expect(said).toMatchObject({ cause: 'ranks-with-different-args', atFault: 'launcher' });
  });
});
