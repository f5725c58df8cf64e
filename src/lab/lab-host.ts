import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { type Container, Docker } from './docker.ts';
import { watchDropCaches } from './drop-caches.ts';
import { startEngine } from './engine-container.ts';
import { exitCode } from './exit-code.ts';
import { containerCgroup, Holders } from './holder-processes.ts';
import { baseName, NOTHING, unitOf } from './holders.ts';
import { DRIVER, HIDDEN_ENVIRON, replaceFile } from './host-files.ts';
import { writeRoot } from './host-root.ts';
import { imageNamed, imagesOf, type LabImage } from './images.ts';
import { Kernel } from './kernel.ts';
import { Ledger, meminfo } from './ledger.ts';
import { MODEL_BYTES } from './model-files.ts';
import type { LabInterface, Listener, NetworkTable } from './network-table.ts';
import { Processes, signalTree } from './processes.ts';
import { hex, randomOf } from './random.ts';
import { allPids, environmentOf, parentOf, signal } from './real-process.ts';
import { GIB, type SmiState, type Story, type StoryHost, type StoryMoment } from './story.ts';
import { Sudo } from './sudo.ts';
import { Systemd, type Unit, type UnitSpec } from './systemd.ts';
import { BUSY_BYTES } from './tools/nvidia-smi-tool.ts';

export type LabHostOptions = {
  readonly story: Story;
  readonly host: StoryHost;
  readonly seed: string;
  /** The host's folder, its root. */
  readonly root: string;
  /** Folder of the stand-ins, and of what the engine images have on their PATH. */
  readonly bin: string;
  readonly imageBin: string;
  /** A FIFO that ends with the daemon. */
  readonly alive: string;
  /** `port:token:host`. */
  readonly lab: string;
  readonly network: NetworkTable;
  /** Milliseconds until memory of the dead is back. */
  readonly backAfter: () => number;
  /** A moment that the story's timeline may wait for has come on this host. */
  readonly sees: (moment: StoryMoment) => void;
};

/** One host of the lab: its folder, memory, processes, containers, units. What is not here does not exist on it. */
export class LabHost {
  readonly name: string;
  readonly root: string;
  readonly user: string;
  readonly gpuUuid: string;
  readonly dockerGroup = true;
  readonly ledger: Ledger;
  readonly processes: Processes;
  readonly docker: Docker;
  readonly systemd: Systemd;
  readonly sudo: Sudo;
  readonly kernel: Kernel;
  readonly images: readonly LabImage[];
  readonly holders: Holders;
  readonly sees: (moment: StoryMoment) => void;
  /** Signals that no real kernel would have let through: what they hit was brought back. */
  readonly trespasses: string[] = [];
  readonly #options: LabHostOptions;
  readonly #stopWatching: () => void;
  /** Containers that systemd left without their GPU. */
  readonly #withoutGpu = new Set<string>();
  #closed = false;
  #rebooting = false;

