import { Channel } from './channel.ts';
import { WorldError } from './engine-world.ts';
import { isJson, type Json, listOf, numberOf, textOf } from './json.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';
import { vllmTraceback } from './vllm-frames.ts';
import type { VllmPlace, VllmRun } from './vllm-place.ts';
import { serveWorker } from './vllm-serving.ts';
import { bringUp, hostAddress, type VllmUp } from './vllm-start.ts';

/** What vLLM hands on of the driver's environment to its workers (ray_env.py, August 2026), by prefix. */
const COPIED = /^(?:VLLM_|FLASH_ATTENTION_|LMCACHE_|NCCL_|UCX_|HF_|HUGGING_FACE_|PYTHONHASHSEED$)/;

export type OverRay = VllmUp & {
  readonly run: VllmRun;
  readonly place: VllmPlace;
  /** Settles when a worker ends while the model serves. */
  readonly died: Promise<number>;
};

/**
 * The driver: asks the Ray of RAY_ADDRESS for a GPU per rank, has the other nodes' Ray start their workers, and is
 * rank 0 itself, in the environment that its own node's Ray was started with. Throws PythonError.
 */
export async function bringUpOverRay(
  run: VllmRun,
  place: VllmPlace,
  words: readonly string[],
): Promise<OverRay> {
  const { log, core } = place;
  const world = place.tensor * place.pipeline;
  const channel = await openRay(run);
  log.line(
    core,
    'INFO',
    'ray_utils.py:354',
    'No current placement group found. Creating a new placement group.',
  );
  const seats = await placed(run, place, channel, world);
  checkUnique(seats);
  const address = await hostAddress(run);
  const port = 30_000 + Math.floor(Math.random() * 20_000);
  const copied = copiedFrom(run.env);
  let lose: (rank: number) => void = () => {};
  const died = new Promise<number>((resolve) => {
    lose = resolve;
  });
  channel.listen((message) => {
    const rank = numberOf(message.rank) ?? 0;
    if (message.op === 'said') {
      const raylet = textOf(message.raylet);
      const who =
        raylet === undefined
          ? `(RayWorkerProc pid=${numberOf(message.pid) ?? 0}, ip=${textOf(seats[rank]?.address) ?? ''}) `
          : `(raylet, ip=${raylet}) `;
      log.plain(`${core}${who}`, textOf(message.text) ?? '');
    } else if (message.op === 'ended') lose(rank);
  });
  for (let rank = 1; rank < world; rank += 1)
    channel.send({ op: 'start', rank, env: copied, argv: [String(rank), address, String(port), ...words] });
  const own: VllmRun = { ...run, env: { ...environmentIn(seats[0]), ...copied } };
  const mine = { ...place, address, port };
  const up = bringUp(own, mine);
  const lost = died.then((rank): never => {
    log.line(
      core,
      'ERROR',
      'ray_executor_v2.py:464',
      `RayWorkerProc rank=[${rank}] died unexpectedly, shutting down executor.`,
    );
    throw new PythonError('loop', 'RuntimeError', 'Executor failed.');
  });
  lost.catch(() => undefined); // read below, or by who serves
  return { run: own, place: mine, died, ...(await Promise.race([up, lost])) };
}

/** vLLM wants an address of its own for each node (ray_utils.py); throws in its words. */
function checkUnique(seats: readonly Json[]): void {
  const ids = seats.map((seat) => textOf(seat.address) ?? '');
  const addresses = seats.map((seat, at) => environmentIn(seat)['VLLM_HOST_IP'] ?? ids[at] ?? '');
  const [nodes, unique] = [new Set(ids), new Set(addresses)];
  if (unique.size >= nodes.size) return;
  throw new PythonError(
    'kv-check',
    'RuntimeError',
    `Every node should have a unique IP address. Got ${nodes.size} nodes with node ids [${[...nodes].map((one) => `'${one}'`).join(', ')}] and ${unique.size} unique IP addresses {${[...unique].map((one) => `'${one}'`).join(', ')}}. Please check your network configuration. If you set \`VLLM_HOST_IP\` environment variable, make sure it is unique for each node.`,
  );
}

async function openRay({ world, env }: VllmRun): Promise<Channel> {
  const at = env.RAY_ADDRESS ?? '';
  try {
    return new Channel(await world.dial(at.replace(/:\d+$/, ''), Number(/\d+$/.exec(at)?.[0] ?? 0)));
  } catch (error) {
    if (!(error instanceof WorldError)) throw error;
    throw new PythonError(
      'kv-check',
      'ConnectionError',
      'Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag or `RAY_ADDRESS` environment variable.',
    );
  }
}

async function placed(
  { pace }: VllmRun,
  { log, core }: VllmPlace,
  channel: Channel,
  gpus: number,
): Promise<readonly Json[]> {
  for (let waited = 0; ; waited += 10) {
    channel.send({ op: 'place', gpus });
    const answer = await channel.receive();
    if (answer.waiting !== true) return listOf(answer.seats).filter(isJson);
    if (waited > 0)
      log.line(
        core,
        'INFO',
        'ray_utils.py:241',
        `Waiting for creating a placement group of specs for ${waited} seconds. specs=[${Array.from({ length: gpus }, () => "{'GPU': 1.0}").join(', ')}]. Check \`ray status\` and \`ray list nodes\` to see if you have enough resources, and make sure the IP addresses used by ray cluster are the same as VLLM_HOST_IP environment variable specified in each node if you are running on a multi-node.`,
      );
    await pace.wait(10_000);
  }
}

function copiedFrom(env: Env): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name === 'VLLM_HOST_IP' || !COPIED.test(name) ? [] : [[name, value]],
    ),
  );
}

function environmentIn(seat: Json | undefined): Env {
  const env = seat?.env;
  if (!isJson(env)) return {};
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, textOf(value)]));
}

/** One worker on a node, as its Ray started it: its lines have no prefix of their own, Ray gives them one. */
export async function runRayWorker(run: VllmRun, place: VllmPlace): Promise<number> {
  try {
    return await serveWorker({ run, place, ...(await bringUp(run, place)) });
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    place.log.line(
      '',
      'ERROR',
      'ray_executor_v2.py:231',
      `WorkerProc failed to start.\n${vllmTraceback(error)}`,
    );
    return 1;
  }
}
