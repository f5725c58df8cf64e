import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** The images' entry point takes away what the remedy sets, in both engines: no edit of a recipe can help. */
export const nothingHelps: Story = {
  name: 'nothing-helps',
  title: 'Images that throw away the interface they are given: every remedy fails, and it says so',
  cluster: 'sparks',
  hosts: [spark('a', {}), spark('b', {})],
  images: images(['GLOO_SOCKET_IFNAME', 'SGLANG_LOCAL_IP_NIC']),
  firewall: [],
  recipe: recipe({ network: 'engine' }),
  timeline: [],
  consents: [],
  passwords: {},
  expect: {
    events: [
      { type: 'finding', cause: 'loopback-address-advertised' },
      { type: 'remedy-failed', cause: 'loopback-address-advertised' },
      { type: 'engine-changed', from: 'sglang', to: 'vllm' },
      { type: 'run-ended', outcome: 'not-serving' },
    ],
    outcome: 'not-serving',
    restored: false,
  },
};
