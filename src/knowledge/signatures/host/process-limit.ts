import { pattern, type Signature } from '../signature.ts';

const threads = pattern(
  [
    "can't start new thread",
    'Resource temporarily unavailable',
    'pthread_create failed',
    'Thread creation failed',
    'fork rejected by pids controller',
    'failed to create new OS thread',
    'unable to create native thread',
    'WouldBlock',
    'Failed to create thread',
    'failed to spawn thread',
    'Cannot fork',
    'Unable to fork',
    'EAGAIN',
  ],
  /can't start new thread|(?:fork|clone|pthread_create|[Tt]hread|system_error|blas_thread_init|spawn|Errno 11\]|BlockingIOError|Unhandled exception|retry)[^\n]{0,200}Resource temporarily unavailable|Resource temporarily unavailable[^\n]{0,200}(?:fork|thread|process)|pthread_create failed|Thread creation failed|fork rejected by pids controller(?: in (?<cgroup>\S{1,300}))?|failed to create new OS thread|unable to create native thread|(?:spawn|thread)\S{0,300}.{0,400}WouldBlock|[Ff]ailed to (?:create|spawn) (?:a )?(?:new )?thread|(?:Cannot|Unable to) fork|(?:fork|clone|pthread_create).{0,400}EAGAIN/,
);
const limit = pattern(
  [
    'RLIMIT_NPROC',
    'pids.max',
    'max user processes',
    'PidsLimit',
    'pids-limit',
    'pids_limit',
    'TasksMax',
    'Tasks:',
  ],
  /RLIMIT_NPROC:? (?<rlimit>-?\d{1,20}) current|pids\.max\D{0,60}(?<pids>\d{1,20})|max user processes\D{1,60}(?<user>\d{1,20})|PidsLimit"?: ?(?<docker>\d{1,20})|pids[-_]limit[= ](?<flag>\d{1,20})|TasksMax=(?<tasks>\d{1,20})|Tasks: (?<now>\d{1,20}) \(limit: (?<max>\d{1,20})\)/,
);

/** A limit on processes counts threads too; Ray and the maths libraries start thousands of them. */
export const processLimit: Signature = {
  name: 'process-limit',
  causes: ['process-limit-too-low'],
  seenOn: 'Ray 2.50 in rootless podman, August 2026; OpenBLAS 0.3, glibc, kernel 5.15 to 7.0',
  source:
    'kernel kernel/cgroup/pids.c; OpenBLAS blas_server.c; Python _thread; podman: 2048 unless told otherwise',
  looks: [
    "RuntimeError: can't start new thread",
    'OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 20: Resource temporarily unavailable',
  ],
  patterns: [threads, limit],
  match({ find }) {
    const all = find(threads);
    const first = all[0];
    if (first === undefined) return undefined;
    const { node } = first;
    const told = find(limit).find((found) => found.node === node);
    const value =
      told === undefined ? undefined : Object.values(told.groups).find((one) => one !== undefined);
    return {
      cause: 'process-limit-too-low',
      node,
      shown: [
        ...all.filter((found) => found.node === node).slice(0, 3),
        ...(told === undefined ? [] : [told]),
      ],
      title: `No more threads can be started where the rank on ${node} runs`,
      why: `A limit on processes counts threads too${value === undefined ? '' : `; it stands at ${value}`}. Ray and the maths libraries start one for each core and worker, and on a host with many cores 2048 are soon reached.`,
      advice: [
        'Start the container with --pids-limit=-1; firstlight up does so under podman. OMP_NUM_THREADS: "4" in env of the recipe needs fewer threads.',
        `For a plain process on ${node}: ulimit -u, and TasksMax= of its systemd unit; cat /sys/fs/cgroup/…/pids.max shows the limit.`,
      ],
      values: value === undefined ? {} : { limit: value },
      confidence: 0.93,
      specificity: 3,
    };
  },
};
