import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Id of the story's container on the pretended worker. */
export const COMFY = 'c0'.repeat(32);
const RANK = 'f1'.repeat(32);
const POD = 'ab'.repeat(32);

type Pretended = {
  readonly pid: number;
  readonly name: string;
  readonly uid: number;
  readonly residentKib: number;
  /** Of the resident, what is only page cache. */
  readonly fileKib?: number;
  readonly parent?: number;
  readonly group?: number;
  readonly session?: number;
  readonly start: number;
  readonly cgroup: string;
  readonly args: readonly string[];
  /** Name of the rank whose runner marked it. */
  readonly mark?: string;
  /** Home of whose firstlight did it; this login's own, where it is left out. */
  readonly markHome?: string;
};

const GIB_KIB = 2 ** 20;
const SESSION = '0::/user.slice/user-1000.slice/session-4.scope';
const USER = '0::/user.slice/user-1000.slice/user@1000.service';

/** The worker of the story, and everything a resolver of owners may meet on a Spark. */
const PROCESSES: readonly Pretended[] = [
  {
    pid: 1,
    name: 'systemd',
    uid: 0,
    residentKib: 14000,
    start: 2,
    cgroup: '0::/init.scope',
    args: ['/sbin/init'],
  },
  {
    pid: 700,
    name: 'sshd',
    uid: 0,
    residentKib: 9000,
    start: 900,
    cgroup: '0::/system.slice/ssh.service',
    args: ['sshd: /usr/sbin/sshd -D [listener]'],
  },
  {
    pid: 800,
    name: 'dockerd',
    uid: 0,
    residentKib: 300000,
    start: 950,
    cgroup: '0::/system.slice/docker.service',
    args: ['/usr/bin/dockerd', '-H', 'fd://'],
  },
  {
    pid: 2804,
    name: 'Xorg',
    uid: 0,
    residentKib: 90000,
    start: 1500,
    cgroup: '0::/system.slice/gdm.service',
    args: ['/usr/lib/xorg/Xorg', 'vt2'],
  },
  {
    pid: 3060,
    name: 'gnome-shell',
    uid: 1000,
    residentKib: 290000,
    start: 1600,
    cgroup: `${USER}/session.slice/org.gnome.Shell@wayland.service`,
    args: ['/usr/bin/gnome-shell'],
  },
  // The story's three holders.
  {
    pid: 4100,
    name: 'python3',
    uid: 0,
    residentKib: 2 * GIB_KIB,
    start: 40000,
    cgroup: `0::/system.slice/docker-${COMFY}.scope`,
    args: ['python3', 'main.py', '--listen', '0.0.0.0', '--api-key', 'very-secret'],
  },
  {
    pid: 4200,
    name: 'ollama',
    uid: 998,
    residentKib: 50000,
    start: 30000,
    cgroup: '0::/system.slice/ollama.service',
    args: ['/usr/local/bin/ollama', 'serve'],
  },
  {
    pid: 4201,
    name: 'ollama',
    uid: 998,
    residentKib: GIB_KIB,
    parent: 4200,
    start: 50000,
    cgroup: '0::/system.slice/ollama.service',
    args: ['/usr/local/bin/ollama', 'runner', '--port', '40001'],
  },
  {
    pid: 4300,
    name: 'python',
    uid: 0,
    residentKib: 3 * GIB_KIB,
    start: 60000,
    cgroup: '0::/',
    args: ['python', 'train.py', 'HF_TOKEN=hf_abcdefghijklmnopqrstuv'],
  },
  // A job of two processes; the script above them, of the same process group, holds nothing itself.
  {
    pid: 5000,
    name: 'bash',
    uid: 1000,
    residentKib: 4000,
    group: 5001,
    start: 61000,
    cgroup: SESSION,
    args: ['bash', 'run.sh'],
  },
  {
    pid: 5001,
    name: 'vllm',
    uid: 1000,
    residentKib: 900000,
    parent: 5000,
    group: 5001,
    session: 5000,
    start: 62000,
    cgroup: SESSION,
    args: ['/opt/venv/bin/python3', '/opt/venv/bin/vllm', 'serve', 'm'],
  },
  {
    pid: 5002,
    name: 'VLLM::EngineCor',
    uid: 1000,
    residentKib: 2 * GIB_KIB,
    parent: 5001,
    group: 5001,
    session: 5000,
    start: 62100,
    cgroup: SESSION,
    args: ['VLLM::EngineCore'],
  },
  // Things that are left alone.
  {
    pid: 6000,
    name: 'lm-studio',
    uid: 1000,
    residentKib: GIB_KIB,
    start: 63000,
    cgroup: `${USER}/app.slice/app-gnome-lmstudio-12345.scope`,
    args: ['/opt/lmstudio/lm-studio', '--type=renderer'],
  },
  {
    pid: 6100,
    name: 'tritonserver',
    uid: 0,
    residentKib: GIB_KIB,
    start: 64000,
    cgroup: `0::/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice/cri-containerd-${POD}.scope`,
    args: ['tritonserver'],
  },
  {
    pid: 6200,
    name: 'jupyter',
    uid: 1000,
    residentKib: 500000,
    start: 65000,
    cgroup: `${USER}/app.slice/llama.service`,
    args: ['llama-server', '-m', 'x.gguf'],
  },
  // Ours: one in a container, one as a process whose runner is known.
  {
    pid: 7000,
    name: 'sglang::schedul',
    uid: 0,
    residentKib: GIB_KIB,
    start: 70000,
    cgroup: `0::/system.slice/docker-${RANK}.scope`,
    args: ['sglang::scheduler'],
  },
  {
    pid: 7100,
    name: 'sh',
    uid: 1000,
    residentKib: 800,
    group: 7100,
    session: 7100,
    start: 71000,
    cgroup: SESSION,
    args: ['sh', '-s'],
  },
  {
    pid: 7101,
    name: 'python3',
    uid: 1000,
    residentKib: GIB_KIB,
    parent: 7100,
    group: 7100,
    session: 7100,
    start: 71001,
    cgroup: SESSION,
    args: ['python3', '-m', 'sglang.launch_server'],
  },
  // Small, but in the way of a port.
  {
    pid: 8000,
    name: 'python3',
    uid: 1000,
    residentKib: 9000,
    start: 80000,
    cgroup: SESSION,
    args: ['python3', '-m', 'http.server', '30000'],
  },
  // Large by what is only page cache: nobody has to be stopped to have that back.
  {
    pid: 8100,
    name: 'cp',
    uid: 1000,
    residentKib: 2 * GIB_KIB,
    fileKib: 2 * GIB_KIB - 100,
    start: 81000,
    cgroup: SESSION,
    args: ['cp'],
  },
  // Left by a rank of ours that has ended: its runner's mark is in its environment.
  {
    pid: 8200,
    name: 'VLLM::EngineCor',
    uid: 1000,
    residentKib: 700000,
    start: 82000,
    cgroup: SESSION,
    args: ['VLLM::EngineCore'],
    mark: 'ended-r0',
  },
  // Left by a rank of the same name of somebody else's firstlight: not ours, whatever it is called.
  {
    pid: 8210,
    name: 'VLLM::EngineCor',
    uid: 1001,
    residentKib: 600000,
    start: 82100,
    cgroup: SESSION,
    args: ['VLLM::EngineCore'],
    mark: 'ended-r0',
    markHome: '/home/mira',
  },
  // Somebody's loop, and what it starts.
  {
    pid: 8300,
    name: 'bash',
    uid: 1000,
    residentKib: 4000,
    start: 83000,
    cgroup: SESSION,
    args: ['bash', '-c', 'while true; do llama-server --api-key loop-secret; sleep 1; done'],
  },
  {
    pid: 8301,
    name: 'llama-server',
    uid: 1000,
    residentKib: 800000,
    parent: 8300,
    start: 83001,
    cgroup: SESSION,
    args: ['llama-server', '--api-key', 'loop-secret'],
  },
  // Hostile names and arguments.
  {
    pid: 9000,
    name: 'a) R 1 1 (b',
    uid: 12345,
    residentKib: 400000,
    start: 90000,
    cgroup: SESSION,
    args: ['it\'s "a", $(reboot)\nP 1 1 1 1 0 9 9 x', '\u001b[31mred\u0007', '-p', '\u202ereversed'],
  },
];

