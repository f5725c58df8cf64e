import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** Memory is taken on the worker between the look and the launch, so that the rank finds none. */
export const lateHolder: Story = {
  name: 'late-holder',
  title: 'A training run starts on the worker after the look, and the rank finds no memory',
  cluster: 'sparks',
  hosts: [
    spark('a', {}),
    spark('b', {
      holders: [
        {
          kind: 'process',
          name: 'finetune',
          absent: true,
          user: 'aurora',
          uid: 1000,
          argv: ['finetune', '--base', 'qwen3-32b', '--data', 'letters.jsonl', '--epochs', '3'],
          cwd: '/home/aurora/finetune',
          listens: [],
          gpuGiB: 118,
          residentGiB: 1.5,
          leavesGiB: 0.3,
        },
      ],
    }),
  ],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [{ when: 'rank-started', node: 'spark-b', startHolder: 'finetune' }],
  consents: [{ node: 'spark-b', holder: 'finetune' }],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'leftover-process-holds-gpu-memory', node: 'spark-b' },
      { type: 'remedy-proved', cause: 'leftover-process-holds-gpu-memory' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};
