import { z } from 'zod';
import type { LaunchFacts, Told } from '../domain/evidence.ts';
import {
  type Fact,
  known,
  type MemoryFacts,
  type NodeFacts,
  type ReachedFacts,
  unknown,
} from '../domain/facts.ts';
import { ENGINES, type EngineName } from '../domain/recipe.ts';
import { UserError } from '../domain/user-error.ts';
import { readText } from './read-text.ts';
import { parseYaml } from './yaml-file.ts';

const LIMIT_BYTES = 8 * 2 ** 20;
const HINT = 'docs/files.md shows what a facts file holds; firstlight bundle writes one';

const gib = z.number().min(0).optional();
const nodeSchema = z.strictObject({
  /** The command line that started the rank. */
  command: z.string().optional(),
  env: z.record(z.string(), z.coerce.string()).optional(),
  versions: z.record(z.string(), z.coerce.string()).optional(),
  memory: z
    .strictObject({ totalGiB: gib, availableGiB: gib, freeGiB: gib, cachedGiB: gib, swapFreeGiB: gib })
    .optional(),
  /** Addresses by interface: `{enp1s0f0np0: 192.168.100.1/24}`, one or several. */
  interfaces: z.record(z.string(), z.union([z.string(), z.array(z.string())])).optional(),
  /** What the host's own name resolves to there. */
  ownAddresses: z.array(z.string()).optional(),
  exit: z.number().int().optional(),
});
const simpleSchema = z.strictObject({
  engine: z.enum(ENGINES).optional(),
  nodes: z.record(z.string(), nodeSchema),
});
type SimpleNode = z.output<typeof nodeSchema>;

const isFact = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'known' in value && typeof value.known === 'boolean';
/** What a look of ours wrote: taken as it is where its frame is right. */
const lookSchema = z.custom<NodeFacts>((value) => {
  if (typeof value !== 'object' || value === null) return false;
  if (!('node' in value && typeof value.node === 'string' && 'reached' in value)) return false;
  if (value.reached === false) return 'failure' in value;
  return Object.entries(value).every(
    ([key, fact]) =>
      ['node', 'at', 'reached', 'milliseconds', 'driver', 'afterwards'].includes(key) || isFact(fact),
  );
}, 'is not what a look at a node writes');
const looksSchema = z.union([
  z.array(lookSchema),
  z.object({ facts: z.array(lookSchema) }).transform(({ facts }) => facts),
]);

/**
 * Facts beside logs: what looks of ours wrote (a JSON array of them), or in YAML or JSON
 * `{engine, nodes: {LOG: {command, env, versions, memory, interfaces, ownAddresses, exit}}}`, all optional, LOG being
 * the name of the node's log. Throws a UserError for anything else.
 */
export function readFactsFile(path: string): Told {
  const text = readText(path, {
    code: 'bad-input',
    what: 'facts file',
    absent: HINT,
    limitBytes: LIMIT_BYTES,
  });
  return readFacts(text, path);
}

/** The same from its text; `name` is what a refusal calls it. */
export function readFacts(text: string, name: string): Told {
  const value = text.trimStart().startsWith('[')
    ? jsonOf(text, name)
    : parseYaml(text, name, 'bad-input').value;
  const looks = looksSchema.safeParse(value);
  if (looks.success) return { facts: looks.data, launched: [], exits: {} };
  const simple = simpleSchema.safeParse(value);
  if (!simple.success) {
    const [issue] = simple.error.issues;
    throw new UserError(
      'bad-input',
      `${name} is no facts file: ${issue === undefined ? '' : `${issue.path.map(String).join('.')}: ${issue.message}`}`,
      HINT,
      simple.error,
    );
  }
  const nodes = Object.entries(simple.data.nodes);
  return {
    engine: simple.data.engine satisfies EngineName | undefined,
    facts: nodes.map(([node, told]) => factsOf(node, told)),
    launched: nodes.map(
      ([node, { command, env, versions }]): LaunchFacts => ({ node, command, env, versions }),
    ),
    exits: Object.fromEntries(
      nodes.flatMap(([node, { exit }]) => (exit === undefined ? [] : [[node, exit] as const])),
    ),
  };
}

function jsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UserError('bad-input', `${name} is not JSON`, HINT, error);
  }
}

function factsOf(node: string, told: SimpleNode): ReachedFacts {
  const none = unknown('the facts file does not say');
  const { interfaces, versions } = told;
  return {
    node,
    at: new Date(0).toISOString(),
    reached: true,
    milliseconds: 0,
    host:
      versions?.['kernel'] === undefined && told.ownAddresses === undefined
        ? none
        : {
            known: true,
            value: {
              hostname: node,
              machineId: '',
              bootId: '',
              os: '',
              kernel: versions?.['kernel'] ?? '',
              arch: '',
              user: '',
              uid: 0,
              home: '',
              ownAddresses:
                told.ownAddresses === undefined ? none : { known: true, value: told.ownAddresses },
              pageBytes: 4096,
            },
          },
    clockOffsetSeconds: none,
    memory: memoryOf(told.memory),
    gpus: none,
    holders: none,
    containers: none,
    ports: none,
    interfaces:
      interfaces === undefined
        ? none
        : {
            known: true,
            value: Object.entries(interfaces).map(([name, held]) => ({
              name,
              up: true,
              mtu: 0,
              speedMbps: none,
              addresses: [held].flat().map((text) => {
                const [address = '', prefix] = text.split('/');
                return { address, prefix: Number(prefix ?? (address.includes(':') ? 64 : 24)) };
              }),
              reaches: [],
            })),
          },
    rdma: none,
    disks: none,
    engines: none,
    sudo: none,
    ranks: none,
    owed: none,
    lock: none,
  };
}

/**
 * Figures of /proc/meminfo that somebody wrote down. The kernel counts as available what is free and most of its page
 * cache, so of these three one may be left out; without the total, or with less, nothing is known.
 */
function memoryOf(memory: SimpleNode['memory']): Fact<MemoryFacts> {
  if (memory === undefined) return unknown('the facts file does not say');
  const { totalGiB, freeGiB, availableGiB, cachedGiB, swapFreeGiB } = memory;
  const free =
    freeGiB ??
    (availableGiB === undefined || cachedGiB === undefined
      ? undefined
      : Math.max(0, availableGiB - cachedGiB));
  const available = availableGiB ?? (freeGiB === undefined ? undefined : freeGiB + (cachedGiB ?? 0));
  if (totalGiB === undefined || free === undefined || available === undefined)
    return unknown('the facts file says too little of the memory: totalGiB, and freeGiB or availableGiB');
  const bytes = (gibibytes: number): number => Math.round(gibibytes * 2 ** 30);
  return known({
    totalBytes: bytes(totalGiB),
    freeBytes: bytes(free),
    availableBytes: bytes(Math.min(available, totalGiB)),
    cachedBytes: cachedGiB === undefined ? undefined : bytes(cachedGiB),
    dirtyBytes: undefined,
    sharedBytes: undefined,
    slabBytes: undefined,
    swapTotalBytes: undefined,
    swapFreeBytes: swapFreeGiB === undefined ? undefined : bytes(swapFreeGiB),
  });
}
