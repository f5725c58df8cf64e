import { argsOf, type RecipeEdit, type Software, softwareOf } from '../../domain/recipe.ts';
import type { Remedy, RemedyInput } from './remedy.ts';
import { flagValue, setArgs } from './set-args.ts';
import { dropEnv } from './set-env.ts';

const FLAG = '--attention-backend';
/** What runs on nearly every GPU and model; the second where the first was in use. */
const PLAIN: Readonly<Record<Software, readonly string[]>> = {
  sglang: ['triton', 'flashinfer'],
  vllm: ['TRITON_ATTN', 'FLASHINFER'],
};

/** Another attention backend: the one that the engine itself asks for, else the plainest. */
export const otherAttention: Remedy = {
  name: 'other-attention',
  causes: ['attention-backend-unsupported', 'kernels-exceed-sm121-shared-memory'],
  title: (input) => `Compute attention with ${chosen(input) ?? 'another backend'}`,
  cost: () => 'perhaps some speed at long contexts',
  apply(input) {
    const { recipe, engine } = input;
    const to = chosen(input);
    if (to === undefined) return undefined;
    const edits: readonly RecipeEdit[] = [
      ...(dropEnv(recipe, ['VLLM_ATTENTION_BACKEND']) ?? []),
      ...(setArgs(recipe, engine, {
        [FLAG]: to,
        '--prefill-attention-backend': undefined,
        '--decode-attention-backend': undefined,
      }) ?? []),
    ];
    return edits.length === 0 ? undefined : edits;
  },
};

function chosen({ recipe, engine, finding }: RemedyInput): string | undefined {
  const now = flagValue(argsOf(recipe, engine), FLAG) ?? recipe.env['VLLM_ATTENTION_BACKEND'];
  const meant = finding.values['meant'];
  const wanted = [...(meant === undefined ? [] : [meant]), ...PLAIN[softwareOf(engine)]];
  return wanted.find((one) => one !== now);
}
