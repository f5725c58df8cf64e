import { readFileSync } from 'node:fs';
import type { Ledger } from './ledger.ts';
import { signal } from './real-process.ts';

/** What one host's kernel says of its memory, and whom it ends for want of it. */
export class Kernel {
  /** What it has said since the lab began, as dmesg shows it. */
  readonly log: string[] = [];
  readonly #ledger: Ledger;
  readonly #nameOf: (pid: number) => string;

  /** `nameOf`: the short name of a process. */
  constructor(ledger: Ledger, nameOf: (pid: number) => string) {
    this.#ledger = ledger;
    this.#nameOf = nameOf;
  }

  /** While it looks in vain for a page. */
  starves(): void {
    this.#says(
      'sshd: page allocation failure: order:0, mode:0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), nodemask=(null),cpuset=/,mems_allowed=0',
    );
  }

  /** The driver's word when it gets no memory (580, mem_desc.c). */
  driverGotNothing(): void {
    this.#says(
      'NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359',
    );
  }

  /**
   * Whether that much memory is there for a moment, for the program where one is named, else for the process. Where it
   * is not, the kernel ends it, and says so as Linux 6.17 does.
   */
  stage(pid: number, bytes: number, program?: string): boolean {
    const { availableBytes } = this.#ledger.snapshot;
    if (bytes < availableBytes) return true;
    const name = program ?? this.#nameOf(pid);
    const kib = Math.floor(Math.min(bytes, availableBytes) / 1024);
    const victim = program === undefined ? pid : pid + 1;
    this.#says(
      `${name} invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0`,
    );
    this.#says(
      `Out of memory: Killed process ${victim} (${name}) total-vm:${4 * kib}kB, anon-rss:${kib}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1024kB oom_score_adj:0`,
    );
    if (program === undefined) signal(pid, 'SIGKILL');
    return false;
  }

  #says(text: string): void {
    const [seconds = '0'] = readFileSync('/proc/uptime', 'utf8').split(' ');
    this.log.push(`[${Number(seconds).toFixed(6).padStart(12)}] ${text}`);
  }
}
