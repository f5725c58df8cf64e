import { write } from './output.ts';
import type { Env } from './rank.ts';

const DEFAULT_SUBSYSTEMS = ['INIT', 'BOOTSTRAP', 'ENV'];

/** `spark-a:210:210 [0] NCCL INFO …` on stdout, without any prefix: it comes from C. */
export class NcclLog {
  readonly #level: string;
  readonly #subsystems: readonly string[];
  readonly #prefix: string;

  constructor(hostname: string, env: Env) {
    this.#level = (env['NCCL_DEBUG'] ?? '').toUpperCase();
    const named = (env['NCCL_DEBUG_SUBSYS'] ?? '').toUpperCase();
    this.#subsystems = named === '' ? DEFAULT_SUBSYSTEMS : named.split(',');
    this.#prefix = `${hostname}:${process.pid}:${process.pid} [0]`;
  }

  info(subsystem: 'INIT' | 'BOOTSTRAP' | 'ENV', text: string): void {
    const asked = this.#subsystems.includes(subsystem) || this.#subsystems.includes('ALL');
    if (asked && ['INFO', 'TRACE'].includes(this.#level)) write(1, `${this.#prefix} NCCL INFO ${text}\n`);
  }

  warn(place: string, text: string): void {
    const time = new Date().toISOString().slice(0, 19).replace('T', ' ');
    if (['WARN', 'INFO', 'TRACE'].includes(this.#level))
      write(1, `\n[${time}] ${this.#prefix} ${place} NCCL WARN ${text}\n`);
  }

  /** What a library below NCCL prints by itself. */
  plain(text: string): void {
    write(2, text);
  }
}
