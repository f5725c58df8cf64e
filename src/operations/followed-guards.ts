import type { GuardRecord } from '../domain/guard.ts';
import type { Service } from '../domain/plan.ts';
import type { Recorder } from './recorder.ts';

/** What the guards of an attempt's ranks put down, and what was available on each node last. */
export class FollowedGuards {
  readonly #recorder: Recorder;
  readonly #attempt: number;
  readonly #records = new Map<number, GuardRecord>();
  readonly #available = new Map<string, number>();

  constructor(recorder: Recorder, attempt: number) {
    this.#recorder = recorder;
    this.#attempt = attempt;
  }

  of(rank: number): GuardRecord | undefined {
    return this.#records.get(rank);
  }

  available(node: string, bytes: number | undefined): void {
    if (bytes !== undefined) this.#available.set(node, bytes);
  }

  /** A guard's lowest figure moves often; told is what it can do and what it did. */
  hear(service: Service, guard: GuardRecord): void {
    const before = this.#records.get(service.rank);
    this.#records.set(service.rank, guard);
    if (before?.state !== guard.state) this.#emit(service, guard);
  }

  /** Once it serves: how low memory was on the way, and what is left. */
  tell(services: readonly Service[]): void {
    for (const service of services) {
      const guard = this.of(service.rank);
      if (guard === undefined) continue;
      const availableBytes = this.#available.get(service.node);
      // What the guard has written down may be seconds old.
      const lowestBytes = Math.min(guard.lowestBytes, availableBytes ?? guard.lowestBytes);
      const more = availableBytes === undefined ? {} : { availableBytes };
      this.#emit(service, { ...guard, lowestBytes, ...more });
    }
  }

  #emit({ node, rank }: Service, guard: GuardRecord): void {
    this.#recorder.emit({ type: 'guard', attempt: this.#attempt, node, rank, guard });
  }
}
