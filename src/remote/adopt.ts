import { type Ran, script } from '../domain/command.ts';
import { ADOPT_SCRIPT } from './adopt-script.ts';
import type { Host, RunOptions } from './host.ts';

/** What somebody started by hand, as it is named on its node. */
export type Adoptee = {
  readonly name: string;
  readonly kind: 'process' | 'docker' | 'podman';
  /** Pid, or name or id of the container. */
  readonly target: string;
  /** Its log file on the node; a container has its own, a process's standard output is tried. */
  readonly log: string | undefined;
  /** Kept as the rank's service.json. */
  readonly record: Readonly<Record<string, unknown>>;
};

/**
 * Makes a rank's record on the node for something that runs there, with its start ticks or container id, and starts
 * what follows its log. Nothing is sent to it. Exit 0 with `adopted` or `already`; 3 and 4 say on stdout why not.
 */
export function adoptRank(host: Host, adoptee: Adoptee, { signal }: RunOptions): Promise<Ran> {
  const { name, kind, target, log = '', record } = adoptee;
  return host.run(
    script(ADOPT_SCRIPT, [name, kind, target, log, JSON.stringify(record)], { timeoutSeconds: 30 }),
    { signal },
  );
}
