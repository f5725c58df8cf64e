import type { EngineWorld } from './engine-world.ts';
import { realPath } from './model-folder.ts';
import { NcclLog } from './nccl-log.ts';
import { connectDevices } from './nccl-rdma.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';
import type { Store } from './store.ts';
import { namesIn, readIfThere } from './text-file.ts';

type Hands = { readonly world: EngineWorld; readonly env: Env };
type Interface = { readonly name: string; readonly address: string };

/** The version that both engines' images of August 2026 bring, unless the story's bring another. */
export function ncclVersion(env: Env): string {
  return env['FIRSTLIGHT_LAB_NCCL'] ?? '2.30.7';
}

const CHANNELS = 4;

/**
 * The first communicator, as NCCL 2.30 brings it up and logs it: RDMA where the rank can open an active device,
 * else sockets, without a word of warning. Throws PythonError where NCCL_SOCKET_IFNAME names nothing that is there.
 */
export async function openCommunicator(
  { world, env: given, store }: Hands & { readonly store: Store },
  { rank, size }: { readonly rank: number; readonly size: number },
): Promise<void> {
  const env = withConfiguration(given);
  const log = new NcclLog(world.hostname, env);
  const wanted = env.NCCL_SOCKET_IFNAME ?? '';
  log.info('INIT', 'cudaDriverVersion 13000');
  if (wanted !== '') log.info('ENV', `NCCL_SOCKET_IFNAME set by environment to ${wanted}`);
  const interfaces = await interfacesOf(world, env, wanted);
  const [first] = interfaces;
  if (first === undefined) {
    log.warn('bootstrap.cc:142', 'Bootstrap: no socket interface found');
    throw new PythonError(
      'nccl',
      'RuntimeError',
      'NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)',
    );
  }
  const shown = interfaces.map(({ name, address }, index) => `[${index}]${name}:${address}<0>`);
  log.info('BOOTSTRAP', `Bootstrap: Using ${first.name}:${first.address}<0>`);
  log.info('INIT', `NCCL version ${ncclVersion(env)}+cuda13.0`);
  openPlugin(env, log);
  const devices = openRdma(env, log, first);
  const network = devices.length > 0 ? 'IB' : 'Socket';
  checkNetwork(env, log, network);
  if (network === 'Socket') log.info('INIT', `NET/Socket : Using ${shown.join(' ')}`);
  log.info('INIT', `Initialized NET plugin ${network}`);
  log.info('INIT', `Assigned NET plugin ${network} to comm`);
  log.info('INIT', `Using network ${network}`);
  const comm = `ncclCommInitRank comm 0x${(0xaaaa_d000_0000 + process.pid * 4096).toString(16)} rank ${rank} nranks ${size} cudaDev 0 nvmlDev 0 busId f01000`;
  log.info('INIT', `${comm} - Init START`);
  const [before, after] = [(rank + size - 1) % size, (rank + 1) % size];
  for (let channel = 0; channel < CHANNELS; channel += 1) {
    const via = `via NET/${network}/${channel % 2}`;
    log.info('INIT', `Channel 0${channel}/0 : ${before}[0] -> ${rank}[0] [receive] ${via}`);
    log.info('INIT', `Channel 0${channel}/0 : ${rank}[0] -> ${after}[0] [send] ${via}`);
  }
  if (devices.length > 0) await connectDevices({ env, log, store }, { rank, size, devices });
  log.info('INIT', `${comm} - Init COMPLETE`);
}

/** nccl.conf of the image: what the environment has besides wins. */
function withConfiguration(env: Env): Env {
  const path = realPath(env['NCCL_CONF_FILE'] ?? '/etc/nccl.conf', env);
  const rows = (path === undefined ? '' : readIfThere(path)).split('\n').flatMap((line) => {
    const [, name, value] = /^(NCCL_\w+)=(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ''] as const];
  });
  return { ...Object.fromEntries(rows), ...env };
}

