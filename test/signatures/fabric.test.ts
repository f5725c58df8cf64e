import { describe } from 'vitest';
import { tells } from './tell.ts';

const nccl = (host: string, text: string) => `${host}:210:388 [0] NCCL INFO ${text}`;
const warn = (host: string, text: string) =>
  `[2026-10-04 11:40:22] ${host}:210:388 [0] transport/net_ib.cc:999 NCCL WARN ${text}`;
const using = (host: string, devices: readonly string[], oob = 'enp1s0f0np0:192.168.100.1') =>
  nccl(
    host,
    `NET/IB : Using ${devices.map((name, at) => `[${at}]${name}:1/RoCE`).join(' ')} [RO]; OOB ${oob}<0>`,
  );
const backend = (what: string, version = '2.28.9') =>
  `torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, ${what} (run with NCCL_DEBUG=INFO for details), NCCL version ${version}`;
const qp = (words: string, device: string, local: string, remote: string, index = 3) =>
  `Call to ibv_modify_qp failed with ${words}, on dev ${device}:1, curr state INIT, next state RTR, local GID index ${index}, local GID ${local}, remote GID ${remote}`;
const watchdog = (rank: number, sequence: number, numel: number) =>
  `[rank${rank}]:[E1004 10:42:19.882 ProcessGroupNCCL.cpp:690] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=${sequence}, OpType=ALLREDUCE, NumelIn=${numel}, NumelOut=${numel}, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.`;

describe('RDMA devices and addresses', () => {
  tells([
    {
      as: 'ports of both cages in the list',
      cause: 'wrong-rdma-device-list',
      at: 'both',
      logs: {
        head: [
          using('a', ['rocep1s0f0', 'rocep1s0f1', 'roceP2p1s0f0', 'roceP2p1s0f1']),
          warn(
            'a',
            qp('error Connection timed out errno 110', 'rocep1s0f1', '::ffff:10.10.1.1', '::ffff:10.10.0.2'),
          ),
          backend('unhandled system error'),
        ],
        worker: [using('b', ['rocep1s0f0', 'rocep1s0f1', 'roceP2p1s0f0', 'roceP2p1s0f1'])],
      },
    },
    {
      as: 'the driver’s list replaces the worker’s own',
      cause: 'wrong-rdma-device-list',
      at: 'worker',
      logs: {
        head: [using('a', ['rocep1s0f1'])],
        worker: [
          "(RayWorkerProc pid=171) INFO 10-04 12:08:30 [system_utils.py:39] Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0' to 'rocep1s0f1'",
          nccl('b', 'NET/IB : No device found.'),
        ],
      },
    },
    {
      as: 'a name that the worker does not have',
      cause: 'wrong-rdma-device-list',
      at: 'worker',
      logs: {
        head: [
          nccl('a', 'NCCL_IB_HCA set by environment to mlx5_0,mlx5_1'),
          using('a', ['mlx5_0', 'mlx5_1'], 'eth0:10.2.0.1'),
        ],
        worker: [
          nccl('b', 'NCCL_IB_HCA set by environment to mlx5_0,mlx5_1'),
          nccl('b', 'NET/IB : No device found.'),
          warn('b', 'Error: network IB not found.'),
        ],
      },
    },
    {
      as: 'the tests of perftest',
      cause: 'wrong-rdma-device-list',
      at: 'head',
      logs: {
        head: [' IB device rocep1s0f9 not found', ' Unable to find the Infiniband/RoCE device'],
        worker: [],
      },
    },
    {
      as: 'an empty GID',
      cause: 'wrong-gid-index',
      at: 'worker',
      logs: {
        head: [using('a', ['rocep1s0f0'])],
        worker: [
          nccl('b', 'NCCL_IB_GID_INDEX set by environment to 5'),
          warn('b', qp('22 Invalid argument', 'rocep1s0f0', '::', '::ffff:192.168.100.1', 5)),
        ],
      },
    },
    {
      as: 'link-local against IPv4, on both',
      cause: 'wrong-gid-index',
      at: 'both',
      logs: {
        head: [
          warn(
            'a',
            qp('110 Connection timed out', 'rocep1s0f0', 'fe80::4ebb:47ff:fe2c:1', '::ffff:192.168.100.2', 1),
          ),
        ],
        worker: [
          warn(
            'b',
            qp('110 Connection timed out', 'rocep1s0f0', '::ffff:192.168.100.2', 'fe80::4ebb:47ff:fe2c:1'),
          ),
        ],
      },
    },
    {
      as: 'old words',
      cause: 'wrong-gid-index',
      at: 'both',
      logs: {
        head: [
          'a:1:1 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error No data available',
        ],
        worker: [
          'b:1:1 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error No data available',
        ],
      },
    },
    {
      as: 'nothing is answered, the new form',
      cause: 'wrong-gid-index',
      at: 'both',
      logs: {
        head: [
          nccl('a', 'NCCL_IB_GID_INDEX set by environment to 0'),
          warn(
            'a',
            'NET/IB: Got completion from peer 192.168.100.2<55921> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send localGid fe80::1 remoteGidsfe80::2 hca rocep1s0f0',
          ),
        ],
        worker: [using('b', ['rocep1s0f0'])],
      },
    },
    {
      as: 'the table shows another place',
      cause: 'wrong-gid-index',
      at: 'worker',
      logs: {
        head: [
          nccl('a', 'NCCL_IB_GID_INDEX set by environment to 3'),
          using('a', ['rocep1s0f1', 'roceP2p1s0f1']),
        ],
        worker: [
          nccl('b', 'NCCL_IB_GID_INDEX set by environment to 3'),
          'rocep1s0f1       1       3       0000:0000:0000:0000:0000:ffff:c0a8:6402        192.168.100.2   v2      enp1s0f1np1',
          'roceP2p1s0f1     1       5       0000:0000:0000:0000:0000:ffff:c0a8:6502        192.168.101.2   v2      enP2p1s0f1np1',
          warn(
            'b',
            qp(
              'error Connection timed out errno 110',
              'roceP2p1s0f1',
              '::ffff:192.168.101.2',
              '::ffff:192.168.101.1',
            ),
          ),
        ],
      },
    },
    {
      as: 'three nodes without a switch',
      cause: 'rdma-cabling-topology',
      at: 'network',
      logs: {
        head: [
          warn(
            'a',
            qp('110 Connection timed out', 'rocep1s0f1', '::ffff:192.168.11.1', '::ffff:192.168.31.3'),
          ),
        ],
        worker: [using('b', ['rocep1s0f0', 'rocep1s0f1'])],
        worker2: [using('c', ['rocep1s0f0', 'rocep1s0f1'])],
      },
    },
    {
      as: 'the cable is out',
      cause: 'rdma-cabling-topology',
      at: 'network',
      logs: {
        head: [
          warn('a', 'NET/IB : rocep1s0f0:1 Got async event : port error'),
          warn(
            'a',
            'NET/IB : Got completion from peer 192.168.100.2<41000> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:192.168.100.1 remoteGids::ffff:192.168.100.2',
          ),
        ],
        worker: [],
      },
    },
  ]);
});

