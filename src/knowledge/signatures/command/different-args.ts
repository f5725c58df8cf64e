import { list } from '../../../domain/units.ts';
import { headOf, nodesOf, peersOf, severalNodes } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const watchdog = pattern(
  'Watchdog caught collective operation timeout',
  /Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?<sequence>\d{1,20}), OpType=(?<operation>\w{1,80}), NumelIn=(?<in>\d{1,20}), NumelOut=(?<out>\d{1,20})/,
);
const glooSize = pattern(
  ['op.preamble.length', 'op->preamble', 'preamble'],
  /op(?:\.|->)preamble\.length <= op(?:\.|->)nbytes\. (?<one>\d{1,20}) vs (?<two>\d{1,20})/,
);
const collectives = pattern(
  'mismatch between collectives',
  /Detected mismatch between collectives on ranks\. (?<what>.{0,400})$/,
);
const truncated = pattern(
  'Message truncated',
  /Message truncated ?: received (?<got>\d{1,20}) bytes instead of (?<wanted>\d{1,20})/,
);
const count = pattern(
  ['mismatch in rank count', 'World size', 'world size', 'world_size'],
  /mismatch in rank count from procs (?<one>\d{1,20}) : (?<two>\d{1,20})|[Ww]orld ?size (?:mismatch|differs|\(?\d{1,20}\)? (?:does not|!=))|expected world_size \d{1,20}/,
);
const config = pattern(
  ['onfiguration mismatch', 'onfig mismatch', 'config hash', 'identical configuration', 'parallel config'],
  /[Cc]onfig(?:uration)? (?:hash )?mismatch|must have (?:the same|identical) config\w{0,80}|config hash \S{1,300} (?:differs|does not match|!=)|parallel config\w{0,80} (?:differ|mismatch)/,
);
/** vLLM's head compares what its workers would cache, which their data types and layouts decide. */
const cacheSpecs = pattern(
  'different across workers',
  /KV cache specs for the same layer are different across workers/,
);
const worlds = pattern(
  'world_size=',
  /^world_size=(?<world>\d{1,20}) rank=\d{1,20} .{0,400}distributed_init_method=/,
);
const batched = pattern(
  'max_num_batched_tokens',
  /max_num_batched_tokens['"]?[=:] ?(?<max_num_batched_tokens>\d{1,20})/,
);
const vllmArgs = pattern('non-default args', /^non-default args: (?<args>\{.*)$/);
const sglangArgs = pattern('server_args=', /^server_args=(?:ServerArgs\()?(?<args>.*)$/);
const commands = pattern(
  ['--tensor-parallel-size', '--tp', '-tp '],
  /(?:vllm serve|sglang|launch_server|api_server).{0,400}--/,
);
const engineConfig = pattern(
  'LLM engine (v',
  /^Initializing a V\d LLM engine \(v(?<version>[\w.+-]+)\)(?: with config: (?<args>.*))?$/,
);
const waits = pattern(
  [
    'waiting for clients',
    'Watchdog caught',
    'connectFullMesh',
    'No available shared memory broadcast',
    'timed out',
    'Timeout',
  ],
  /seconds waiting for clients|Watchdog caught|connectFullMesh failed|No available shared memory broadcast block|timed out|Timeout\(ms\)/,
);

/** Arguments that must be the same on all ranks, without the dashes. */
const COMMON: readonly string[] = [
  'tensor_parallel_size',
  'tp_size',
  'pipeline_parallel_size',
  'pp_size',
  'data_parallel_size',
  'dp_size',
  'ep_size',
  'nnodes',
  'enable_expert_parallel',
  'max_num_batched_tokens',
  'max_num_seqs',
  'max_model_len',
  'max_running_requests',
  'chunked_prefill_size',
  'context_length',
  'kv_cache_dtype',
  'quantization',
  'dtype',
  'block_size',
  'page_size',
  'enforce_eager',
  'disable_cuda_graph',
  'cuda_graph_max_bs',
  'attention_backend',
  'enable_prefix_caching',
  'disable_radix_cache',
  'num_speculative_tokens',
  'speculative_algorithm',
  'enable_chunked_prefill',
  'async_scheduling',
];

/** The ranks were started with arguments that do not fit together: they run collectives of different size. */
export const differentArgs: Signature = {
  name: 'different-args',
  causes: ['ranks-with-different-args'],
  seenOn: 'vLLM 0.22 and 0.32, SGLang 0.5, torch 2.6 to 2.13, 2025 and 2026',
  source:
    'torch ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp; gloo pair.cc; NCCL bootstrap.cc, net_socket.cc; vllm-project/vllm#44718',
  looks: [
    'Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=_ALLGATHER_BASE, NumelIn=524288, …) on one rank and NumelIn=131072 on another',
    '[enforce fail at gloo/transport/tcp/pair.cc] op.preamble.length <= op.nbytes. 8192 vs 4096',
  ],
  patterns: [
    watchdog,
    glooSize,
    collectives,
    truncated,
    count,
    config,
    cacheSpecs,
    worlds,
    batched,
    vllmArgs,
    sglangArgs,
    commands,
    engineConfig,
    waits,
  ],
  match(view) {
    const { evidence, find } = view;
    const said =
      find(glooSize)[0] ??
      find(collectives)[0] ??
      find(count).find(real) ??
      find(config)[0] ??
      find(cacheSpecs)[0];
    const differ = differences(view);
    if (said !== undefined) return told(view, [said, ...differ.shown], differ.names, 0.9);
    if (!severalNodes(evidence) || view.serves) return undefined;
    const sizes = sizesDiffer(find(watchdog));
    if (sizes !== undefined) return told(view, [...sizes, ...differ.shown], differ.names, 0.93);
    const world = pair(find(worlds), 'world');
    if (world !== undefined) return told(view, [...world, ...differ.shown], ['world size'], 0.9);
    const short = find(truncated)[0];
    if (short !== undefined)
      return told(view, [short, ...differ.shown], differ.names, differ.names.length > 0 ? 0.9 : 0.6);
    const stopped = view.stalled !== undefined || find(waits).length > 0;
    return differ.names.length > 0 && stopped ? told(view, differ.shown, differ.names, 0.72) : undefined;
  },
};

function real(found: Found): boolean {
  const { one, two } = found.groups;
  return one === undefined || one !== two;
}

/** The same collective with other sizes on another rank. */
function sizesDiffer(all: readonly Found[]): readonly Found[] | undefined {
  for (const one of all) {
    const other = all.find(
      (found) =>
        found.node !== one.node &&
        found.groups['sequence'] === one.groups['sequence'] &&
        (found.groups['in'] !== one.groups['in'] || found.groups['operation'] !== one.groups['operation']),
    );
    if (other !== undefined) return [one, other];
  }
  return undefined;
}

function pair(all: readonly Found[], key: string): readonly Found[] | undefined {
  for (const one of all) {
    const other = all.find((found) => found.node !== one.node && found.groups[key] !== one.groups[key]);
    if (other !== undefined) return [one, other];
  }
  return undefined;
}

/** Arguments that stand in the logs or commands of two nodes with different values. */
function differences(view: View): { readonly names: readonly string[]; readonly shown: readonly Found[] } {
  const head = headOf(view.evidence);
  if (head === undefined) return { names: [], shown: [] };
  const own = argumentsOf(view, head);
  for (const node of peersOf(view.evidence, head)) {
    const other = argumentsOf(view, node);
    const names = COMMON.filter(
      (name) =>
        own.values.has(name) && other.values.has(name) && own.values.get(name) !== other.values.get(name),
    );
    if (names.length === 0) continue;
    const lines = names
      .flatMap((name) => [own.lines.get(name), other.lines.get(name)])
      .filter((found) => found !== undefined);
    return { names, shown: [...new Set(lines)].slice(0, 4) };
  }
  return { names: [], shown: [] };
}

type Args = { readonly values: Map<string, string>; readonly lines: Map<string, Found> };

function argumentsOf(view: View, node: string): Args {
  const args: Args = { values: new Map(), lines: new Map() };
  const on = (found: Found) => found.node === node;
  read(args, view.command(node), undefined);
  for (const found of [
    ...view.find(commands),
    ...view.find(sglangArgs),
    ...view.find(vllmArgs),
    ...view.find(engineConfig),
    ...view.find(batched),
  ].filter(on))
    read(args, found.groups['args'] ?? found.message, found);
  return args;
}

/** `--max-num-seqs 8`, `'max_num_seqs': 8`, `max_num_seqs=8` */
const ARGUMENT = /(?:--|\b|')([a-z][a-z_-]{3,40})'?(?:\s*[=:]\s*|\s+(?!--)(?=[\w.'"-]))['"]?([\w.:-]+)/g;
/** `--enforce-eager` and `--no-enforce-eager`, which take no value: another flag follows, or nothing. */
const SWITCH = /(?<=^|\s)--(no-)?([a-z][a-z-]{3,40})(?=\s+--|\s*$)/g;

function read({ values, lines }: Args, text: string, found: Found | undefined): void {
  for (const [, name = '', value = ''] of text.matchAll(ARGUMENT)) {
    take(name, value);
  }
  for (const [, no, name = ''] of text.matchAll(SWITCH)) take(name, no === undefined ? 'True' : 'False');

  function take(name: string, value: string): void {
    const key = name.replaceAll('-', '_');
    if (!COMMON.includes(key)) return;
    values.set(key, /^(?:true|false)$/.test(value) ? `${value[0]?.toUpperCase()}${value.slice(1)}` : value);
    if (found !== undefined) lines.set(key, found);
  }
}

function told(view: View, shown: readonly Found[], names: readonly string[], confidence: number): Match {
  return {
    cause: 'ranks-with-different-args',
    node: undefined,
    atFault: 'launcher',
    shown: [...new Set(shown)].slice(0, 5),
    title: `${list([...nodesOf(view.evidence)])} were started with arguments that do not fit together${names.length > 0 ? `: ${list(names.slice(0, 3))}` : ''}`,
    why: 'All ranks take part in the same collectives and must bring the same sizes; here one brings more than another, and each waits.',
    advice: [
      `Start all ranks with the same arguments but for the rank and addresses${names.length > 0 ? `: ${list(names.map((name) => (/^[a-z_]+$/.test(name) ? `--${name.replaceAll('_', '-')}` : name)))}` : ''}; firstlight up does so.`,
      'Compare "non-default args" or "server_args" of the logs.',
    ],
    values: names.length === 0 ? {} : { arguments: names.join(',') },
    confidence,
    specificity: 3,
  };
}
