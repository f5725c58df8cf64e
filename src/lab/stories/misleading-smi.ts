import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** As one owner saw it: nvidia-smi shows 0MiB / 95896MiB, and the host has next to nothing left. */
export const misleadingSmi: Story = {
  name: 'misleading-smi',
  title: 'nvidia-smi shows a worker with all its memory free, and nearly all of it is page cache that stays',
  cluster: 'sparks',
  hosts: [
    spark('a', {}),
    spark('b', { systemGiB: 17.5, cacheGiB: 99, stuckCacheGiB: 99, smi: 'prints-memory' }),
  ],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'insufficient-free-memory-at-startup', node: 'spark-b' },
      { type: 'run-ended', outcome: 'not-serving' },
    ],
    outcome: 'not-serving',
    restored: false,
  },
};
