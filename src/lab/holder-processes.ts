import type { Container } from './docker.ts';
import { exitCode } from './exit-code.ts';
import { baseName, containerOf, programOf } from './holders.ts';
import type { LabHost } from './lab-host.ts';
import type { NetworkTable } from './network-table.ts';
import { type Program, signalTree } from './processes.ts';
import type { StoryHolder } from './story.ts';
import type { Unit } from './systemd.ts';

export const SESSION_CGROUP = '/user.slice/user-1000.slice/session-1.scope';

/** The story's holders on one host: how each starts, by whatever keeps it, and what follows when it ends. */
export class Holders {
  readonly #host: LabHost;
  readonly #list: readonly StoryHolder[];
  readonly #network: NetworkTable;
  readonly #bare = new Map<string, StoryHolder>();

  constructor(host: LabHost, list: readonly StoryHolder[], network: NetworkTable) {
    this.#host = host;
    this.#list = list;
    this.#network = network;
  }

  /** Starts what the story has running from its start on. */
  begin(): void {
    for (const holder of this.#list) {
      if (holder.kind === 'process') this.#bare.set(holder.name, holder);
      if (holder.absent !== true) this.start(holder.name);
    }
  }

  start(name: string): void {
    const holder = this.#list.find((candidate) => candidate.name === name);
    if (holder === undefined) throw new Error(`the story has no holder ${name} on ${this.#host.name}`);
    switch (holder.kind) {
      case 'container':
        this.#host.docker.start(this.#host.docker.create(containerOf(holder)));
        return;
      case 'unit': {
        const unit = this.#host.systemd.list.find(({ spec }) => spec.name === name);
        if (unit !== undefined) this.#host.systemd.start(unit);
        return;
      }
      case 'process':
        this.#startBare(holder);
    }
  }

  /** It has done its work, and ends. */
  end(name: string): void {
    const holder = this.#list.find((candidate) => candidate.name === name);
    const mine = this.#host.processes.list.find(({ argv }) => argv.join(' ') === holder?.argv.join(' '));
    if (mine !== undefined) signalTree(mine.pid, 'SIGKILL');
  }

  /** One that runs keeps the disk busy. */
  get busyDisk(): boolean {
    const busy = this.#list.filter((holder) => holder.busyDisk === true).map(({ argv }) => argv.join(' '));
    return this.#host.processes.list.some(({ argv }) => busy.includes(argv.join(' ')));
  }

  /** Somebody started a program of the story by hand, as a restore does: it holds what it holds. */
  adopt(
    pid: number,
    program: { readonly argv: readonly string[]; readonly cwd: string; readonly uid: number },
    env: Readonly<Record<string, string>>,
  ): boolean {
    const holder = this.#bare.get(baseName(program.argv[0] ?? ''));
    if (holder === undefined) return false;
    const forget = this.#listen(holder, pid);
    const adopted = this.#host.processes.adopt(
      pid,
      {
        ...this.#program(holder, SESSION_CGROUP),
        argv: program.argv,
        cwd: program.cwd,
        uid: program.uid,
        user: program.uid === 0 ? 'root' : holder.user,
        env,
      },
      forget,
    );
    if (adopted === undefined) forget();
    return adopted !== undefined;
  }

  /** Main process of a container that is no rank. */
  startContainer(container: Container, over: (code: number) => void): { readonly pid: number } {
    const holder = this.#list.find(({ name }) => name === container.spec.name);
    if (holder === undefined)
      throw new Error(`exec: "${container.spec.command[0] ?? ''}": not found in $PATH`);
    let forget = (): void => undefined;
    const started = this.#host.processes.start(
      this.#program(holder, containerCgroup(container.id)),
      (bySignal, code) => {
        forget();
        over(exitCode(bySignal, code));
      },
    );
    forget = this.#listen(holder, started.pid);
    return started;
  }

  /** Main process of a unit. */
  startUnit(unit: Unit, over: (failed: boolean) => void): { readonly pid: number } {
    const holder = this.#list.find(({ name }) => name === unit.spec.name);
    if (holder === undefined) throw new Error(`the story has no unit ${unit.spec.name}`);
    let forget = (): void => undefined;
    const started = this.#host.processes.start(
      this.#program(holder, this.#host.unitCgroup(unit.spec)),
      (bySignal, code) => {
        forget();
        over(bySignal !== 'SIGTERM' && (bySignal !== null || code !== 0));
      },
    );
    forget = this.#listen(holder, started.pid);
    return started;
  }

  #startBare(holder: StoryHolder): void {
    let forget = (): void => undefined;
    const { pid } = this.#host.processes.start(this.#program(holder, SESSION_CGROUP), (bySignal) => {
      forget();
      if (this.#host.closed || this.#host.rebooting) return;
      if (holder.kind === 'process' && holder.comesBackSeconds !== undefined) {
        setTimeout(() => {
          if (!this.#host.closed) this.#startBare(holder);
        }, holder.comesBackSeconds * 1000).unref();
        return;
      }
      // No kernel lets a user's signal through to another user's process; whose signal it was is not to be had here.
      if (bySignal === null || holder.uid === 1000 || this.#host.sudo.rootNow) return;
      this.#host.trespasses.push(`${holder.name} of ${holder.user} got ${bySignal} without root`);
      this.#startBare(holder);
    });
    forget = this.#listen(holder, pid);
  }

  #program(holder: StoryHolder, cgroup: string): Program {
    const env =
      holder.kind === 'container'
        ? { PATH: '/usr/local/bin:/usr/bin:/bin', FIRSTLIGHT_ROOT: this.#host.root }
        : { ...this.#host.loginEnvironment(holder.user), FIRSTLIGHT_LAB_UID: String(holder.uid) };
    return programOf(holder, { cgroup, cwd: this.#host.realPath(holder.cwd), env });
  }

  /** Its ports are taken while it runs; nothing answers on them. */
  #listen(holder: StoryHolder, pid: number): () => void {
    const listeners = holder.listens.flatMap(({ address, port }) => {
      const program = baseName(holder.argv[0] ?? '');
      const wish = { host: this.#host.name, address, port, realPort: 0, pid, program, uid: holder.uid };
      const listener = this.#network.listen(wish);
      return typeof listener === 'string' ? [] : [listener];
    });
    return () => {
      for (const listener of listeners) this.#network.forget(listener);
    };
  }
}

export function containerCgroup(id: string): string {
  return `/system.slice/docker-${id}.scope`;
}
