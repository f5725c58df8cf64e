import { listOf, textOf } from './json.ts';
import type { NcclLog } from './nccl-log.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';
import type { Store } from './store.ts';
import { readIfThere } from './text-file.ts';

/** An RDMA port with the address by which the others find it. */
type Port = { readonly device: string; readonly gid: string };

/** RoCE v2 with IPv4 is at index 3 on every host of the lab, as on a Spark. */
const USUAL_INDEX = '3';
/** GB10 kernels from this one on refuse to register memory (NVIDIA/open-gpu-kernel-modules#1358). */
const REGRESSED_KERNEL = 7;
/** Under this limit NCCL's buffers cannot be pinned. */
const LEAST_MEMLOCK_KIB = 2 ** 20;

/**
 * Registers memory with the devices and joins each to one of the next rank's: by their order, by their subnets
 * (NCCL_IB_SUBNET_AWARE_ROUTING), or across (NCCL_CROSS_NIC). Throws where the kernel, a limit or the GIDs forbid it.
 */
export async function connectDevices(
  { env, log, store }: { readonly env: Env; readonly log: NcclLog; readonly store: Store },
  {
    rank,
    size,
    devices,
  }: { readonly rank: number; readonly size: number; readonly devices: readonly string[] },
): Promise<void> {
  checkRegistration(env, log);
  const index = env['NCCL_IB_GID_INDEX'] ?? USUAL_INDEX;
  if (env['NCCL_IB_GID_INDEX'] !== undefined)
    log.info('ENV', `NCCL_IB_GID_INDEX set by environment to ${index}.`);
  const cross = env['NCCL_CROSS_NIC'] === '1';
  if (env['NCCL_CROSS_NIC'] !== undefined)
    log.info('ENV', `NCCL_CROSS_NIC set by environment to ${env['NCCL_CROSS_NIC']}.`);
  const own = devices.map((device): Port => ({ device, gid: gidOf(env, device, index) }));
  await store.set(`nccl/${rank}`, { ports: own.map(({ device, gid }) => `${device} ${gid}`) });
  const told = await store.get(`nccl/${(rank + 1) % size}`);
  const peers = listOf(told.ports).map((port) => (textOf(port) ?? '').split(' ')[1] ?? '');
  const aware = env['NCCL_IB_SUBNET_AWARE_ROUTING'] === '1';
  for (const [at, { device, gid }] of own.entries()) {
    const across = peers[(at + (cross ? 1 : 0)) % peers.length] ?? '';
    const remote = (aware ? peers.find((one) => subnet(one) === subnet(gid)) : undefined) ?? across;
    const reason =
      gid === EMPTY
        ? '22 Invalid argument errno 22'
        : subnet(gid) === subnet(remote)
          ? ''
          : '110 Connection timed out errno 110';
    if (reason === '') continue;
    log.warn(
      'misc/ibvwrap.cc:282',
      `Call to ibv_modify_qp failed with ${reason}, on dev ${device}:1, curr state INIT, next state RTR, local GID index ${index}, local GID ${gid}, remote GID ${remote}`,
    );
    throw systemError();
  }
}

/** The limit on locked memory of a plain process, and what the kernel does without one. */
function checkRegistration(env: Env, log: NcclLog): void {
  const root = env['FIRSTLIGHT_ROOT'] ?? '';
  const kib = memlockKib(env);
  const low = kib !== undefined && kib < LEAST_MEMLOCK_KIB;
  const kernel = Number.parseInt(readIfThere(`${root}/proc/sys/kernel/osrelease`), 10);
  if (low)
    log.plain(
      `libibverbs: Warning: RLIMIT_MEMLOCK is ${kib * 1024} bytes.\n    This will severely limit memory registrations.\n`,
    );
  if (!low && !(root !== '' && kernel >= REGRESSED_KERNEL)) return;
  log.warn('misc/ibvwrap.cc:186', 'Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory');
  throw systemError();
}

/** KiB by limits.conf of the host; undefined where nothing limits it, as in a container that was given --ulimit memlock=-1. */
function memlockKib(env: Env): number | undefined {
  if (env['FIRSTLIGHT_LAB_MOUNTS'] !== undefined) return undefined;
  const limits = readIfThere(`${env['FIRSTLIGHT_ROOT'] ?? ''}/etc/security/limits.d/memlock.conf`);
  const told = /^\*\s+-\s+memlock\s+(\d+)$/m.exec(limits)?.[1];
  return told === undefined ? undefined : Number(told);
}

const EMPTY = '::';

/** The GID of a device at an index as NCCL prints it, `::` where the table has none. */
function gidOf(env: Env, device: string, index: string): string {
  const port = `${env['FIRSTLIGHT_ROOT'] ?? ''}/sys/class/infiniband/${device}/ports/1`;
  const gid = readIfThere(`${port}/gids/${index}`).trim();
  const mapped = /ffff:([0-9a-f]{2})([0-9a-f]{2}):([0-9a-f]{2})([0-9a-f]{2})$/.exec(gid);
  if (mapped === null) return EMPTY;
  return `::ffff:${mapped
    .slice(1)
    .map((part) => Number.parseInt(part, 16))
    .join('.')}`;
}

function subnet(gid: string): string {
  return gid.replace(/\.\d+$/, '');
}

function systemError(): PythonError {
  return new PythonError(
    'nccl',
    'RuntimeError',
    'NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)',
  );
}
