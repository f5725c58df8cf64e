import { EventEmitter } from 'node:events';

export type UnitSpec = {
  readonly name: string;
  readonly description: string;
  readonly user: string;
  readonly uid: number;
  readonly restart: 'no' | 'always' | 'on-failure';
  readonly restartSeconds: number;
  readonly userUnit: boolean;
  readonly argv: readonly string[];
};

export type Unit = {
  readonly spec: UnitSpec;
  active: 'active' | 'inactive' | 'failed' | 'activating' | 'deactivating';
  pid: number;
  startedAt: number;
  restarts: number;
  enabled: boolean;
  askedToStop: boolean;
};

export type UnitHands = {
  start(unit: Unit, over: (failed: boolean) => void): { readonly pid: number };
  signal(unit: Unit, name: NodeJS.Signals): void;
};

/** Seconds until systemd sends SIGKILL to what SIGTERM does not end; 90 on a real host. */
const STOP_SECONDS = 8;

/** systemd of one lab host: services, and the Restart= that brings them back. */
export class Systemd {
  readonly #hands: UnitHands;
  readonly #units = new Map<string, Unit>();
  readonly #events = new EventEmitter();
  readonly #timers = new Set<NodeJS.Timeout>();
  #closed = false;

  constructor(hands: UnitHands, specs: readonly UnitSpec[]) {
    this.#hands = hands;
    this.#events.setMaxListeners(0);
    for (const spec of specs) {
      this.#units.set(spec.name, {
        spec,
        active: 'inactive',
        pid: 0,
        startedAt: 0,
        restarts: 0,
        enabled: true,
        askedToStop: false,
      });
    }
  }

  get list(): readonly Unit[] {
    return [...this.#units.values()];
  }

  /** By name, `.service` may be left out. */
  find(name: string, userUnit: boolean): Unit | undefined {
    const unit = this.#units.get(name) ?? this.#units.get(`${name}.service`);
    return unit?.spec.userUnit === userUnit ? unit : undefined;
  }

  start(unit: Unit): void {
    if (unit.active === 'active' || this.#closed) return;
    unit.askedToStop = false;
    unit.active = 'active';
    unit.startedAt = Date.now();
    unit.pid = this.#hands.start(unit, (failed) => this.#ended(unit, failed)).pid;
  }

  async stop(unit: Unit): Promise<void> {
    unit.askedToStop = true;
    if (unit.active === 'activating') unit.active = 'inactive';
    if (unit.active !== 'active') return;
    unit.active = 'deactivating';
    const ended = new Promise<void>((resolve) => {
      this.#events.once(`end ${unit.spec.name}`, resolve);
    });
    this.#hands.signal(unit, 'SIGTERM');
    const timer = setTimeout(() => this.#hands.signal(unit, 'SIGKILL'), STOP_SECONDS * 1000);
    await ended;
    clearTimeout(timer);
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #ended(unit: Unit, failed: boolean): void {
    unit.pid = 0;
    const { restart, restartSeconds, name } = unit.spec;
    const again =
      !this.#closed && !unit.askedToStop && (restart === 'always' || (restart === 'on-failure' && failed));
    unit.active = again ? 'activating' : failed && !unit.askedToStop ? 'failed' : 'inactive';
    this.#events.emit(`end ${name}`);
    if (!again) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (unit.active !== 'activating') return;
      unit.restarts += 1;
      this.start(unit);
    }, restartSeconds * 1000);
    timer.unref();
    this.#timers.add(timer);
  }
}