  constructor(options: LabHostOptions) {
    const { story, host, root, seed } = options;
    this.#options = options;
    this.name = host.name;
    this.root = root;
    this.user = host.user;
    const random = randomOf(`host:${seed}:${host.name}`);
    this.gpuUuid = `GPU-${hex(random, 8)}-${hex(random, 4)}-${hex(random, 4)}-${hex(random, 4)}-${hex(random, 12)}`;
    writeRoot(root, story, host, this.interfaces, seed);
    this.ledger = new Ledger({
      totalBytes: host.totalGiB * GIB,
      systemBytes: host.systemGiB * GIB,
      cacheBytes: host.cacheGiB * GIB,
      stuckCacheBytes: host.stuckCacheGiB === undefined ? undefined : host.stuckCacheGiB * GIB,
      cacheLimitBytes: MODEL_BYTES + 4 * GIB,
      backAfter: options.backAfter,
      changed: () => this.#render(),
    });
    this.processes = new Processes(root, this.ledger, options.alive, 1000);
    this.kernel = new Kernel(this.ledger, (pid) => this.processes.find(pid)?.comm ?? 'python3');
    this.sudo = new Sudo(host.sudoPassword);
    this.images = imagesOf(story, host);
    this.holders = new Holders(this, host.holders, options.network);
    this.sees = options.sees;
    this.docker = new Docker(
      {
        start: (container, over) => this.#startContainer(container, over),
        signal: (container, name, all) => this.signalContainer(container, name, all),
      },
      random,
    );
    this.systemd = new Systemd(
      {
        start: (unit, over) => this.holders.startUnit(unit, over),
        signal: (unit, name) => this.signalUnit(unit, name),
      },
      host.holders.flatMap((holder) => unitOf(holder)),
    );
    this.#render();
    this.#stopWatching = watchDropCaches(root, (text) => {
      if (!this.sudo.rootNow) this.trespasses.push('drop_caches was written without root');
      else if (/^[123]$/.test(text)) this.ledger.dropCache(text);
    });
  }

  get interfaces(): readonly LabInterface[] {
    return this.#options.network.interfacesOf(this.name);
  }

  get listeners(): readonly Listener[] {
    return this.#options.network.listenersOf(this.name);
  }

  /** What nvidia-smi does here, where the story has it otherwise than usual. */
  get smi(): SmiState | undefined {
    return this.#options.host.smi;
  }

  /** What the model hub answers here. */
  get hub(): StoryHost['hub'] {
    return this.#options.host.hub;
  }

  get diskBusy(): boolean {
    return this.holders.busyDisk;
  }

  lostGpu({ id }: Container): boolean {
    return this.#withoutGpu.has(id);
  }

  get gpuBusy(): boolean {
    return this.processes.list.some(({ pid }) => this.processes.gpuBytesOf(pid) > BUSY_BYTES);
  }

  get defaultInterface(): LabInterface | undefined {
    return this.interfaces.find(({ address }) => address === this.#options.host.management.address);
  }

  routeTo(address: string): LabInterface | undefined {
    return this.#options.network.route(this.name, address);
  }

  imageNamed(reference: string): LabImage | undefined {
    return imageNamed(this.images, reference);
  }

  /** A path as it is on the host → where it really lies. Paths that are real already stay. */
  realPath(path: string, cwd = this.root): string {
    if (!isAbsolute(path)) return join(cwd, path);
    return path === this.root || path.startsWith(`${this.root}/`) ? path : join(this.root, path);
  }

  /** Home and uid of a user of this host. */
  login(user: string): { readonly home: string; readonly uid: number } {
    const line = readFileSync(join(this.root, 'etc/passwd'), 'utf8')
      .split('\n')
      .map((text) => text.split(':'))
      .find(([name]) => name === user);
    return { home: this.realPath(line?.[5] ?? `/home/${user}`), uid: Number(line?.[2] ?? 1000) };
  }

  /** What a login shell of that user starts with; also how fast the lab's engines are to be, where the lab was told. */
  loginEnvironment(user = this.user): Readonly<Record<string, string>> {
    const speed = process.env['FIRSTLIGHT_LAB_SPEED'];
    return {
      PATH: `${this.#options.bin}:/usr/local/bin:/usr/bin:/bin`,
      HOME: this.login(user).home,
      USER: user,
      LOGNAME: user,
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      FIRSTLIGHT_ROOT: this.root,
      FIRSTLIGHT_LAB: this.#options.lab,
      ...(speed === undefined ? {} : { FIRSTLIGHT_LAB_SPEED: speed }),
    };
  }

  unitCgroup({ name, userUnit, uid }: UnitSpec): string {
    return userUnit
      ? `/user.slice/user-${uid}.slice/user@${uid}.service/app.slice/${name}`
      : `/system.slice/${name}`;
  }

  /** To the main process; with `all` to every process of the container. */
  signalContainer(container: Container, name: NodeJS.Signals, all = false): void {
    if (container.pid === 0) return;
    if (!all) {
      signal(container.pid, name);
      return;
    }
    for (const process of this.processes.list) {
      if (process.cgroup === containerCgroup(container.id)) signalTree(process.pid, name);
    }
    signalTree(container.pid, name);
  }

  signalUnit(unit: Unit, name: NodeJS.Signals): void {
    if (unit.pid > 0) signalTree(unit.pid, name);
  }

  /** A command runs as root until the signal is aborted. Meanwhile root may read what others may not. */
  enterSudo(gone: AbortSignal): void {
    const leave = this.sudo.enter();
    this.#guardEnvironments(true);
    gone.addEventListener('abort', () => {
      leave();
      if (!this.#closed) this.#guardEnvironments(false);
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  get rebooting(): boolean {
    return this.#rebooting;
  }

  /** Every process ends at once, /tmp is emptied, and what has a restart policy comes back. Sessions end with it. */
  reboot(): void {
    this.#rebooting = true;
    replaceFile(this.root, 'proc/sys/kernel/random/boot_id', `${randomUUID()}\n`);
    for (const pid of allPids()) {
      if (pid !== process.pid && environmentOf(pid)?.['FIRSTLIGHT_ROOT'] === this.root)
        signal(pid, 'SIGKILL');
    }
    for (const name of readdirSync(join(this.root, 'tmp'))) {
      rmSync(join(this.root, 'tmp', name), { recursive: true, force: true });
    }
    this.ledger.dropCache('3');
  }

  /** It is up again: users may log in. */
  booted(): void {
    this.#rebooting = false;
  }

  /** systemctl daemon-reload: the device rules of running containers are written anew, without what docker put there. */
  reloadSystemd(): void {
    for (const { id, state, spec } of this.docker.list) {
      if (state === 'running' && spec.gpus) this.#withoutGpu.add(id);
    }
  }

  /** Kills the processes of every rank in a container here, as somebody with root does who does not know them. */
  endRanks(): void {
    for (const container of this.docker.list) {
      const rank = this.imageNamed(container.spec.image)?.engine !== undefined;
      if (rank && container.state === 'running') this.signalContainer(container, 'SIGKILL', true);
    }
  }

  /** Version of the NVIDIA driver. */
  get driver(): string {
    return this.#options.host.driver ?? DRIVER;
  }

  /** How long this host answers nobody once its memory ran out; 0 where it goes on. */
  get starvesSeconds(): number {
    return this.#options.host.starvesSeconds ?? 0;
  }

  /** Kills what the start script of every rank's container runs, and not the script. */
  endEngines(): void {
    const scripts = this.docker.list.flatMap(({ pid, state }) => (state === 'running' ? [pid] : []));
    for (const pid of allPids()) if (scripts.includes(parentOf(pid) ?? 0)) signal(pid, 'SIGKILL');
  }

  close(): void {
    this.#closed = true;
    this.#stopWatching();
    this.systemd.close();
    this.docker.close();
    this.processes.close();
    this.ledger.close();
  }

  #render(): void {
    if (this.#closed) return;
    replaceFile(this.root, 'proc/meminfo', meminfo(this.ledger.snapshot, this.processes.residentBytes));
  }

  #startContainer(container: Container, over: (code: number) => void): { readonly pid: number } {
    const image = this.imageNamed(container.spec.image);
    if (image?.engine === undefined) return this.holders.startContainer(container, over);
    this.sees('rank-started');
    return this.#startEngine(container, image, over);
  }

  #startEngine(
    container: Container,
    image: LabImage,
    over: (code: number) => void,
  ): { readonly pid: number } {
    const { root } = this;
    const { pid, argv } = startEngine({
      container,
      image: { ...image, lacks: [...image.lacks, ...(this.#options.host.lacks ?? [])] },
      root,
      hostname: this.name,
      env: { ...this.loginEnvironment('root'), PATH: `${this.#options.imageBin}:/usr/bin:/bin` },
      realPath: (path) => this.realPath(path),
      over: (bySignal, code) => {
        this.signalContainer(container, 'SIGKILL', true);
        this.processes.gone(pid, bySignal, code);
        over(exitCode(bySignal, code));
        this.sees('rank-ended');
      },
    });
    const { env } = container.spec;
    const cgroup = containerCgroup(container.id);
    const comm = baseName(argv[0] ?? '');
    this.processes.adopt(
      pid,
      { ...NOTHING, argv, comm, user: 'root', uid: 0, cgroup, cwd: root, env },
      () => undefined,
    );
    return { pid };
  }

  /** environ of other users' processes can be read by root alone: for others it is not there. */
  #guardEnvironments(root: boolean): void {
    for (const { pid, uid } of this.processes.list) {
      const folder = join(this.root, 'proc', String(pid));
      const [from, to] = root ? [HIDDEN_ENVIRON, 'environ'] : ['environ', HIDDEN_ENVIRON];
      if (uid !== 1000 && existsSync(join(folder, from))) renameSync(join(folder, from), join(folder, to));
    }
  }
}