const APPS = [
  '2804, GPU-00000000-0000-0000-0000-000000000000, 43, /usr/lib/xorg/Xorg',
  '4100, GPU-00000000-0000-0000-0000-000000000000, 22600, python3',
  '4201, GPU-00000000-0000-0000-0000-000000000000, 31200, /usr/local/bin/ollama',
  '4300, GPU-00000000-0000-0000-0000-000000000000, 20900, python, train "x", y',
  '5002, GPU-00000000-0000-0000-0000-000000000000, [N/A], VLLM::EngineCore',
  '7000, GPU-00000000-0000-0000-0000-000000000000, 5000, sglang::scheduler',
  '99999, GPU-00000000-0000-0000-0000-000000000000, 700, gone by now',
];

const CONTAINERS = [
  inspected(
    COMFY,
    'comfyui',
    'yanwk/comfyui-boot:cu130',
    'running',
    4100,
    'unless-stopped',
    false,
    { 'com.docker.compose.project': 'pictures' },
    {
      '8188/tcp': [
        { HostIp: '0.0.0.0', HostPort: '8188' },
        { HostIp: '::', HostPort: '8188' },
      ],
    },
  ),
  inspected(
    RANK,
    'firstlight-qwen-r1',
    'lmsysorg/sglang:latest',
    'running',
    7000,
    'no',
    false,
    { 'firstlight.rank': '1' },
    {},
  ),
];

