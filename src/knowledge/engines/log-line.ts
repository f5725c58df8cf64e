import type { Landmark } from './engine.ts';

/** Colour and cursor sequences, as engines and Ray write them when they believe in a terminal. */
const ANSI = /\x1b\[[0-9;?]*[A-Za-z]/g;
/** "(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.1) ", nested as Ray does. */
const PROCESS = /^(?:\([A-Za-z_][\w.]* pid=\d+(?:, ip=[\d.a-fA-F:]+)?\)\s*)+/;
/** "INFO 05-06 20:59:57 [default_loader.py:384] "; the file and line move between versions and mean nothing. */
const VLLM_RECORD = /^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*:\d+\] ?/;
/** "[2026-08-21 10:00:00 PP0 TP1] " */
const SGLANG_RECORD =
  /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*\] ?/;
/** The address in such a prefix: the last one is that of whoever spoke. */
const ADDRESS = /\([A-Za-z_][\w.]* pid=\d+, ip=([\d.a-fA-F:]+)\)/g;
/** Ray's note that it folded equal lines of several nodes into one. */
const REPEATED = / \[repeated \d+x across cluster\](?: \(.*\))?$/;

/**
 * What a line says, without colours, process prefixes, time stamp, rank and level. One rule for both engines,
 * since either may run inside the other's wrappers. Lines of neither form come back as they are.
 */
export function messageOf(text: string): string {
  let rest = text.includes('\x1b') ? text.replace(ANSI, '') : text;
  if (rest.endsWith('\n') || rest.endsWith('\r')) rest = rest.replace(/[\r\n]+$/, '');
  for (const prefix of [PROCESS, SGLANG_RECORD, PROCESS, VLLM_RECORD]) rest = rest.replace(prefix, '');
  return rest.includes(' [repeated ') ? rest.replace(REPEATED, '') : rest;
}

/** Address of the node on which this was said, where Ray brought the line from another one. */
export function rayAddressOf(text: string): string | undefined {
  const plain = text.replace(ANSI, '');
  const prefix = PROCESS.exec(plain)?.[0] ?? '';
  return [...prefix.matchAll(ADDRESS)].at(-1)?.[1];
}

/**
 * Weight loading as tqdm draws it; every loader has a label of its own in front of the same bar:
 * "Loading safetensors checkpoint shards:  56% Completed | 5/9 [00:13<00:11,  2.87s/it]".
 */
const LOADING =
  /^(?:Loading (?:safetensors|pt)|Multi-thread loading)[^:]*:\s*(\d+)%\s*Completed \| \d+\/\d+ \[/;
/** "Capturing batches (bs=8 avail_mem=50.20 GB):  10%|#  | 5/52 […" and vLLM's "Capturing CUDA graphs (decode, FULL):  40%|…". */
const CAPTURING = /^Capturing (?:batches|num tokens|CUDA graphs)[^:]*:\s*(\d+)%\|/;

/** The landmark of a progress bar, or undefined when the message is none. */
function progressBar(message: string): Landmark | undefined {
  const loading = LOADING.exec(message);
  if (loading) return { stage: 'weights', percent: Number(loading[1]) };
  const capturing = CAPTURING.exec(message);
  return capturing ? { stage: 'graphs', percent: Number(capturing[1]) } : undefined;
}

/** A table of messages, first match wins. */
export type Marks = readonly (readonly [RegExp, Landmark])[];

/** Every form of line that may be a landmark by this table: who has many lines to read looks for their literals first. */
export function landmarkForms(marks: Marks): readonly RegExp[] {
  return [LOADING, CAPTURING, ...marks.map(([form]) => form)];
}

/** The landmark of a line by its bars and its engine's table. */
export function landmarkIn(marks: Marks, text: string): Landmark | undefined {
  const message = messageOf(text);
  return progressBar(message) ?? marks.find(([pattern]) => pattern.test(message))?.[1];
}

/** What every engine's process says first of all, once its arguments are read: nothing before it is of the same start. */
export const START: RegExp =
  /^non-default args: |vLLM (?:API )?server version |^Launching vLLM \(v[^)]+\) headless|^server_args=/;
export const START_LITERALS: readonly string[] = [
  'non-default args: ',
  'vLLM API server version ',
  'vLLM server version ',
  'Launching vLLM (v',
  'server_args=',
];
