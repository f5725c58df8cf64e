import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** The head restarts while the model serves: status says so, and the next up brings it up again. */
export const headRebooted: Story = {
  name: 'head-rebooted',
  title:
    'The head restarts while it serves; the next up stops the half that is left and brings both up again',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [{ when: 'serving', node: 'spark-a', reboot: true }],
  consents: [],
  passwords: {},
  expect: {
    events: [
      // The second up: what is left is stopped first, and both are launched.
      { type: 'step-ended', kind: 'stop-rank', text: 'it is half of a job of ours that does not run' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};

/** The worker's rank is ended from outside while the model serves: half a job is no job. */
export const workerKilled: Story = {
  ...headRebooted,
  name: 'worker-killed',
  title:
    'The worker’s rank is ended while it serves; the next up stops the half that is left and launches both',
  timeline: [{ when: 'serving', node: 'spark-b', endRanks: true }],
};
