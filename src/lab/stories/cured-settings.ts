import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** A pair of whole Sparks and a recipe with one setting in it that cannot work: named, cured, proved. */
function cured(
  name: string,
  title: string,
  differs: Story['recipe'],
  finding: string,
  remedy: string,
): Story {
  return {
    name,
    title,
    cluster: 'sparks',
    hosts: [spark('a', {}), spark('b', {})],
    images: images(),
    firewall: [],
    recipe: recipe({ network: 'auto', ...differs }),
    timeline: [],
    consents: [],
    passwords: {},
    expect: {
      events: [
        { type: 'finding', cause: finding },
        { type: 'remedy-applied', remedy },
        { type: 'remedy-proved', cause: finding },
        { type: 'run-ended', outcome: 'serving' },
      ],
      outcome: 'serving',
      restored: false,
    },
  };
}

/** A list with NCCL's signs, given to Gloo as well, which looks for an interface of that very name. */
export const wrongInterface = cured(
  'wrong-interface',
  'One name of an interface is given to both nodes, and neither has it; each gets its own',
  { engines: ['sglang'], env: { GLOO_SOCKET_IFNAME: '^lo,docker' } },
  'wrong-socket-interface',
  'use-node-addresses',
);

/** The head's name for its interface, which the worker's cable does not have. */
export const otherCage = cured(
  'other-cage',
  'NCCL is told the name of the head’s interface; the worker’s cable is in the other cage, and each gets its own',
  { engines: ['vllm'], env: { NCCL_SOCKET_IFNAME: '=enp1s0f0np0' } },
  'wrong-socket-interface',
  'use-node-addresses',
);
