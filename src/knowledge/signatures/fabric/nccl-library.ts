import { list } from '../../../domain/units.ts';
import { nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const mismatched = pattern(
  'Mismatched NCCL version',
  /Mismatched NCCL version detected ?: rank (?<rank>\d{1,20}) version (?<one>\d{1,20}) rank (?<other>\d{1,20}) version (?<two>\d{1,20})/,
);
const version = pattern(
  ['is using nccl==', 'NCCL version ', 'nccl-library='],
  /(?:is using nccl==|NCCL version )(?<version>\d{1,20}\.\d{1,20}\.\d{1,20})|nccl-library=(?<packed>\d{5})/,
);
const truncated = pattern(
  'Message truncated',
  /Message truncated ?: received \d{1,20} bytes instead of \d{1,20}/,
);
const symbol = pattern(
  ['undefined symbol: nccl', 'undefined symbol: pnccl'],
  /undefined symbol: p?nccl(?<symbol>\w{1,80})/,
);
const noKernel = pattern(
  ['NCCL WARN', 'NCCL error', 'NCCL Error'],
  /NCCL.{0,400}(?:Cuda failure|CUDA error|cuda error).{0,400}(?:no kernel image|named symbol not found|invalid device function|device kernel image is invalid|unsupported toolchain)/,
);
const watchdog = pattern(
  'Watchdog caught collective operation timeout',
  /\[Rank (?<rank>\d{1,20})\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?<sequence>\d{1,20}), OpType=(?<operation>\w{1,80}), NumelIn=(?<in>\d{1,20}), NumelOut=(?<out>\d{1,20})/,
);
const captureBegin = pattern(
  ['Capture', 'Capturing CUDA graphs', 'Capturing batches'],
  /^Capture (?:\w{1,80} )*(?:cuda|CUDA) graph begin|^Capturing (?:CUDA graphs|batches|num tokens)[^:]{0,200}: +(?<percent>\d{1,20})%/,
);
const captureEnd = pattern(
  ['graph end', 'Graph capturing finished', 'Registering'],
  /^Capture (?:\w{1,80} )*(?:cuda|CUDA) graph end|^Graph capturing finished/,
);
const callTimedOut = pattern(' timed out', /RPC call to \w{1,80} timed out/);
const compiles = pattern(
  ['JIT', 'nvcc', 'ninja', 'Compiling', 'AutoTuner'],
  /\bJIT\b|nvcc|ninja|[Cc]ompiling|AutoTuner/,
);
const stuck = pattern(
  'No available shared memory broadcast block',
  /No available shared memory broadcast block found/,
);

/** Releases that are known to hang: which, where, since when it is mended. */
const KNOWN: readonly { readonly version: RegExp; readonly why: string; readonly cure: string }[] = [
  {
    version: /^2\.21\.5$/,
    why: 'NCCL 2.21.5 has a known deadlock when several communicators are used at once, as during graph capture.',
    cure: 'Use NCCL 2.22.3 or later.',
  },
  {
    version: /^2\.28\.9$/,
    why: 'The build of NCCL 2.28.9 that comes as a Python package is known to stall on GB10 under load and in CUDA graphs.',
    cure: "Use the system's NCCL or 2.30.7 and later.",
  },
];

/** All ranks wait for each other in one collective, or an NCCL that does not fit torch, the GPU or its fellows. */
export const ncclLibrary: Signature = {
  name: 'nccl-library',
  causes: ['nccl-build-incompatible-with-platform', 'nccl-version-mismatch-across-nodes'],
  seenOn: 'NCCL 2.21.5, 2.28.9 and 2.30.7; SGLang 0.4.8, vLLM 0.20 and later, 2025 and 2026',
  source:
    'NCCL init.cc; torch ProcessGroupNCCL.cpp; vllm-project/vllm#41725, #42354; sgl-project/sglang#7602',
  looks: [
    'NCCL WARN Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 23007',
    'Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=4096, …) on every rank',
  ],
  patterns: [
    mismatched,
    version,
    truncated,
    symbol,
    noKernel,
    watchdog,
    captureBegin,
    captureEnd,
    stuck,
    callTimedOut,
    compiles,
  ],
  match(view) {
    return versionsDiffer(view) ?? doesNotFit(view) ?? hangs(view);
  },
};

function versionsDiffer(view: View): Match | undefined {
  const said = view.find(mismatched)[0];
  const versions = versionsByNode(view);
  const names = [...new Set([...versions.values()].map((found) => nameOf(found)))];
  if (said === undefined && (names.length < 2 || view.serves)) return undefined;
  const shown = [...(said === undefined ? view.find(truncated).slice(0, 1) : [said]), ...versions.values()];
  const [one, two] = [said?.groups['one'], said?.groups['two']].map((packed) =>
    packed === undefined ? undefined : unpacked(packed),
  );
  const told = one !== undefined && two !== undefined ? [one, two] : names;
  return {
    cause: 'nccl-version-mismatch-across-nodes',
    node: undefined,
    atFault: 'both',
    shown: shown.slice(0, 4),
    title: `The nodes ${list([...nodesOf(view.evidence)])} run different versions of NCCL: ${told.join(' and ')}`,
    why: 'NCCL talks only to the same version; a library on LD_PRELOAD, VLLM_NCCL_SO_PATH or another image on one node makes the difference.',
    advice: [
      'Use the same image on every node, and the same LD_PRELOAD and VLLM_NCCL_SO_PATH.',
      'On each node, in the container: python3 -c "import torch; print(torch.cuda.nccl.version())" must print the same.',
    ],
    values: { versions: told.join(',') },
    confidence: said === undefined ? 0.75 : 0.97,
    specificity: 3,
  };
}

function doesNotFit(view: View): Match | undefined {
  const found = view.find(symbol)[0] ?? view.find(noKernel)[0];
  if (found === undefined) return undefined;
  const missing = found.groups['symbol'];
  return {
    cause: 'nccl-build-incompatible-with-platform',
    node: found.node,
    shown: [found],
    title: `The NCCL that ${found.node} loads does not fit its ${missing === undefined ? 'GPU' : 'torch'}`,
    why:
      missing === undefined
        ? 'It holds no kernel for this GPU.'
        : `torch wants nccl${missing}, which the library that was found first does not have: it is older.`,
    advice: [
      `On ${found.node}, in the container: ldconfig -p | grep nccl; env | grep -e LD_PRELOAD -e LD_LIBRARY_PATH -e NCCL_SO`,
      'Load the NCCL that torch was built with, or a newer one.',
    ],
    confidence: 0.85,
    specificity: 3,
  };
}

/** Same collective, same sizes, on every rank: none is behind, and none gets on. */
function hangs(view: View): Match | undefined {
  const versions = versionsByNode(view);
  const known = KNOWN.find((one) => [...versions.values()].some((found) => one.version.test(nameOf(found))));
  const nodes = nodesOf(view.evidence);
  const waits = view.find(watchdog);
  const first = waits[0];
  const peers =
    first === undefined ? [] : waits.filter((found) => same(found, first) && found.rank !== first.rank);
  const all =
    nodes.length > 1 &&
    first !== undefined &&
    nodes.every((node) => node === first.node || peers.some((found) => found.node === node));
  if (first !== undefined && all)
    return build(
      view,
      known,
      [first, ...peers.slice(0, 2), ...versions.values()],
      known === undefined ? 0.6 : 0.85,
      'They all wait in the same collective with equal sizes, so none of them is behind.',
    );
  if (known !== undefined && !view.serves) {
    const after = afterGraphs(view);
    if (after.length > 0)
      return build(
        view,
        known,
        [...after, ...versions.values()],
        0.62,
        'They have their graphs, and then a call through NCCL does not come back.',
      );
  }
  const begun = nodes.flatMap(
    (node) => view.find(captureBegin).findLast((found) => found.node === node) ?? [],
  );
  if (known === undefined || begun.length < nodes.length || view.serves || view.find(captureEnd).length > 0)
    return undefined;
  const silent = nodes.every((node) => {
    const last = view.logs.find((log) => log.node === node && log.rank >= 0)?.last;
    return (
      last === undefined || begun.some((found) => found.node === node && found.line.line >= last.line - 3)
    );
  });
  if (!silent && view.find(stuck).length === 0) return undefined;
  return build(
    view,
    known,
    [...begun, ...versions.values()],
    0.75,
    'They began to capture graphs, and nothing follows.',
  );
}

/** A call that does not come back once the graphs are there, and nothing was compiled that would explain it. */
function afterGraphs(view: View): readonly Found[] {
  if (view.find(compiles).length > 0) return [];
  const ended = view.find(captureEnd)[0];
  const late =
    ended === undefined
      ? undefined
      : [...view.find(callTimedOut), ...view.find(watchdog), ...view.find(stuck)].find(
          (found) => found.rank !== ended.rank || found.line.line > ended.line.line,
        );
  return ended === undefined || late === undefined ? [] : [late, ended];
}

function build(
  view: View,
  known: (typeof KNOWN)[number] | undefined,
  shown: readonly Found[],
  confidence: number,
  seen: string,
): Match {
  const names = [...new Set([...versionsByNode(view).values()].map((found) => nameOf(found)))];
  return {
    cause: 'nccl-build-incompatible-with-platform',
    node: undefined,
    atFault: 'both',
    shown: shown.slice(0, 5),
    title: `All ranks on ${list([...nodesOf(view.evidence)])} hang inside NCCL${names[0] === undefined ? '' : ` ${names[0]}`}`,
    why: `${seen} ${known?.why ?? 'That is a hang of NCCL itself, of its build or of what lies under it.'}`,
    advice: [
      known?.cure ??
        'Try another build of NCCL: the one of the system by VLLM_NCCL_SO_PATH or LD_PRELOAD, or a newer image.',
      'The line "is using nccl==" of every rank must show the new version.',
    ],
    values: names[0] === undefined ? {} : { version: names[0] },
    confidence,
    specificity: 2,
    alternatives: [
      { cause: 'lossless-ethernet-config-lost', confidence: 0.1 },
      { cause: 'rdma-cabling-topology', confidence: 0.1 },
    ],
  };
}

function same(a: Found, b: Found): boolean {
  return ['sequence', 'operation', 'in', 'out'].every((key) => a.groups[key] === b.groups[key]);
}

function versionsByNode(view: View): ReadonlyMap<string, Found> {
  const map = new Map<string, Found>();
  const all = view.find(version);
  // What an engine says that it loaded counts before what stands in a banner or behind an error.
  for (const found of all) if (/is using nccl==/.test(found.message)) map.set(found.node, found);
  for (const found of all) if (!map.has(found.node)) map.set(found.node, found);
  return map;
}

function nameOf(found: Found): string {
  const { version: plain, packed } = found.groups;
  return plain ?? unpacked(packed ?? '');
}

/** 22809 → 2.28.9 */
function unpacked(packed: string): string {
  const number = Number(packed);
  return Number.isFinite(number) && number > 10_000
    ? `${Math.floor(number / 10_000)}.${Math.floor(number / 100) % 100}.${number % 100}`
    : packed;
}
