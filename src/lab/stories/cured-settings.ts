import type { Cured } from './cured.ts';

/** Recipes with one setting that cannot work. */
export const curedSettings: readonly Cured[] = [
  {
    name: 'misspelled-flag',
    title: 'A flag is written with underscores; SGLang refuses it on both nodes, and it is written right',
    cause: 'flag-misspelled',
    remedy: 'drop-flag',
    recipe: { engines: ['sglang'], args: { sglang: ['--enable_metrics'] } },
  },
  {
    name: 'other-engines-flag',
    title: 'A flag of vLLM stands in the arguments for SGLang; SGLang refuses it, and it is left out',
    cause: 'flag-of-other-engine',
    remedy: 'drop-flag',
    recipe: { engines: ['sglang'], args: { sglang: ['--max-num-batched-tokens', '8192'] } },
  },
  {
    // A list with NCCL's signs, given to Gloo as well, which looks for an interface of that very name.
    name: 'wrong-interface',
    title: 'One name of an interface is given to both nodes, and neither has it; each gets its own',
    cause: 'wrong-socket-interface',
    remedy: 'use-node-addresses',
    recipe: { engines: ['sglang'], env: { GLOO_SOCKET_IFNAME: '^lo,docker' } },
  },
  {
    // The head's name for its interface, which the worker's cable does not have.
    name: 'other-cage',
    title:
      'NCCL is told the name of the head’s interface; the worker’s cable is in the other cage, and each gets its own',
    cause: 'wrong-socket-interface',
    remedy: 'use-node-addresses',
    recipe: { engines: ['vllm'], env: { NCCL_SOCKET_IFNAME: '=enp1s0f0np0' } },
  },
];