describe('what lies under NCCL', () => {
  tells([
    {
      as: 'different sizes of packets',
      cause: 'mtu-mismatch',
      at: 'network',
      logs: {
        head: [
          '3: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000',
          watchdog(0, 9, 1048576),
        ],
        worker: [
          '3: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000',
        ],
      },
    },
    {
      as: 'large pings are lost',
      cause: 'mtu-mismatch',
      at: 'network',
      logs: {
        head: [
          '+ ping -M do -s 8972 -c 3 192.168.100.2',
          '3 packets transmitted, 0 received, 100% packet loss, time 2045ms',
          watchdog(0, 9, 1048576),
        ],
        worker: [],
      },
    },
    {
      as: 'ping says so',
      cause: 'mtu-mismatch',
      at: 'network',
      logs: {
        head: [
          'ping: local error: message too long, mtu=1500',
          'a:1:1 [0] transport/net_ib.cc:793 NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129',
        ],
        worker: [],
      },
    },
    {
      as: 'the switch drops',
      cause: 'lossless-ethernet-config-lost',
      at: 'network',
      logs: {
        head: [
          'PFC configuration:',
          '\tpriority    0   1   2   3   4   5   6   7',
          '\tenabled     0   0   0   0   0   0   0   0   ',
          '     rx_discards_phy: 884213',
          warn(
            'a',
            'NET/IB : Got completion from peer 10.4.0.2<41000> with status=12 opcode=0 len=0 vendor err 129 (Send)',
          ),
        ],
        worker: [],
      },
    },
    {
      as: 'no verbs in the image, and sockets',
      cause: 'rdma-not-available-in-container',
      at: 'both',
      logs: {
        head: [nccl('a', 'Failed to open libibverbs.so[.1]'), nccl('a', 'Using network Socket')],
        worker: [nccl('b', 'Failed to open libibverbs.so[.1]'), nccl('b', 'Using network Socket')],
      },
    },
    {
      as: 'no devices on one node',
      cause: 'rdma-not-available-in-container',
      at: 'worker',
      logs: {
        head: [using('a', ['rocep1s0f0']), nccl('a', 'Using network IB')],
        worker: [
          "ls: cannot access '/dev/infiniband': No such file or directory",
          nccl('b', 'NET/IB : No device found.'),
          nccl('b', 'Using network Socket'),
        ],
      },
    },
    {
      as: 'too little may be locked',
      cause: 'memlock-limit-too-low',
      at: 'worker',
      logs: {
        head: [using('a', ['rocep1s0f0'])],
        worker: [
          'libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.',
          warn('b', 'Call to ibv_create_cq failed with error Cannot allocate memory'),
        ],
      },
    },
    {
      as: 'and no word of the limit',
      cause: 'memlock-limit-too-low',
      at: 'head',
      logs: {
        head: [
          warn('a', 'Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory'),
          backend('unhandled system error'),
        ],
        worker: [],
      },
    },
    {
      as: 'a new kernel refuses after the weights',
      cause: 'kernel-regression-rdma-registration',
      at: 'both',
      logs: {
        head: [
          'Linux spark-a 7.0.0-1021-nvidia #21-Ubuntu SMP PREEMPT_DYNAMIC aarch64 GNU/Linux',
          '(Worker_TP0 pid=3) INFO 10-04 10:02:20 [default_loader.py:430] Loading weights took 188.40 seconds',
          warn('a', 'Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory'),
        ],
        worker: [],
      },
    },
    {
      as: 'the limit is off, and it is refused all the same',
      cause: 'kernel-regression-rdma-registration',
      at: 'both',
      logs: {
        head: [
          'max locked memory           (kbytes, -l) unlimited',
          warn('a', 'Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory'),
        ],
        worker: [],
      },
    },
    {
      as: 'its versions',
      cause: 'nccl-version-mismatch-across-nodes',
      at: 'both',
      logs: {
        head: [
          warn('a', 'Mismatched NCCL version detected : rank 0 version 22703 rank 1 version 23007'),
          backend('invalid usage', '2.27.3'),
        ],
        worker: [],
      },
    },
    {
      as: 'versions that only the logs show',
      cause: 'nccl-version-mismatch-across-nodes',
      at: 'both',
      logs: {
        head: [
          '(Worker_TP0 pid=2) INFO 10-04 10:00:11 [pynccl.py:113] vLLM is using nccl==2.27.5',
          backend('internal error', '2.27.5'),
        ],
        worker: ['(Worker_TP1 pid=2) INFO 10-04 10:00:11 [pynccl.py:113] vLLM is using nccl==2.30.7'],
      },
    },
    {
      as: 'all wait in the same place',
      cause: 'nccl-build-incompatible-with-platform',
      at: 'both',
      logs: {
        head: ['vLLM is using nccl==2.28.9', watchdog(0, 7711, 4096)],
        worker: ['vLLM is using nccl==2.28.9', watchdog(1, 7711, 4096)],
      },
    },
    {
      as: 'a known release stands still after the graphs',
      cause: 'nccl-build-incompatible-with-platform',
      at: 'both',
      logs: {
        head: [
          '(Worker_TP0 pid=2) INFO 10-04 10:00:11 [pynccl.py:113] vLLM is using nccl==2.28.9',
          '(Worker_TP0 pid=2) INFO 10-04 10:06:11 [gpu_model_runner.py:7049] Graph capturing finished in 20 secs, took 1.10 GiB',
          '(EngineCore pid=1) ERROR 10-04 10:12:00 [core.py:1] TimeoutError: RPC call to sample_tokens timed out.',
        ],
        worker: ['(Worker_TP1 pid=2) INFO 10-04 10:00:11 [pynccl.py:113] vLLM is using nccl==2.28.9'],
      },
    },
    {
      as: 'an older library comes first',
      cause: 'nccl-build-incompatible-with-platform',
      at: 'head',
      logs: {
        head: [
          'ImportError: /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindowRegister',
        ],
      },
    },
    {
      as: 'a file of another machine',
      cause: 'stale-nccl-config-in-image',
      at: 'both',
      logs: {
        head: [
          nccl('a', 'NCCL_TOPO_FILE set by environment to /opt/topo/ndv5-topo.xml'),
          warn('a', 'Could not open XML file /opt/topo/ndv5-topo.xml : No such file or directory'),
          backend('unhandled system error'),
        ],
        worker: [],
      },
    },
    {
      as: 'its own file',
      cause: 'stale-nccl-config-in-image',
      at: 'both',
      logs: {
        head: ['/etc/nccl.conf: NCCL_IB_HCA=mlx5_0,mlx5_3', nccl('a', 'NET/IB : No device found.')],
        worker: [nccl('b', 'NET/IB : No device found.')],
      },
    },
    {
      as: 'docker’s 64 MiB',
      cause: 'shared-memory-too-small',
      at: 'head',
      logs: {
        head: [
          warn(
            'a',
            'Error: failed to extend /dev/shm/nccl-yXbCz1 to 33030532 bytes, error: No space left on device (28)',
          ),
          backend('unhandled system error'),
        ],
      },
    },
    {
      as: 'a bus error with a small /dev/shm',
      cause: 'shared-memory-too-small',
      at: 'worker',
      logs: {
        head: [],
        worker: ['shm              64M   64M     0 100% /dev/shm', 'Fatal Python error: Bus error'],
      },
    },
    {
      as: 'one half of the cable, by its own measure',
      cause: 'rdma-underused-one-half-or-small-mtu',
      at: 'both',
      logs: {
        head: [using('a', ['rocep1s0f0']), nccl('a', 'Using network IB'), '# Avg bus bandwidth    : 11.8312'],
        worker: [using('b', ['rocep1s0f0']), nccl('b', 'Using network IB')],
      },
    },
  ]);
});