/** A network plugin that lies in the image is loaded unless it is forbidden; libfabric's finds no provider here. */
function openPlugin(env: Env, log: NcclLog): void {
  const path = realPath('/opt/amazon/ofi-nccl/lib/libnccl-net.so', env);
  if (env['NCCL_NET_PLUGIN'] === 'none' || path === undefined || readIfThere(path) === '') {
    log.info('INIT', 'NET/Plugin: Could not find: libnccl-net.so');
    return;
  }
  log.info('INIT', 'NET/Plugin: Loaded net plugin Libfabric (v10)');
  log.info('INIT', 'NET/OFI Initializing aws-ofi-nccl 1.16.2');
  log.warn('nccl_ofi_net.c:230', 'NET/OFI No eligible providers were found');
}

/** NCCL_NET asks for one network alone. */
function checkNetwork(env: Env, log: NcclLog, network: string): void {
  const wanted = env['NCCL_NET'] ?? '';
  if (wanted === '' || wanted.toLowerCase() === network.toLowerCase()) return;
  log.info('ENV', `NCCL_NET set by environment to ${wanted}.`);
  log.warn('net.cc:340', `Error: network ${wanted} not found.`);
  throw new PythonError(
    'nccl',
    'RuntimeError',
    'NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)',
  );
}

/** The devices for RDMA: none where it is forbidden; else those that are active, match NCCL_IB_HCA, and can be opened. */
function openRdma(env: Env, log: NcclLog, first: Interface): readonly string[] {
  if (!/^(?:IB)?$/i.test(env['NCCL_NET'] ?? '')) return [];
  if ((env.NCCL_IB_DISABLE ?? '') !== '') {
    log.info('ENV', `NCCL_IB_DISABLE set by environment to ${env.NCCL_IB_DISABLE}.`);
    if (env.NCCL_IB_DISABLE === '1') {
      log.info('INIT', 'Failed to initialize NET plugin IB');
      return [];
    }
  }
  const wanted = env.NCCL_IB_HCA ?? '';
  if (wanted !== '') log.info('ENV', `NCCL_IB_HCA set to ${wanted}`);
  const devices = openableDevices(env).filter((device) => isNamed(device, wanted));
  if (devices.length === 0) log.info('INIT', 'NET/IB : No device found.');
  const using = devices.map((device, index) => ` [${index}]${device}:1/RoCE`).join('');
  log.info('INIT', `NET/IB : Using${using} [RO]; OOB ${first.name}:${first.address}<0>`);
  if (devices.length === 0) log.info('INIT', 'Failed to initialize NET plugin IB');
  return devices;
}

/** Active devices; a container can open them only when it was given /dev/infiniband. */
function openableDevices(env: Env): readonly string[] {
  const given = env.FIRSTLIGHT_LAB_DEVICES;
  if (given !== undefined && !given.split('\n').some((one) => one.startsWith('/dev/infiniband'))) return [];
  const folder = `${env.FIRSTLIGHT_ROOT ?? ''}/sys/class/infiniband`;
  return namesIn(folder).filter((device) =>
    readIfThere(`${folder}/${device}/ports/1/state`).startsWith('4:'),
  );
}

/** Interfaces that have an address, of those that NCCL_SOCKET_IFNAME asks for; without it all but loopback and docker's. */
async function interfacesOf(world: EngineWorld, env: Env, wanted: string): Promise<readonly Interface[]> {
  const there = namesIn(`${env.FIRSTLIGHT_ROOT ?? ''}/sys/class/net`);
  const asked = /^[\^=]/.test(wanted) ? [] : wanted.split(',').filter((name) => name !== '');
  const found: Interface[] = [];
  for (const name of [...new Set([...there, ...asked])]) {
    if (!isNamed(name, wanted === '' ? '^lo,docker' : wanted)) continue;
    const [address] = await world.interfaceAddress(name);
    if (address !== undefined) found.push({ name, address });
  }
  return found;
}

/** NCCL's lists of names: a beginning is enough, `=` asks for whole names, `^` turns the list round; empty is all. */
function isNamed(name: string, list: string): boolean {
  const not = list.startsWith('^');
  const exact = list.replace(/^\^/, '').startsWith('=');
  const names = list
    .replace(/^\^?=?/, '')
    .split(',')
    .map((one) => one.replace(/:\d+$/, ''))
    .filter((one) => one !== '');
  if (names.length === 0) return true;
  return names.some((one) => (exact ? name === one : name.startsWith(one))) !== not;
}
