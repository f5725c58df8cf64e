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
];

/** Each rank gets its own node's addresses and interface names (engines.md §10.1). */
export const useNodeAddresses: Remedy = {
  name: 'use-node-addresses',
  causes: [
    'loopback-address-advertised',
    'wrong-network-address-advertised',
    'hostname-resolves-to-wrong-address',
    'wrong-socket-interface',
    'duplicate-host-ip',
  ],
  title: () => "Give each rank its own node's address and interface",
  cost: () => 'nothing',
  apply({ recipe }) {
    const overrides: readonly RecipeEdit[] = OF_ONE_NODE.filter((name) => name in recipe.env).map((name) => ({
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
