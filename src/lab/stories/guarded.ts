import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** Memory is eaten while the rank comes up: its guard stops it before the host freezes, and a smaller share lives beside the eater. */
export const guarded: Story = {
  name: 'guarded',
  title:
    'Somebody’s job takes all memory of the worker while its rank comes up, and the guard stops the rank',
  cluster: 'sparks',
  hosts: [
    spark('a', {}),
    spark('b', {
      holders: [
        {
          kind: 'process',
          name: 'reindex',
          absent: true,
          user: 'aurora',
          uid: 1000,
          argv: ['reindex', '--library', '/home/aurora/papers'],
          cwd: '/home/aurora/papers',
          listens: [],
          gpuGiB: 25,
          residentGiB: 0.5,
          leavesGiB: 2,
        },
      ],
    }),
  ],
  images: images(),
  firewall: [],
  // At a pace at which a guard that looks once a second sees what happens, whatever the lab's own pace is.
  recipe: recipe({
    network: 'auto',
    context: 32768,
    sequences: 8,
    memory: { fraction: 0.8 },
    env: { FIRSTLIGHT_LAB_SPEED: '0.8' },
  }),
  timeline: [{ when: 'pooled', node: 'spark-b', startHolder: 'reindex' }],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'memory-exhausted-rank-stopped', node: 'spark-b' },
      { type: 'remedy-applied', remedy: 'less-memory' },
      { type: 'remedy-proved', cause: 'memory-exhausted-rank-stopped' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};
