import { EventEmitter } from 'node:events';
import { ContainerLog } from './container-log.ts';
import { hex } from './random.ts';

export type RestartPolicy = 'no' | 'always' | 'unless-stopped' | 'on-failure';

export type ContainerSpec = {
  readonly name: string;
  readonly image: string;
  /** What the image's entry point gets. */
  readonly command: readonly string[];
  readonly entrypoint: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Container path → host path. */
  readonly mounts: readonly {
    readonly source: string;
    readonly target: string;
    readonly readOnly: boolean;
  }[];
  readonly networkMode: string;
  readonly restart: RestartPolicy;
  readonly maximumRetries: number;
  readonly autoRemove: boolean;
  readonly stopSeconds: number;
  readonly shmBytes: number;
  readonly ipcMode: string;
  readonly gpus: boolean;
  readonly devices: readonly string[];
};

export type Container = {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly created: string;
  readonly log: ContainerLog;
  restart: RestartPolicy;
  state: 'created' | 'running' | 'restarting' | 'exited';
  pid: number;
  startedAt: string;
  finishedAt: string;
  exitCode: number;
  restartCount: number;
  /** Stopped by somebody who asked dockerd: no policy brings it back. */
  askedToStop: boolean;
};

/** How dockerd starts and ends processes of a container here. */
export type ContainerHands = {
  /** Starts the main process; `over` gets its exit code, 128 + n for a signal. Throws with docker's words. */
  start(container: Container, over: (exitCode: number) => void): { readonly pid: number };
  /** `all`: every process of the container, as dockerd's SIGKILL does; else the main one. */
  signal(container: Container, name: NodeJS.Signals, all: boolean): void;
};

const NEVER = '0001-01-01T00:00:00Z';

/** dockerd of one lab host: containers, and the restart policies that bring them back. */
export class Docker {
  readonly #hands: ContainerHands;
  readonly #random: () => number;
  readonly #containers = new Map<string, Container>();
  readonly #events = new EventEmitter();
  readonly #timers = new Set<NodeJS.Timeout>();
  #closed = false;

  constructor(hands: ContainerHands, random: () => number) {
    this.#hands = hands;
    this.#random = random;
    this.#events.setMaxListeners(0);
  }

  get list(): readonly Container[] {
    return [...this.#containers.values()].reverse();
  }

  /** By whole name, whole id, or a beginning of the id that is unique. */
  find(reference: string): Container | undefined {
    const name = reference.replace(/^\//, '');
    const named = this.list.find(({ spec }) => spec.name === name);
    if (named !== undefined) return named;
    const byId = /^[0-9a-f]+$/.test(name) ? this.list.filter(({ id }) => id.startsWith(name)) : [];
    return byId.length === 1 ? byId[0] : undefined;
  }

  create(spec: ContainerSpec): Container {
    const container: Container = {
      id: hex(this.#random, 64),
      spec,
      created: stamp(),
      log: new ContainerLog(),
      restart: spec.restart,
      state: 'created',
      pid: 0,
      startedAt: NEVER,
      finishedAt: NEVER,
      exitCode: 0,
      restartCount: 0,
      askedToStop: false,
    };
    this.#containers.set(container.id, container);
    return container;
  }

  start(container: Container): void {
    if (container.state === 'running' || this.#closed) return;
    container.askedToStop = false;
    container.state = 'running';
    container.startedAt = stamp();
    try {
      const { pid } = this.#hands.start(container, (code) => this.#ended(container, code));
      container.pid = pid;
    } catch (error) {
      container.state = 'created';
      throw error;
    }
    this.#events.emit(`start ${container.id}`);
  }

  /** SIGTERM, and SIGKILL after the seconds; undefined means the container's own. Resolves when it has ended. */
  async stop(container: Container, seconds?: number): Promise<void> {
    container.askedToStop = true;
    if (container.state === 'restarting') container.state = 'exited';
    if (container.state !== 'running') return;
    const ended = this.wait(container);
    this.#hands.signal(container, 'SIGTERM', false);
    const timer = setTimeout(
      () => this.#hands.signal(container, 'SIGKILL', true),
      (seconds ?? container.spec.stopSeconds) * 1000,
    );
    await ended;
    clearTimeout(timer);
  }

  async kill(container: Container, name: NodeJS.Signals): Promise<void> {
    container.askedToStop = true;
    const ended = this.wait(container);
    this.#hands.signal(container, name, name === 'SIGKILL');
    if (name === 'SIGKILL') await ended;
  }

  async remove(container: Container): Promise<void> {
    if (container.state === 'running') await this.kill(container, 'SIGKILL');
    container.askedToStop = true;
    this.#containers.delete(container.id);
  }

  /** Exit code of its next end; at once when it does not run. */
  wait(container: Container): Promise<number> {
    if (container.state !== 'running' && container.state !== 'restarting') {
      return Promise.resolve(container.exitCode);
    }
    return new Promise((resolve) => {
      this.#events.once(`end ${container.id}`, () => resolve(container.exitCode));
    });
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const container of this.list) {
      if (container.state === 'running') this.#hands.signal(container, 'SIGKILL', true);
    }
  }

  #ended(container: Container, code: number): void {
    container.log.flush();
    container.exitCode = code;
    container.finishedAt = stamp();
    container.pid = 0;
    const again = !this.#closed && bringsBack(container, code);
    container.state = again ? 'restarting' : 'exited';
    this.#events.emit(`end ${container.id}`);
    if (again) {
      // dockerd waits 100 ms, and twice as long after each restart, up to a minute.
      const delay = Math.min(60_000, 100 * 2 ** Math.min(container.restartCount, 10));
      container.restartCount += 1;
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        if (container.state === 'restarting') this.start(container);
      }, delay);
      timer.unref();
      this.#timers.add(timer);
    } else if (container.spec.autoRemove) {
      this.#containers.delete(container.id);
    }
  }
}

/** docker stop and docker kill count as asked for; a kill from the host does not. */
function bringsBack(container: Container, code: number): boolean {
  if (container.askedToStop) return false;
  switch (container.restart) {
    case 'no':
      return false;
    case 'always':
    case 'unless-stopped':
      return true;
    case 'on-failure':
      return (
        code !== 0 &&
        (container.spec.maximumRetries === 0 || container.restartCount < container.spec.maximumRetries)
      );
  }
}

function stamp(): string {
  return new Date().toISOString().replace('Z', '000000Z');
}
