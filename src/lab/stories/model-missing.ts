import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** The model lies on the head alone: seen before anything is launched, with the command that copies it. */
export const modelMissing: Story = {
  name: 'model-missing',
  title: 'The model lies on the head alone; nothing is launched, and the copy command is said',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', { hasModel: false })],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'model-path-missing-on-worker', node: 'spark-b', role: 'worker' },
      { type: 'run-ended', outcome: 'not-serving' },
    ],
    outcome: 'not-serving',
    restored: false,
  },
};
