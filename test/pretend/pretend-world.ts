import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../../src/domain/event.ts';
import type { Journal } from '../../src/journal/journal.ts';
import type { Live, World } from '../../src/operations/world.ts';

/** A journal in memory: events only, no logs. */
function memoryJournal(): Journal {
  const events: Event[] = [];
  const listeners = new Set<(event: Event) => void>();
  let runs = 0;
  return {
    folder: '/nowhere',
    newRun: () => String(++runs),
    append(run, body) {
      const seq = events.filter((event) => event.run === run).length + 1;
      const event: Event = { v: 1, seq, run, at: new Date().toISOString(), ...body };
      events.push(event);
      for (const listener of listeners) listener(event);
      return event;
    },
    read: (run, afterSeq = 0, limit = events.length) =>
      events.filter((event) => event.run === run && event.seq > afterSeq).slice(0, limit),
    runs: () => [],
    newest: () => [],
    lastSeq: (run) => events.filter((event) => event.run === run).length,
    latest: () => (runs === 0 ? undefined : String(runs)),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    logFile: () => '/nowhere/log',
    appendLog: () => {},
    readLog: () => [],
    readLogBytes: () => Buffer.alloc(0),
    close: () => {},
  };
}

/** A world without hosts, for faces: a journal, a clock, a signal. */
export function pretendWorld(
  options: {
    readonly signal: AbortSignal;
    readonly live: (update: Live) => void;
    readonly onEvent: (event: Event) => void;
  },
  accepted: (key: string) => void = () => {},
): World & { close(): void } {
  const journal = memoryJournal();
  journal.subscribe(options.onEvent);
  return {
    cluster: {
      name: 'sparks',
      file: '/nowhere/cluster.yaml',
      nodes: ['spark-a', 'spark-b'].map((name) => ({ name, ssh: name })),
    },
    clusterFile: '/nowhere/cluster.yaml',
    hosts: noHosts(accepted),
    openHosts: () => noHosts(accepted),
    secrets: { value: () => undefined, sudoPassword: async () => undefined, all: () => [] },
    journal,
    clock: {
      now: () => Date.now(),
      wait: async (milliseconds, signal) => {
        await wait(milliseconds, undefined, { signal });
      },
    },
    signal: options.signal,
    live: options.live,
    told: options.onEvent,
    controller: { host: 'laptop', user: 'aurora', pid: 4242 },
    version: '0.1.0',
    close: () => {},
  };
}

function noHosts(accepted: (key: string) => void): World['hosts'] {
  return {
    all: [],
    of: (node) => {
      throw new Error(`no node ${node}`);
    },
    acceptHostKey: async (node, fingerprint) => accepted(`${node} ${fingerprint}`),
  };
}
