import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LabInterface } from './network-table.ts';
import { hex, randomOf } from './random.ts';
import type { Story, StoryHost } from './story.ts';

/** Interfaces of a Spark: management, and both paths of both cages, of which one has the cable. */
export function interfacesOf(host: StoryHost, seed: string): readonly LabInterface[] {
  const random = randomOf(`mac:${seed}:${host.name}`);
  const mac = (): string => `02:${[1, 2, 3, 4, 5].map(() => hex(random, 2)).join(':')}`;
  const path = (cage: 0 | 1, second: boolean): LabInterface => {
    const cabled = host.fabric.cage === cage;
    const domain = second ? 'P2p1' : 'p1';
    return {
      name: `en${domain}s0f${cage}np${cage}`,
      address: cabled ? (second ? host.fabric.second : host.fabric.address) : undefined,
      prefix: host.fabric.prefix,
      up: cabled,
      mtu: cabled ? 9000 : 1500,
      speedMbps: cabled ? 200000 : -1,
      mac: mac(),
      port: `p${cage}`,
      rdma: `roce${domain}s0f${cage}`,
    };
  };
  return [
    {
      name: 'lo',
      address: '127.0.0.1',
      prefix: 8,
      up: true,
      mtu: 65536,
      speedMbps: -1,
      mac: '00:00:00:00:00:00',
      port: undefined,
      rdma: undefined,
    },
    {
      name: 'enP7s7',
      address: host.management.address,
      prefix: host.management.prefix,
      up: true,
      mtu: 1500,
      speedMbps: 10000,
      mac: mac(),
      port: undefined,
      rdma: undefined,
    },
    path(0, false),
    path(1, false),
    path(0, true),
    path(1, true),
  ];
}

/** Everything of a lab host's file tree that does not change while it runs. Users are those of its holders too. */
export function writeHostFiles(
  root: string,
  story: Story,
  host: StoryHost,
  interfaces: readonly LabInterface[],
  seed: string,
): void {
  const random = randomOf(`files:${seed}:${host.name}`);
  const put = putInto(root);
  for (const folder of [
    'tmp',
    'run',
    'root',
    'proc',
    'dev/shm',
    `run/user/1000`,
    `home/${host.user}`,
    'var/lib/systemd/linger',
  ]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const { cwd } of host.holders) mkdirSync(join(root, cwd), { recursive: true });
  put('etc/hostname', `${host.name}\n`);
  put('etc/machine-id', `${hex(random, 32)}\n`);
  put('etc/hosts', etcHosts(story, host));
  put('etc/passwd', passwd(host));
  put(
    'etc/os-release',
    'PRETTY_NAME="Ubuntu 24.04.4 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION="24.04.4 LTS (Noble Numbat)"\nID=ubuntu\nID_LIKE=debian\n',
  );
  put(
    'etc/dgx-release',
    `DGX_NAME="DGX Spark"\nDGX_PRETTY_NAME="NVIDIA DGX Spark"\nDGX_SWBUILD_DATE="2025-09-10-13-50-03"\nDGX_SWBUILD_VERSION="7.2.3"\nDGX_PLATFORM="DGX Spark"\nDGX_SERIAL_NUMBER="0000000000000"\n\nDGX_OTA_VERSION="7.6.0"\nDGX_OTA_DATE="Wed Sep 16 17:08:05 UTC 2026"\n`,
  );
  put('etc/systemd/logind.conf', '[Login]\n#RemoveIPC=yes\n');
  const id = hex(random, 12);
  const boot = `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-a${hex(random, 3)}-${id}`;
  if (host.memlockKib !== undefined)
    put('etc/security/limits.d/memlock.conf', `* - memlock ${host.memlockKib}\n`);
  if (host.pidsMax !== undefined) put('sys/fs/cgroup/system.slice/pids.max', `${host.pidsMax}\n`);
  put('proc/sys/kernel/random/boot_id', `${boot}\n`);
  put('proc/sys/kernel/hostname', `${host.name}\n`);
  put('proc/sys/kernel/osrelease', `${host.kernel ?? KERNEL}\n`);
  put('proc/sys/vm/drop_caches', '0\n');
  put('proc/sys/vm/min_free_kbytes', '131072\n');
  put('proc/version', `Linux version ${host.kernel ?? KERNEL} (buildd@bos03-arm64-001)\n`);
  put('proc/driver/nvidia/gpus/000f:01:00.0/information', 'Model: \t\t NVIDIA GB10\n');
  put(
    'proc/driver/nvidia/version',
    `NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  ${host.driver ?? DRIVER}  Release Build  (dvs-builder@U22)\n`,
  );
  put(
    'proc/pressure/memory',
    'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
  );
  // The hosts' clock and boot are this machine's: start times in ticks must mean the same in both.
  symlinkSync('/proc/uptime', join(root, 'proc/uptime'));
  symlinkSync('/proc/loadavg', join(root, 'proc/loadavg'));
  symlinkSync('/proc/stat', join(root, 'proc/stat'));
  symlinkSync('/proc/self', join(root, 'proc/self'));
  put('sys/class/dmi/id/product_name', 'NVIDIA_DGX_Spark\n');
  for (const item of interfaces) writeInterface(root, item);
}

