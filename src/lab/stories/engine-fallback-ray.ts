import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/**
 * SGLang's image was pulled for another processor, and vLLM's is of before `--nnodes` (merged in November 2025): its
 * ranks can be spread over nodes by Ray alone, which that image has.
 */
export const engineFallbackRay: Story = {
  name: 'engine-fallback-ray',
  title: 'An image for another processor, a vLLM without --nnodes: the third engine, vLLM over Ray, serves',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images().map((image) =>
    image.engine === 'sglang'
      ? { ...image, arch: 'amd64' }
      : { ...image, lacks: ['--nnodes', '--node-rank', '--master-addr', '--master-port'] },
  ),
  firewall: [],
  recipe: recipe({ engines: ['sglang', 'vllm', 'vllm-ray'] }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'image-wrong-architecture' },
      { type: 'engine-changed', from: 'sglang', to: 'vllm' },
      { type: 'finding', cause: 'flag-unknown-to-this-version' },
      { type: 'engine-changed', from: 'vllm', to: 'vllm-ray' },
      { type: 'serving', engine: 'vllm-ray' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};
