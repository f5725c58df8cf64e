import { isLoopback, plainAddress } from '../../../domain/address.ts';
import { headOf, nodesOf, peersOf, severalNodes } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';
import { HOST_IP, RAY_LOCAL } from './addresses.ts';
import { INIT_METHOD } from './unreached.ts';

const collision = pattern(
  [
    'duplicate address',
    'IP conflict',
    'address conflict',
    'Duplicate address',
    'already in use by host',
    'DAD failed',
    'ACD',
  ],
  /[Dd]uplicate (?:IP ?v?\d? )?address(?: detected)?(?:.{0,400}?(?<address>\d{1,20}\.\d{1,20}\.\d{1,20}\.\d{1,20}))?|(?:IP|address) conflict|already in use by host|DAD failed|ACD.{0,400}conflict/,
);
const launch = pattern(['HOST_IP'], /-e (?<name>(?:VLLM_|SGLANG_)?HOST_IP)=(?<address>[\d.a-fA-F:]{1,200})/);

/** Several nodes present themselves under one address. */
export const duplicateHostIp: Signature = {
  name: 'duplicate-host-ip',
  causes: ['duplicate-host-ip'],
  seenOn: 'vLLM 0.20 and later over Ray, SGLang 0.5, 2025 and 2026',
  source: 'vLLM utils/network_utils.py, SGLang utils/network.py; kernel net/ipv4 and systemd-networkd',
  looks: ['VLLM_HOST_IP=10.0.0.1 in the log of both nodes'],
  patterns: [HOST_IP, RAY_LOCAL, INIT_METHOD, collision, launch],
  match(view) {
    if (!severalNodes(view.evidence)) return undefined;
    const clash = view.find(collision)[0];
    const said = [...view.find(HOST_IP), ...view.find(launch)].filter(isOwn);
    const rays = view.find(RAY_LOCAL).filter(isOwn);
    const twice = pair(said) ?? pair(rays) ?? asHead(view, said) ?? byEnvironment(view);
    if (twice === undefined && clash === undefined) return undefined;
    const shown = twice?.shown ?? (clash === undefined ? [] : [clash]);
    const address = twice?.address ?? clash?.groups['address'] ?? '';
    const name = shown[0]?.groups['name'] ?? 'VLLM_HOST_IP';
    return {
      cause: 'duplicate-host-ip',
      node: undefined,
      atFault: 'launcher',
      shown,
      title: `${nodesOf(view.evidence).join(' and ')} present themselves under one address${address === '' ? '' : `, ${address}`}`,
      why: `The same ${name} was given to all nodes, as by one file of variables; who wants to reach the one finds the other.`,
      advice: [
        `Take ${name} out of env of the recipe and set network: auto: each rank then gets its own node's address.`,
        'ray status, or the line "Local node IP", must show another address on each node.',
      ],
      values: address === '' ? {} : { address },
      confidence: twice === undefined ? 0.7 : 0.88,
      specificity: 3,
    };
  },
};

function isOwn(found: Found): boolean {
  return !isLoopback(found.groups['address'] ?? '');
}

type Twice = { readonly address: string; readonly shown: readonly Found[] };

/** Two nodes that say the same. */
function pair(said: readonly Found[]): Twice | undefined {
  for (const one of said) {
    const address = plainAddress(one.groups['address'] ?? '');
    const other = said.find(
      (found) => found.node !== one.node && plainAddress(found.groups['address'] ?? '') === address,
    );
    if (other !== undefined) return { address, shown: [one, other] };
  }
  return undefined;
}

/** A worker that calls itself by the address where the head's store is. */
function asHead(view: View, said: readonly Found[]): Twice | undefined {
  const head = headOf(view.evidence);
  const store = view.find(INIT_METHOD).find((found) => found.node === head);
  const address = plainAddress(store?.groups['address'] ?? '');
  const worker = said.find(
    (found) => found.node !== head && plainAddress(found.groups['address'] ?? '') === address,
  );
  return worker === undefined || store === undefined ? undefined : { address, shown: [worker, store] };
}

/** What the ranks were started with. */
function byEnvironment(view: View): Twice | undefined {
  const head = headOf(view.evidence);
  for (const name of ['VLLM_HOST_IP', 'SGLANG_HOST_IP', 'HOST_IP']) {
    const own = head === undefined ? undefined : view.env(head, name);
    if (own === undefined || head === undefined || isLoopback(own)) continue;
    if (peersOf(view.evidence, head).some((node) => view.env(node, name) === own))
      return { address: own, shown: [] };
  }
  return undefined;
}