/** Files that a story has besides. */
export function writeFiles(root: string, files: readonly (readonly [path: string, text: string])[]): void {
  const put = putInto(root);
  for (const [path, text] of files) put(path, text);
}

/** A folder that is the same one on every host: it lies beside their roots. */
export function shareFolder(root: string, path: string): void {
  const shared = join(root, '../../shares', path);
  mkdirSync(shared, { recursive: true });
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(shared, join(root, path));
}

function putInto(root: string): (path: string, text: string) => void {
  return (path, text) => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
}

const KERNEL = '6.17.0-1021-nvidia';
/** The driver's version where the story has no other. */
export const DRIVER = '580.159.03';

function etcHosts(story: Story, host: StoryHost): string {
  const own =
    host.etcHosts === 'own-name-on-loopback'
      ? [`127.0.1.1 ${host.name}`]
      : [`${host.etcHosts === 'right' ? host.fabric.address : host.management.address} ${host.name}`];
  const peers =
    host.etcHosts === 'right'
      ? story.hosts
          .filter(({ name }) => name !== host.name)
          .map(({ name, fabric }) => `${fabric.address} ${name}`)
      : [];
  return `127.0.0.1 localhost\n${[...own, ...peers].join('\n')}\n\n::1 ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n`;
}

function passwd(host: StoryHost): string {
  const users = new Map<string, number>([
    ['root', 0],
    [host.user, 1000],
  ]);
  for (const { user, uid } of host.holders) if (!users.has(user)) users.set(user, uid);
  const home = (user: string, uid: number): string =>
    uid === 0 ? '/root' : uid < 1000 ? `/usr/share/${user}` : `/home/${user}`;
  const shell = (uid: number): string => (uid === 0 || uid >= 1000 ? '/bin/bash' : '/bin/false');
  return `${[...users]
    .map(([user, uid]) => `${user}:x:${uid}:${uid}:${user}:${home(user, uid)}:${shell(uid)}`)
    .join('\n')}\n`;
}

/** sysfs of one interface, and of the RDMA device behind it. */
export function writeInterface(root: string, item: LabInterface): void {
  const put = putInto(root);
  const net = `sys/class/net/${item.name}`;
  put(`${net}/operstate`, item.name === 'lo' ? 'unknown\n' : item.up ? 'up\n' : 'down\n');
  put(`${net}/carrier`, item.up ? '1\n' : '0\n');
  put(`${net}/mtu`, `${item.mtu}\n`);
  put(`${net}/speed`, `${item.speedMbps}\n`);
  put(`${net}/address`, `${item.mac}\n`);
  put(`${net}/type`, item.name === 'lo' ? '772\n' : '1\n');
  put(`${net}/phys_port_name`, item.port === undefined ? '' : `${item.port}\n`);
  if (item.rdma === undefined) return;
  const device = `sys/class/infiniband/${item.rdma}`;
  put(`${device}/node_guid`, '0002:c903:0000:0001\n');
  put(`${device}/device/net/${item.name}/mtu`, `${item.mtu}\n`);
  put(`${device}/ports/1/state`, item.up ? '4: ACTIVE\n' : '1: DOWN\n');
  put(`${device}/ports/1/phys_state`, item.up ? '5: LinkUp\n' : '3: Disabled\n');
  put(`${device}/ports/1/rate`, item.up ? '200 Gb/sec (4X HDR)\n' : '40 Gb/sec (4X QDR)\n');
  put(`${device}/ports/1/link_layer`, 'Ethernet\n');
  put(`${device}/ports/1/gid_attrs/ndevs/3`, `${item.name}\n`);
  put(`${device}/ports/1/gid_attrs/types/3`, 'RoCE v2\n');
  const digits = item.address?.split('.').map((part) => Number(part).toString(16).padStart(2, '0')) ?? [];
  const mapped = `${digits.slice(0, 2).join('')}:${digits.slice(2).join('')}`;
  put(
    `${device}/ports/1/gids/3`,
    `0000:0000:0000:0000:0000:${digits.length === 4 ? `ffff:${mapped}` : '0000:0000:0000'}\n`,
  );
}

