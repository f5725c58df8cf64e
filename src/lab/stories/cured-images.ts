import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** A pair of whole Sparks, with what differs: an image that lacks something, arguments that are wrong. */
function cured(
  name: string,
  title: string,
  lacks: readonly string[],
  args: Readonly<Record<string, readonly string[]>>,
  finding: string,
  remedy: string,
): Story {
  return {
    name,
    title,
    cluster: 'sparks',
    hosts: [spark('a', {}), spark('b', {})],
    images: images().map((image) => ({ ...image, lacks })),
    firewall: [],
    recipe: recipe({ network: 'auto', engines: ['sglang'], args }),
    timeline: [],
    consents: [],
    passwords: {},
    expect: {
      events: [
        { type: 'finding', cause: finding },
        { type: 'remedy-applied', remedy },
        { type: 'remedy-proved', cause: finding },
        { type: 'run-ended', outcome: 'serving' },
      ],
      outcome: 'serving',
      restored: false,
    },
  };
}

/** A flag with underscores, which SGLang's argparse does not take: written as SGLang does. */
export const misspelledFlag = cured(
  'misspelled-flag',
  'A flag is written with underscores; SGLang refuses it on both nodes, and it is written right',
  [],
  { sglang: ['--enable_metrics'] },
  'flag-misspelled',
  'drop-flag',
);

/** A flag of vLLM in the arguments for SGLang: left out. */
export const otherEnginesFlag = cured(
  'other-engines-flag',
  'A flag of vLLM stands in the arguments for SGLang; SGLang refuses it, and it is left out',
  [],
  { sglang: ['--max-num-batched-tokens', '8192'] },
  'flag-of-other-engine',
  'drop-flag',
);

/** Triton's own ptxas does not know the GB10: the toolkit's does. */
export const oldPtxas = cured(
  'old-ptxas',
  'The ptxas that Triton brings along does not know the GPU; the one of the CUDA toolkit is used',
  ['ptxas-sm_121a'],
  {},
  'bundled-ptxas-too-old',
  'toolkit-ptxas',
);

/** No kernels for the experts on this GPU: Marlin's run everywhere. */
export const kernelsMissing = cured(
  'kernels-missing',
  'The image has no code for quantised experts on this GPU; the Marlin kernels serve',
  ['expert-kernels-sm_121'],
  {},
  'kernels-not-built-for-sm121',
  'proven-kernels',
);
