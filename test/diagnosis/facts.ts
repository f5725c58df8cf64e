import { type Holder, known, type MemoryFacts, type ReachedFacts } from '../../src/domain/facts.ts';

const GIB = 2 ** 30;

export type FactsInput = {
  readonly node: string;
  readonly memory?: Partial<MemoryFacts>;
  readonly holders?: readonly Holder[];
  readonly more?: Partial<ReachedFacts>;
};

/** A Spark as a look sees it: nothing runs, nothing is cached, all else known and empty. */
export function sparkFacts({ node, memory = {}, holders = [], more = {} }: FactsInput): ReachedFacts {
  return {
    node,
    at: '2026-11-29T10:00:00.000Z',
    reached: true,
    milliseconds: 40,
    host: known({
      hostname: node,
      machineId: node,
      bootId: node,
      os: 'Ubuntu 24.04',
      kernel: '6.17.0-1008-nvidia',
      arch: 'aarch64',
      user: 'aurora',
      uid: 1000,
      home: '/home/aurora',
      ownAddresses: known([]),
      pageBytes: 4096,
    }),
    clockOffsetSeconds: known(0),
    memory: known({
      totalBytes: 121 * GIB,
      freeBytes: 112 * GIB,
      availableBytes: 114 * GIB,
      cachedBytes: 2 * GIB,
      dirtyBytes: 0,
      sharedBytes: 0,
      slabBytes: 0,
      swapTotalBytes: 0,
      swapFreeBytes: 0,
      ...memory,
    }),
    gpus: known([
      {
        index: 0,
        name: 'NVIDIA GB10',
        uuid: 'GPU-0',
        unified: true,
        totalBytes: known(121 * GIB),
        freeBytes: known(112 * GIB),
        driver: '580.159.04',
      },
    ]),
    holders: known(holders),
    containers: known([]),
    ports: known([]),
    interfaces: known([]),
    rdma: known([]),
    disks: known([]),
    engines: known([]),
    sudo: known('password'),
    ranks: known([]),
    owed: known([]),
    lock: known(null),
    ...more,
  };
}

/** A bare process that holds memory. */
export function holderOf(gib: number, more: Partial<Holder> = {}): Holder {
  return {
    identity: '4242-100',
    name: 'python3',
    owner: { kind: 'process', environmentReadable: true },
    user: 'root',
    pid: 4242,
    startTicks: '100',
    ageSeconds: known(600),
    command: 'python3 serve.py',
    gpuBytes: known(gib * GIB),
    residentBytes: known(gib * GIB),
    bytes: gib * GIB,
    listens: [],
    ...more,
  };
}
