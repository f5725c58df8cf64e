import type { RecipeEdit } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';

/** Variables that tell an engine which address or interface is its own: one value for all nodes cannot be right. */
const OF_ONE_NODE = [
  'GLOO_SOCKET_IFNAME',
  'NCCL_SOCKET_IFNAME',
  'TP_SOCKET_IFNAME',
  'SGLANG_HOST_IP',
  'SGLANG_LOCAL_IP_NIC',
  'HOST_IP',
  'VLLM_HOST_IP',
  'UCX_NET_DEVICES',
  'OMPI_MCA_btl_tcp_if_include',
  'MASTER_ADDR',
];
/** Names of RDMA devices and places in their tables differ from node to node as well. */
const OF_ONE_FABRIC = ['NCCL_IB_HCA', 'NCCL_IB_GID_INDEX'];

/** Each rank gets its own node's addresses and interface names (engines.md §10.1). */
export const useNodeAddresses: Remedy = {
  name: 'use-node-addresses',
  causes: [
    'loopback-address-advertised',
    'wrong-network-address-advertised',
    'hostname-resolves-to-wrong-address',
    'wrong-socket-interface',
    'duplicate-host-ip',
    'env-not-set-in-container',
    'wrong-rdma-device-list',
    'rdma-underused-one-half-or-small-mtu',
  ],
  title: () => "Give each rank its own node's address and interface",
  cost: () => 'nothing',
  apply({ recipe, finding }) {
    const rdma = finding.cause === 'wrong-rdma-device-list' || finding.cause.startsWith('rdma-');
    const names = rdma ? OF_ONE_FABRIC : OF_ONE_NODE;
    const overrides: readonly RecipeEdit[] = names
      .filter((name) => name in recipe.env)
      .map((name) => ({
        path: `env.${name}`,
        from: recipe.env[name],
        to: undefined,
      }));
    const network: readonly RecipeEdit[] =
      recipe.network === 'auto' ? [] : [{ path: 'network', from: recipe.network, to: 'auto' }];
    const edits = [...network, ...overrides];
    return edits.length === 0 ? undefined : edits;
  },
};
