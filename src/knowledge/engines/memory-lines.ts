import type { LogLine } from '../../domain/evidence.ts';
import { messageOf } from './log-line.ts';

const GIB = 2 ** 30;

/** What an engine printed of its memory, bytes of the rank that took the most; undefined where it printed nothing. */
export type MemoryLines = {
  /** As loaded, draft and MTP included. */
  readonly weightsBytes: number | undefined;
  /** KV cache and state of hybrids. */
  readonly poolBytes: number | undefined;
  readonly graphsBytes: number | undefined;
};

type What = keyof MemoryLines;

/** Each form, what it tells, and how many of its groups are to be added. SGLang's GB are GiB (engines.md 5.2). */
const FORMS: readonly (readonly [What, RegExp])[] = [
  ['weightsBytes', /^Model loading took ([\d.]+) GiB/],
  ['weightsBytes', /^Load weight end\..*mem usage=([\d.]+) GB/],
  ['poolBytes', /^Available KV cache memory: ([\d.]+) GiB/],
  ['poolBytes', /^(?:\w+ )?KV Cache is allocated\..*K size: ([\d.]+) GB, V size: ([\d.]+) GB/],
  ['poolBytes', /^(?:\w+ )?KV Cache is allocated\..*KV size: ([\d.]+) GB/],
  ['poolBytes', /^Mamba Cache is allocated\..*conv_state size: ([\d.]+)GB, ssm_state size: ([\d.]+)GB/],
  ['graphsBytes', /^Graph capturing finished in .*took ([\d.]+) GiB/],
  ['graphsBytes', /^Capture (?:\w+ )*(?:CUDA|cuda) graph end\..*mem usage=([\d.]+) GB/],
];

/** "(Worker_TP1 pid=2) ", "[… TP1] ": which of several local ranks said it. */
const SPEAKER = /^\(Worker[\w.]* pid=\d+[^)]*\)|^\[[^\]]*((?:PP|TP)\d[^\]]*)\]/;

/** Sums what each local rank printed (a draft model has lines of its own) and takes the largest. */
export function memoryLines(lines: readonly LogLine[]): MemoryLines {
  const sums: Record<What, Map<string, number>> = {
    weightsBytes: new Map(),
    poolBytes: new Map(),
    graphsBytes: new Map(),
  };
  for (const { text } of lines) {
    if (!/took|mem usage|KV|Mamba/.test(text)) continue;
    const message = messageOf(text);
    for (const [what, form] of FORMS) {
      const groups = form.exec(message);
      if (groups === null) continue;
      const gib = groups.slice(1).reduce((sum, group) => sum + Number(group), 0);
      const match = SPEAKER.exec(text);
      const speaker = match?.[1] ?? match?.[0] ?? '';
      if (Number.isFinite(gib)) sums[what].set(speaker, (sums[what].get(speaker) ?? 0) + gib * GIB);
      break;
    }
  }
  const most = (what: What): number | undefined =>
    sums[what].size === 0 ? undefined : Math.round(Math.max(...sums[what].values()));
  return {
    weightsBytes: most('weightsBytes'),
    poolBytes: most('poolBytes'),
    graphsBytes: most('graphsBytes'),
  };
}
