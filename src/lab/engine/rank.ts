import { readFileSync } from 'node:fs';
import type { EngineWorld } from './engine-world.ts';
import { gpuFreeBytes, WorldError } from './engine-world.ts';
import { connectFullMesh } from './gloo.ts';
import { Group } from './group.ts';
import { CONTEXT_BYTES, GIB } from './memory-model.ts';
import type { Pace } from './pace.ts';
import { cudaOutOfMemory, PythonError, type Site, torchOutOfMemory } from './python-error.ts';
import { lostStore, rendezvous, type Store } from './store.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** One rank's memory on its GPU, grown step by step; refusals become the errors that CUDA and torch have for them. */
export class Device {
  bytes = 0;
  /** How much of a big machine's overheads this one has: a host of a few GiB, under test, must not drown in them. */
  share = 1;
  readonly world: EngineWorld;
  readonly #visible: boolean;
  readonly #env: Env;
  /** `FIRSTLIGHT_LAB_GPUS=none`: a container that was given no GPU. */
  constructor(world: EngineWorld, env: Env) {
    this.world = world;
    this.#env = env;
    this.#visible = env.FIRSTLIGHT_LAB_GPUS !== 'none' && env.CUDA_VISIBLE_DEVICES !== '';
  }

  /** The context: torch.cuda.set_device. */
  async open(): Promise<void> {
    if (!this.#visible) throw new PythonError('set-device', 'RuntimeError', 'No CUDA GPUs are available');
    this.share = Math.min(1, (await this.world.memory()).totalBytes / (64 * GIB));
    const bytes = (CONTEXT_BYTES + this.#driverBytes()) * this.share;
    try {
      await this.world.hold(bytes, true);
      this.bytes = bytes;
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      if (error.code === 'out-of-memory') throw cudaOutOfMemory('set-device');
      if (error.code === 'gpu-lost')
        throw new PythonError('set-device', 'pynvml.NVMLError_Unknown', 'Unknown Error');
      throw new PythonError('set-device', 'RuntimeError', 'No CUDA GPUs are available');
    }
  }

  /** What branches after 580 take more of unified memory (MiaAI GLM-5.3-Flash-EXL3 #114). */
  #driverBytes(): number {
    return driverBranch(this.#env) > KNOWN_BRANCH ? NEW_DRIVER_BYTES : 0;
  }

  async grow(bytes: number, site: Site): Promise<void> {
    try {
      await this.world.hold(this.bytes + bytes, true);
      this.bytes += bytes;
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      const memory = await this.world.memory();
      throw torchOutOfMemory(site, {
        wanted: bytes,
        total: memory.totalBytes,
        free: memory.freeBytes,
        own: this.bytes,
      });
    }
  }

  async freeBytes(): Promise<number> {
    return gpuFreeBytes(await this.world.memory());
  }
}

export type Joined = { readonly store: Store | undefined; readonly group: Group };

/** Store and mesh of all ranks; a single rank needs neither. Throws PythonError. */
export async function join(
  hands: {
    readonly world: EngineWorld;
    readonly pace: Pace;
    readonly env: Env;
    readonly print: (text: string) => void;
  },
  at: {
    readonly address: string;
    readonly port: number;
    readonly rank: number;
    readonly size: number;
    readonly timeoutSeconds: number;
    readonly glooSeconds: number;
  },
): Promise<Joined> {
  if (at.size === 1) return { store: undefined, group: new Group(0, 1, []) };
  const store = await rendezvous(hands, at);
  const group = await connectFullMesh(hands, {
    store,
    rank: at.rank,
    size: at.size,
    timeoutSeconds: at.glooSeconds,
  });
  if (at.rank > 0) void store.lost.then(() => hands.print(lostStore(at.rank)));
  return { store, group };
}

const LOAD_MILLISECONDS = 2500;
/** A shard goes through the host's memory in pieces. */
const STAGED_BYTES = 1 * GIB;

const KNOWN_BRANCH = 580;
const NEW_DRIVER_BYTES = 4.5 * GIB;

/** 580 of "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.03  …"; 0 where it cannot be read. */
function driverBranch({ FIRSTLIGHT_ROOT = '' }: Env): number {
  try {
    const text = readFileSync(`${FIRSTLIGHT_ROOT}/proc/driver/nvidia/version`, 'utf8');
    return Number(/ (\d{3})\.\d+/.exec(text)?.[1] ?? 0);
  } catch {
    // No NVIDIA driver here.
    return 0;
  }
}

/**
 * Reads the shards one after the other: memory rises, the page cache warms. `progress` is called before the first
 * and after each; the whole takes about two and a half seconds.
 */
export async function loadShards(
  device: Device,
  pace: Pace,
  {
    shards,
    rankBytes,
    fileBytes,
  }: { readonly shards: number; readonly rankBytes: number; readonly fileBytes: number },
  progress: (done: number, seconds: number) => void,
): Promise<void> {
  const begun = Date.now();
  const seconds = (): number => ((Date.now() - begun) * pace.speed) / 1000;
  progress(0, 0);
  for (let done = 1; done <= shards; done += 1) {
    await device.world.stage(STAGED_BYTES * device.share);
    await device.grow(rankBytes / shards, 'load');
    const slowed = await device.world.readFiles(fileBytes / shards);
    await pace.wait((LOAD_MILLISECONDS / shards) * slowed);
    progress(done, seconds());
  }
}
