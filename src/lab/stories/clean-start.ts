import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** Nothing is in the way but the names on loopback, and `network: auto` keeps them from mattering. */
export const cleanStart: Story = {
  name: 'clean-start',
  title: 'Two free Sparks: each rank gets its node’s own addresses, and nothing fails',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'auto' }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: { events: [{ type: 'run-ended', outcome: 'serving' }], outcome: 'serving', restored: false },
};
