import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** Somebody's shell loop starts it again, and nobody sees the loop: stopping it is no use. */
export const comesBack: Story = {
  name: 'comes-back',
  title: 'A server on the worker is there again each time it was stopped, and nothing shows what starts it',
  cluster: 'sparks',
  hosts: [
    spark('a', {}),
    spark('b', {
      holders: [
        {
          kind: 'process',
          name: 'llama-server',
          user: 'aurora',
          uid: 1000,
          argv: ['llama-server', '--model', '/home/aurora/gguf/qwen3-32b-q4_k_m.gguf', '--port', '8080'],
          cwd: '/home/aurora',
          listens: [{ address: '0.0.0.0', port: 8080 }],
          gpuGiB: 48.6,
          residentGiB: 1.1,
          comesBackSeconds: 1,
        },
      ],
    }),
  ],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [],
  consents: [{ node: 'spark-b', holder: 'llama-server' }],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'leftover-process-holds-gpu-memory', node: 'spark-b' },
      { type: 'run-ended', outcome: 'not-serving' },
    ],
    outcome: 'not-serving',
    restored: false,
  },
};
