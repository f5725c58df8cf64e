import { type Found, type Pattern, pattern } from '../signature.ts';

/** The kernel ends a process for want of memory; forms of Linux 4.18 to 7.0, docker, systemd and Kubernetes. */
const kernel = pattern(
  [
    'Killed process ',
    'oom-kill',
    'oom_reaper',
    'invoked oom-killer',
    'OOMKilled',
    'killed by the OOM killer',
    'OOM killer',
    'cgroup out of memory',
  ],
  /(?:Out of memory|Memory cgroup out of memory)[^:]{0,200}: Killed process (?<pid>\d{1,20})(?: \((?<name>[^)]{1,200})\))?|oom-kill:.{0,400}task=(?<task>[^,]{1,200}),pid=(?<pid2>\d{1,20})|oom_reaper: reaped process (?<pid3>\d{1,20}) \((?<name3>[^)]{1,200})\)|invoked oom-killer|"?OOMKilled"?(?:: ?true|\b(?!\}|.{0,400}false))|killed by the OOM killer|Failed with result 'oom-kill'|Memory cgroup out of memory|(?:by|from) the (?:kernel(?:'s)? )?OOM killer/,
);

/** Names of programs that compile kernels. */
const COMPILERS =
  /^(?:cicc|cc1plus|cc1|nvcc|ptxas|cudafe\+\+|ninja|ld|as|g\+\+|c\+\+|clang\S{0,300}|nvlink|fatbinary)$/;

/** A kernel's line about memory that ran out. A signature that asks `victimOf` lists it. */
export const KERNEL_OOM: Pattern = kernel;

/** Name of the process that the kernel ended, where the line has it. */
export function victimOf(found: Found): string | undefined {
  const { name, task, name3 } = found.groups;
  return name ?? task ?? name3;
}

/** Whether it was a compiler. */
export function isCompiler(name: string | undefined): boolean {
  return name !== undefined && COMPILERS.test(name);
}
