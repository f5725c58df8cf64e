import type { Server, Socket } from 'node:net';

export type WorldErrorCode =
  | 'out-of-memory'
  | 'no-gpu'
  | 'EADDRINUSE'
  | 'EADDRNOTAVAIL'
  | 'ECONNREFUSED'
  | 'ETIMEDOUT'
  | 'EHOSTUNREACH'
  | 'ENOENT'
  | 'gpu-lost';

/** What the world refuses. Engines turn it into the words the real engine has for it. */
export class WorldError extends Error {
  readonly code: WorldErrorCode;
  constructor(code: WorldErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}

export type WorldMemory = {
  readonly totalBytes: number;
  readonly freeBytes: number;
  readonly availableBytes: number;
  /** The GPU's memory is the host's memory. */
  readonly unified: boolean;
};

export type Listener = { readonly server: Server; readonly address: string; readonly port: number };

/** The host an engine process runs on: the lab's, or this real one. Every method may throw WorldError. */
export interface EngineWorld {
  readonly hostname: string;
  /** Resolves when the world itself is gone, and its processes with it. */
  readonly gone: Promise<void>;
  memory(): Promise<WorldMemory>;
  /** This process now holds that many bytes in all, never fewer than before. */
  hold(bytes: number, gpu: boolean): Promise<void>;
  /**
   * That many bytes of the host's memory are needed for a moment, by the program where one is named: then throws where
   * the kernel had to end it. Else the kernel ends this process.
   */
  stage(bytes: number, program?: string): Promise<void>;
  /** That many bytes of model files were read: they are in the page cache now. How many times longer than usual it takes. */
  readFiles(bytes: number): Promise<number>;
  /** HTTP's status from the model hub; undefined where it is not reached. */
  askHub(): Promise<number | undefined>;
  /** This process serves the API and got its first question. */
  asked(): Promise<void>;
  resolve(name: string): Promise<readonly string[]>;
  interfaceAddress(name: string): Promise<readonly string[]>;
  /** Source address towards the default route. */
  routeAddress(): Promise<string | undefined>;
  /** Port 0 asks for a free one. */
  listen(address: string, port: number): Promise<Listener>;
  dial(address: string, port: number): Promise<Socket>;
}

/** Memory a new allocation on the GPU can get, as the engines read it: on a unified machine that is MemAvailable. */
export function gpuFreeBytes(memory: WorldMemory): number {
  return memory.unified ? memory.availableBytes : memory.freeBytes;
}