/** Replaces a file in one step, so that nobody reads half of it. */
export function replaceFile(root: string, path: string, text: string): void {
  const draft = join(root, 'run', `.${path.replaceAll('/', '-')}`);
  writeFileSync(draft, text);
  renameSync(draft, join(root, path));
}

export type ProcessFiles = {
  readonly pid: number;
  readonly ppid: number;
  readonly comm: string;
  readonly argv: readonly string[];
  readonly uid: number;
  readonly cgroup: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly residentBytes: number;
  readonly startTicks: string;
};

/** Name of environ while nobody but root could read it; real root may run the lab, so that modes keep nothing shut. */
export const HIDDEN_ENVIRON = '.environ';

/** proc/PID of one process. */
export function writeProcessFiles(root: string, of: ProcessFiles): void {
  const folder = join(root, 'proc', String(of.pid));
  mkdirSync(folder, { recursive: true });
  const put = (name: string, text: string): void => {
    rmSync(join(folder, name), { force: true });
    writeFileSync(join(folder, name), text);
  };
  const comm = of.comm.slice(0, 15);
  const kib = Math.floor(of.residentBytes / 1024);
  put('stat', stat(of, comm));
  put(
    'status',
    `Name:\t${comm}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t${of.pid}\nPid:\t${of.pid}\nPPid:\t${of.ppid}\nTracerPid:\t0\nUid:\t${[of.uid, of.uid, of.uid, of.uid].join('\t')}\nGid:\t${[of.uid, of.uid, of.uid, of.uid].join('\t')}\nVmSize:\t${kib + 65536} kB\nVmRSS:\t${kib} kB\nRssAnon:\t${kib} kB\nVmSwap:\t0 kB\nThreads:\t4\n`,
  );
  put('statm', `${Math.floor(kib / 4) + 16384} ${Math.floor(kib / 4)} 0 0 0 0 0\n`);
  put('comm', `${comm}\n`);
  put('cmdline', of.argv.map((word) => `${word}\0`).join(''));
  put('cgroup', `0::${of.cgroup}\n`);
  put(
    of.uid === 1000 ? 'environ' : HIDDEN_ENVIRON,
    Object.entries(of.env)
      .map(([key, value]) => `${key}=${value}\0`)
      .join(''),
  );
  put('oom_score_adj', '0\n');
  rmSync(join(folder, 'cwd'), { force: true });
  symlinkSync(of.cwd, join(folder, 'cwd'));
}

/** The real line, under the name and size that the process has in the lab. */
function stat(of: ProcessFiles, comm: string): string {
  const real = readFileSync(`/proc/${of.pid}/stat`, 'utf8');
  const fields = real
    .slice(real.lastIndexOf(')') + 2)
    .trimEnd()
    .split(' ');
  fields[0] = 'S';
  fields[1] = String(of.ppid);
  fields[19] = of.startTicks;
  fields[21] = String(Math.floor(of.residentBytes / 4096));
  return `${of.pid} (${comm}) ${fields.join(' ')}\n`;
}

export function removeProcessFiles(root: string, pid: number): void {
  rmSync(join(root, 'proc', String(pid)), { recursive: true, force: true });
}