function inspected(...parts: readonly unknown[]): string {
  const [id, name, image, status, pid, policy, remove, labels, ports] = parts;
  const restart = { Name: policy, MaximumRetryCount: policy === 'on-failure' ? 5 : 0 };
  return JSON.stringify([id, `/${String(name)}`, image, status, pid, restart, remove, labels, ports]);
}

const UNITS = `Restart=always
Id=ollama.service
MainPID=4200
TriggeredBy=ollama.socket

Restart=on-failure
Id=docker.service
MainPID=800

Restart=no
Id=ssh.service
MainPID=700
`;

const LISTENING = [
  'LISTEN 0 128 0.0.0.0:22 0.0.0.0:* ino:1 sk:1 cgroup:/system.slice/ssh.service <->',
  'LISTEN 0 4096 127.0.0.1:11434 0.0.0.0:* uid:998 ino:2 sk:2 cgroup:/system.slice/ollama.service <->',
  'LISTEN 0 5 0.0.0.0:30000 0.0.0.0:* users:(("python3",pid=8000,fd=3)) uid:1000 ino:3 sk:3 cgroup:/user.slice <->',
  'LISTEN 0 5 [fe80::1]%enp1s0f0np0:8000 [::]:* users:(("a",pid=1,fd=2),("b ",pid=5001,fd=9)) ino:4 sk:4',
  'LISTEN 0 5 *:8001 *:* users:(("vllm",pid=5001,fd=9)) ino:5 sk:5',
];

