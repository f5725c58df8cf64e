import type { Software } from '../../../domain/recipe.ts';
import { SGLANG_FLAGS } from '../../engines/sglang-flags.ts';
import { VLLM_FLAGS } from '../../engines/vllm-flags.ts';

/** Flags of servers that people come from; an engine here has none of them. */
const OF_OTHERS = `ctx-size n-gpu-layers gpu-layers split-mode main-gpu tensor-split flash-attn mlock no-mmap n-predict
  batch-size ubatch-size threads threads-batch jinja rpc num-shard max-input-length max-input-tokens max-batch-prefill-tokens
  max-batch-total-tokens max-concurrent-requests cuda-memory-fraction sharded model-id hostname-override max-seq-len
  max-batch-size max-num-tokens extra-llm-api-options kv-cache-free-gpu-memory-fraction backend-config keep-alive`;

/** Whose flags are listed. */
export const SOFTWARE: readonly Software[] = ['sglang', 'vllm'];

const KNOWN: Readonly<Record<Software, ReadonlySet<string>>> = {
  sglang: setOf(SGLANG_FLAGS),
  vllm: setOf(VLLM_FLAGS),
};
const OTHERS = setOf(OF_OTHERS);

function setOf(words: string): ReadonlySet<string> {
  return new Set(
    words
      .trim()
      .split(/\s+/)
      .map((word) => `--${word}`),
  );
}

/** Whether some version of the engine has this flag, with or without the no- of one that can be turned off. */
export function hasFlag(engine: Software, flag: string): boolean {
  return KNOWN[engine].has(flag) || KNOWN[engine].has(flag.replace(/^--no-/, '--'));
}

/** Whether it is a flag of a server that is neither: llama.cpp, TGI, TensorRT-LLM. */
export function isForeign(flag: string): boolean {
  return OTHERS.has(hyphened(flag)) && !SOFTWARE.some((engine) => hasFlag(engine, hyphened(flag)));
}

/** The flag in the engines' own spelling: two hyphens in front, hyphens between words, no capitals. */
export function hyphened(written: string): string {
  return written.toLowerCase().replace(/_/g, '-').replace(/^-*/, '--');
}

/** The engine's flag that was probably meant: same words with hyphens, at most a few letters off, or cut short. */
export function meantFlag(engine: Software, written: string): string | undefined {
  const flag = hyphened(written);
  if (hasFlag(engine, flag)) return flag === written ? undefined : flag;
  const known = [...KNOWN[engine]];
  const limit = flag.length <= 8 ? 1 : flag.length < 16 ? 2 : 3;
  return (
    nearest(flag, known, limit) ??
    known.find((one) => one.length > 9 && flag.startsWith(one) && flag.length <= one.length + 4)
  );
}

/** The one of `known` that is closest to `written`, at most `limit` letters off. */
export function nearest(written: string, known: readonly string[], limit: number): string | undefined {
  return known
    .map((one) => ({ one, off: distance(written, one, limit) }))
    .filter(({ one, off }) => one !== written && off <= limit)
    .toSorted((a, b) => a.off - b.off)[0]?.one;
}

/** Letters to put in, take out, replace or swap with their neighbour (Damerau's distance, restricted); more than `limit` is any more. */
function distance(a: string, b: string, limit: number): number {
  const far = limit + 1;
  if (Math.abs(a.length - b.length) > limit) return far;
  let before: readonly number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : far;
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swapped));
    }
    before = row;
    row = next;
  }
  return Math.min(far, row[b.length] ?? 0);
}
