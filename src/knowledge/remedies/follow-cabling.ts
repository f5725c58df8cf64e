import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** NCCL pairs RDMA ports by their order; these variables make it follow subnets, or stay on one rail (NVIDIA/nccl#2013). */
export const followCabling: Remedy = {
  name: 'follow-cabling',
  causes: ['rdma-cabling-topology'],
  title: ({ finding }) =>
    finding.values['remedy'] === 'subnet-aware'
      ? 'Let NCCL pair the ports that share a subnet'
      : 'Keep each ring of NCCL on one rail',
  cost: () => 'nothing',
  apply({ recipe, finding }) {
    if (finding.values['remedy'] === 'subnet-aware')
      return setEnv(recipe, { NCCL_IB_SUBNET_AWARE_ROUTING: '1', NCCL_IB_MERGE_NICS: '0' });
    return finding.values['remedy'] === 'cross-nic' ? setEnv(recipe, { NCCL_CROSS_NIC: '0' }) : undefined;
  },
};