/** Puts a host's file tree under `root` and stand-in tools into `bin`: sh scripts that print what was recorded. */
export function buildFakeSpark(root: string, bin: string, home: string): void {
  const put = (path: string, text: string) => putFile(join(root, path), text);
  for (const process of PROCESSES) putProcess(root, process, home);
  // Ended between two reads: no stat any more; and one whose other files are gone.
  put('proc/9100/status', 'Name:\tgone\nUid:\t0\t0\t0\t0\nVmRSS:\t  900000 kB\n');
  put('proc/9200/status', 'Name:\tgoing\nUid:\t0\t0\t0\t0\nVmRSS:\t  900000 kB\n');
  put('proc/9200/stat', `9200 (going) S 1 9200 9200 ${'0 '.repeat(15)}91000 0\n`);
  put('proc/uptime', '100000.00 50000.00\n');
  put('proc/self/cgroup', '0::/user.slice/user-1000.slice/session-9.scope\n');
  put('proc/meminfo', MEMINFO);
  put(
    'proc/pressure/memory',
    'some avg10=16.20 avg60=4.10 avg300=1.00 total=17785584\nfull avg10=14.23 avg60=3.60 avg300=0.88 total=15000000\n',
  );
  put(
    'proc/driver/nvidia/version',
    'NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.03  Release Build  (dvs-builder@U22)\nGCC version: gcc 13\n',
  );
  put('proc/sys/kernel/random/boot_id', '11111111-2222-4333-8444-555555555555\n');
  put('proc/driver/nvidia/gpus/000f:01:00.0/information', 'Model: NVIDIA GB10\n');
  put('etc/machine-id', 'feedfacefeedfacefeedfacefeedface\n');
  put('etc/hosts', '127.0.0.1 localhost\n127.0.1.1 spark-b # own name\n');
  put('etc/os-release', 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n');
  put(
    'etc/passwd',
    'root:x:0:0:root:/root:/bin/bash\nollama:x:998:998::/usr/share/ollama:/bin/false\naurora:x:1000:1000::/home/aurora:/bin/bash\n',
  );
  put(
    'proc/net/tcp',
    '  sl  local_address rem_address   st\n   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 1\n   1: 0100007F:2CAB 0100007F:2CAA 01 00000000:00000000 00:00000000 00000000   998        0 1\n',
  );
  put('opt/venv/bin/vllm', '#!/opt/venv/bin/python3\nimport sys\n');
  chmodSync(join(root, 'opt/venv/bin/vllm'), 0o755);
  put('opt/venv/lib/python3.12/site-packages/vllm-0.11.2.dist-info/METADATA', 'Name: vllm\n');
  putNetwork(root);
  putModel(join(root, 'home/aurora/models/m'));
  putOwnFolder(root, join(home, '.firstlight/feedfacefeedfacefeedfacefeedface'));
  putTools(bin);
}

function putProcess(root: string, process: Pretended, home: string): void {
  const { pid, parent = 1, group = pid, session = group, residentKib, fileKib = 0 } = process;
  const folder = join(root, 'proc', String(pid));
  const name = process.name.slice(0, 15);
  putFile(
    join(folder, 'status'),
    `Name:\t${name}\nPid:\t${pid}\nPPid:\t${parent}\nUid:\t${process.uid}\t${process.uid}\t${process.uid}\t${process.uid}\nVmRSS:\t${String(residentKib).padStart(8)} kB\nRssAnon:\t${residentKib - fileKib} kB\nRssFile:\t${fileKib} kB\nRssShmem:\t0 kB\n`,
  );
  const fields = [
    'S',
    parent,
    pid === 1 ? 1 : group,
    pid === 1 ? 1 : session,
    ...Array.from({ length: 15 }, () => 0),
    process.start,
    0,
  ];
  putFile(join(folder, 'stat'), `${pid} (${name}) ${fields.join(' ')}\n`);
  putFile(join(folder, 'cgroup'), `${process.cgroup}\n`);
  putFile(join(folder, 'cmdline'), `${process.args.join('\0')}\0`);
  const mark = `FIRSTLIGHT_RANK=${process.markHome ?? home}/.firstlight/feedfacefeedfacefeedfacefeedface/ranks/${process.mark}/`;
  putFile(join(folder, 'environ'), `PATH=/bin\0${process.mark === undefined ? '' : `${mark}\0`}`);
}

const MEMINFO = `MemTotal:       125442396 kB
MemFree:         8178892 kB
MemAvailable:   37853593 kB
Buffers:          100000 kB
Cached:         31876710 kB
SwapTotal:      16777212 kB
SwapFree:       16777212 kB
Dirty:              1024 kB
Shmem:            200000 kB
Slab:             400000 kB
SReclaimable:     150000 kB
Writeback:             0 kB
AnonPages:      15300000 kB
KernelStack:       28000 kB
PageTables:       190000 kB
Mlocked:           32000 kB
SwapCached:            0 kB
CmaTotal:         131072 kB
CmaFree:           69320 kB
Hugetlb:               0 kB
`;

function putNetwork(root: string): void {
  const net = (name: string, mtu: number, speed: string, state: string) => {
    putFile(join(root, `sys/class/net/${name}/mtu`), `${mtu}\n`);
    putFile(join(root, `sys/class/net/${name}/speed`), speed);
    putFile(join(root, `sys/class/net/${name}/operstate`), `${state}\n`);
  };
  net('lo', 65536, '', 'unknown');
  net('enP7s7', 1500, '10000\n', 'up');
  net('enp1s0f0np0', 9000, '200000\n', 'up');
  net('enp1s0f1np1', 1500, '-1\n', 'down');
  net('veth0000001', 1500, '10000\n', 'up');
  const rdma = (device: string, up: boolean, name: string) => {
    const port = join(root, `sys/class/infiniband/${device}/ports/1`);
    putFile(join(port, 'state'), up ? '4: ACTIVE\n' : '1: DOWN\n');
    putFile(join(port, 'rate'), up ? '200 Gb/sec (4X HDR)\n' : '40 Gb/sec (4X QDR)\n');
    putFile(join(port, 'link_layer'), 'Ethernet\n');
    if (up) putFile(join(port, 'gid_attrs/ndevs/3'), `${name}\n`);
    else putFile(join(root, `sys/class/infiniband/${device}/device/net/${name}/mtu`), '1500\n');
  };
  rdma('rocep1s0f0', true, 'enp1s0f0np0');
  rdma('rocep1s0f1', false, 'enp1s0f1np1');
}

function putModel(folder: string): void {
  putFile(
    join(folder, 'config.json'),
    '{"architectures": ["Qwen3MoeForCausalLM"],\n "K here": "F 1 81a4 trap"}\n',
  );
  putFile(
    join(folder, 'model.safetensors.index.json'),
    '{"metadata": {"total_size": 1234567890},\n "weight_map": {"a.weight": "model-00001-of-00003.safetensors", "b": "model-00002-of-00003.safetensors", "c": "model-00002-of-00003.safetensors", "d": "model-00003-of-00003.safetensors"}}\n',
  );
  putFile(join(folder, 'model-00001-of-00003.safetensors'), 'x'.repeat(5000));
  putFile(
    join(folder, 'model-00002-of-00003.safetensors'),
    'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4999802720\n',
  );
  putFile(join(folder, 'a name with blanks, and more.txt'), 'abc');
  mkdirSync(join(folder, 'original'), { recursive: true });
}

function putOwnFolder(root: string, folder: string): void {
  const service = (name: string, rank: number, run: string) =>
    `${JSON.stringify({ name, recipe: 'qwen', engine: 'sglang', rank, run, attempt: 2, in: 'process', recipeDigest: 'd1', effectiveDigest: 'd2', edits: [{ path: 'network', from: 'engine', to: 'auto' }], startedAt: '2026-11-29T10:00:00Z' }, null, 1)}\n`;
  putFile(join(folder, 'ranks/other-r1/service.json'), service('other-r1', 1, '3'));
  putFile(join(folder, 'ranks/other-r1/runner'), '7100 71000\n');
  putFile(join(folder, 'ranks/other-r1/log'), 'hello\n');
  putFile(join(folder, 'ranks/other-r1/serving'), '2026-11-29T10:07:02Z\n');
  putFile(join(folder, 'ranks/other-r1~1/service.json'), service('other-r1', 1, '2'));
  putFile(join(folder, 'ranks/ended-r0/service.json'), service('ended-r0', 0, '2'));
  putFile(join(folder, 'ranks/ended-r0/runner'), '700 899\n');
  putFile(join(folder, 'ranks/ended-r0/exit'), '137\n');
  putFile(join(folder, 'ranks/reused-r0/service.json'), service('reused-r0', 0, '2'));
  putFile(join(folder, 'ranks/reused-r0/runner'), '700 899\n');
  putFile(
    join(folder, 'ranks/qwen-r1/service.json'),
    service('qwen-r1', 1, '4').replace('"process"', '"docker"'),
  );
  putFile(join(folder, 'ranks/fresh-r0/service.json'), service('fresh-r0', 0, '4'));
  putFile(join(folder, 'ranks/broken-r0/service.json'), '{"name": ');
  putFile(
    join(folder, 'undo/s1/record.json'),
    '{"id": "s1", "run": "3", "title": "start ollama.service", "at": "2026-11-29T09:59:00Z", "sudo": true}\n',
  );
  putFile(join(folder, 'undo/s1/state'), 'pending\n');
  putFile(
    join(folder, 'undo/s2/record.json'),
    '{"id": "s2", "run": "3", "title": "start comfyui", "at": "2026-11-29T09:59:00Z", "sudo": false}\n',
  );
  putFile(join(folder, 'undo/s2/state'), 'restored\n');
  putFile(
    join(root, 'tmp/firstlight.lock/owner'),
    '{"owner": "aurora@laptop", "run": "4", "since": "2026-11-29T10:00:00Z", "host": "laptop", "pid": 4242}\n',
  );
}

/** printf with the text as data, as a tool's output. */
function prints(text: string): string {
  return `printf '%s\\n' '${text.replace(/\n$/, '').replaceAll("'", `'\\''`)}'`;
}

function putTools(bin: string): void {
  const tool = (name: string, body: string) => {
    putFile(join(bin, name), `#!/bin/sh\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  tool('hostname', 'echo spark-b');
  tool('uname', 'case $1 in -r) echo 6.17.0-1021-nvidia ;; -m) echo aarch64 ;; *) echo Linux ;; esac');
  tool('id', 'case $1 in -un) echo aurora ;; *) echo 1000 ;; esac');
  tool(
    'getent',
    `case "$1 $2" in 'ahosts spark-b') ${prints('127.0.1.1 STREAM spark-b\n127.0.1.1 DGRAM')} ;; 'passwd 12345') echo 'ldap-user:x:12345:1::/:/bin/sh' ;; *) exit 2 ;; esac`,
  );
  tool('sudo', "echo 'sudo: a password is required' >&2; exit 1");
  tool(
    'nvidia-smi',
    `case $1 in
--query-gpu=index,uuid,*) ${prints('0, GPU-00000000-0000-0000-0000-000000000000, 0x2E1210DE, [N/A], [N/A], 580.159.03, NVIDIA GB10')} ;;
--query-compute-apps=pid,*) ${prints(APPS.join('\n'))} ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac`,
  );
  tool(
    'docker',
    `case $1 in
ps) ${prints(`${COMFY}\n${RANK}`)} ;;
inspect) ${prints(CONTAINERS.join('\n'))} ;;
image) for last; do :; done; if [ "$last" = lmsysorg/sglang:latest ]; then echo 'sha256:1234 arm64'; else echo "Error response from daemon: No such image: $last" >&2; exit 1; fi ;;
esac`,
  );
  tool(
    'systemctl',
    `case " $* " in *' --user '*) printf 'Id=llama.service\\nRestart=no\\nMainPID=6200\\n' ;; *) ${prints(UNITS)} ;; esac`,
  );
  tool('ss', prints(LISTENING.join('\n')));
  tool(
    'ip',
    `case "$*" in
'-j addr') ${prints(
      JSON.stringify([
        {
          ifname: 'lo',
          flags: ['LOOPBACK', 'UP', 'LOWER_UP'],
          mtu: 65536,
          operstate: 'UNKNOWN',
          addr_info: [{ local: '127.0.0.1', prefixlen: 8 }],
        },
        {
          ifname: 'enP7s7',
          flags: ['UP', 'LOWER_UP'],
          mtu: 1500,
          operstate: 'UP',
          addr_info: [{ local: '10.1.230.181', prefixlen: 24 }],
        },
        {
          ifname: 'enp1s0f0np0',
          flags: ['UP', 'LOWER_UP'],
          mtu: 9000,
          operstate: 'UP',
          addr_info: [{ local: '192.168.200.13', prefixlen: 24 }],
        },
        { ifname: 'enp1s0f1np1', flags: ['NO-CARRIER', 'UP'], mtu: 1500, operstate: 'DOWN', addr_info: [] },
      ]),
    )} ;;
'-j route get 192.168.200.12') ${prints('[{"dst":"192.168.200.12","dev":"enp1s0f0np0","prefsrc":"192.168.200.13","flags":[],"uid":1000,"cache":[]}]')} ;;
*) exit 2 ;;
esac`,
  );
}

function putFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
