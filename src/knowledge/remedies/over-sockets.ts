import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** The last resort where RDMA itself does not work and a person has to mend it: NCCL goes over TCP meanwhile. */
export const overSockets: Remedy = {
  name: 'over-sockets',
  causes: [
    'kernel-regression-rdma-registration',
    'lossless-ethernet-config-lost',
    'wrong-gid-index',
    'wrong-rdma-device-list',
    'rdma-cabling-topology',
    'memlock-limit-too-low',
  ],
  title: () => 'Let NCCL go over TCP instead of RDMA',
  cost: () =>
    'the ranks exchange their data several times slower; tokens come more slowly, most of all with many requests',
  apply: ({ recipe, evidence }) =>
    // Of ranks that somebody launched by hand nothing tells whether RDMA could be had after all.
    evidence.services.length === 0 || 'NCCL_NET' in recipe.env
      ? undefined
      : setEnv(recipe, { NCCL_IB_DISABLE: '1' }),
};
