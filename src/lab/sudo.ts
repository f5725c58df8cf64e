import { runs, startTicks } from './real-process.ts';

const TICKET_SECONDS = 15 * 60;
/** A command that ran as root a moment ago may still be having its effect. */
const GRACE_MS = 3000;

/**
 * sudo of one lab host. Without a terminal a ticket belongs to the parent process that sudo was called from: that
 * very process, and nobody else, may run without a password until the ticket is too old.
 */
export class Sudo {
  readonly #password: string | undefined;
  readonly #tickets = new Map<number, { readonly ticks: string; readonly until: number }>();
  #running = 0;
  #lastEnd = 0;

  constructor(password: string | undefined) {
    this.#password = password;
  }

  free(parent: number): boolean {
    if (this.#password === undefined) return true;
    const ticket = this.#tickets.get(parent);
    return ticket !== undefined && ticket.until > Date.now() && runs(parent, ticket.ticks);
  }

  offer(parent: number, password: string): boolean {
    if (this.#password !== undefined && password !== this.#password) return false;
    const ticks = startTicks(parent);
    if (ticks !== undefined) {
      this.#tickets.set(parent, { ticks, until: Date.now() + TICKET_SECONDS * 1000 });
    }
    return true;
  }

  forget(parent: number): void {
    this.#tickets.delete(parent);
  }

  /** A command runs as root now; call what it returns when it has ended. */
  enter(): () => void {
    this.#running += 1;
    return () => {
      this.#running -= 1;
      this.#lastEnd = Date.now();
    };
  }

  /** Whether something runs as root on this host, or just did: the lab cannot ask the kernel whose signal it was. */
  get rootNow(): boolean {
    return this.#running > 0 || Date.now() - this.#lastEnd < GRACE_MS;
  }
}
