import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** The cable of the worker is pulled while it loads, and plugged in again: the ranks do not notice, and following goes on. */
export const lostLink: Story = {
  name: 'lost-link',
  title: 'The worker’s link is lost while it loads and comes back; following goes on where it broke',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [{ when: 'loading', node: 'spark-b', cutSeconds: 3 }],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'note', level: 'warning', node: 'spark-b' },
      { type: 'run-ended', outcome: 'serving' },
    ],
    outcome: 'serving',
    restored: false,
  },
};

/** The same, and it stays away: the worker is named. */
export const linkGone: Story = {
  ...lostLink,
  name: 'link-gone',
  title: 'The worker’s link is lost while it loads, and stays lost; the finding names the worker',
  timeline: [{ when: 'loading', node: 'spark-b', cutSeconds: 'for-ever' }],
  expect: {
    events: [
      { type: 'finding', node: 'spark-b', role: 'worker' },
      { type: 'run-ended', outcome: 'not-serving' },
    ],
    outcome: 'not-serving',
    restored: false,
  },
};
