import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** The first engine's image lacks its own program, which no edit of a recipe mends; the second one serves. */
export const engineFallback: Story = {
  name: 'engine-fallback',
  title: 'SGLang’s image has no SGLang in it; nothing can be done about that, and vLLM serves',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images().map((image) =>
    image.engine === 'sglang' ? { ...image, lacks: ['sglang', 'python3', 'python'] } : image,
  ),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'package-missing-in-image' },
      { type: 'engine-changed', from: 'sglang', to: 'vllm' },
      { type: 'serving', engine: 'vllm' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};

/** The first engine's build is older than the model: there is no flag for that either. */
export const modelUnknown: Story = {
  ...engineFallback,
  name: 'model-unknown',
  title: 'SGLang’s build does not have the model’s architecture; vLLM’s has it, and serves',
  images: images().map((image) =>
    image.engine === 'sglang' ? { ...image, lacks: ['Qwen3_5MoeForConditionalGeneration'] } : image,
  ),
  expect: {
    ...engineFallback.expect,
    events: [
      { type: 'finding', cause: 'model-not-supported-by-engine' },
      ...engineFallback.expect.events.slice(1),
    ],
  },
};
