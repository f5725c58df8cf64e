import { ENGINES, type EngineName, softwareOf } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';

/** Lines that are looked at: an engine says who it is at its start. */
const HEAD_LINES = 20_000;

/** What only a vLLM over Ray has in its logs: Ray's own start, and its workers' lines. */
const RAY = /\bRay runtime started\.|\(Ray\w+ pid=\d+/;

/** Which engine wrote these logs, by the landmarks and the names in them; undefined where nothing tells. */
export function recogniseEngine(
  logs: readonly (readonly { readonly text: string }[])[],
): EngineName | undefined {
  const lines = logs.flatMap((log) => log.slice(0, HEAD_LINES));
  const told = ENGINES.map((engine) => ({
    engine,
    named: lines.filter(({ text }) => text.toLowerCase().includes(softwareOf(engine))).length,
    marks: lines.filter(({ text }) => engines[engine].landmark(text) !== undefined).length,
  })).toSorted((a, b) => b.named - a.named || b.marks - a.marks);
  const [first] = told;
  if (first === undefined || first.named + first.marks === 0) return undefined;
  if (softwareOf(first.engine) !== 'vllm') return first.engine;
  return lines.some(({ text }) => RAY.test(text)) ? 'vllm-ray' : 'vllm';
}
