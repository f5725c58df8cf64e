import type { Server, Socket } from 'node:net';

export type WorldErrorCode =
  | 'out-of-memory'
  | 'no-gpu'
  | 'EADDRINUSE'
  | 'EADDRNOTAVAIL'
  | 'ECONNREFUSED'
  | 'ETIMEDOUT'
  | 'EHOSTUNREACH'
  | 'ENOENT';

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
  /** That many bytes of model files were read: they are in the page cache now. */
  readFiles(bytes: number): Promise<void>;
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
