import { fabricAddresses, headOf, peersOf, severalNodes } from '../scene.ts';
import { type Match, pattern, type Signature, type View } from '../signature.ts';

const sglangWaits = pattern(
  'because this process group spans across nodes',
  /ustom ?[Aa]ll-?[Rr]educe is disabled because this process group spans across nodes/,
);
const sglangGoesOn = pattern('Init torch distributed ends', /^Init torch distributed ends/);
const vllmLeader = pattern(
  'mq_connect_ip=',
  /^DP group leader: .{0,400}mq_connect_ip=(?<address>[^\s,]{1,200}) \(local\)/,
);

/**
 * The message queue between nodes waits without a limit at an address of the default route. Nothing is printed: the
 * silence after this line is the sign (engines.md §1.3, §2.1).
 */
export const messageQueueUnreached: Signature = {
  name: 'message-queue-unreached',
  causes: ['wrong-network-address-advertised'],
  seenOn: 'SGLang 0.5.18, vLLM 0.28, August 2026',
  source: 'MiaAI-Lab/Qwen3.8-Flash-Next-Dual-DGX-Sparks#3; shm_broadcast.py of both engines',
  patterns: [sglangWaits, sglangGoesOn, vllmLeader],
  match(view) {
    if (!severalNodes(view.evidence) || view.stalled === undefined) return undefined;
    return view.evidence.engine === 'sglang' ? sglang(view) : vllm(view);
  },
};

function sglang({ evidence, find, stalled }: View): Match | undefined {
  const shown = find(sglangWaits);
  const head = headOf(evidence);
  if (stalled !== 'rendezvous' || shown[0] === undefined || find(sglangGoesOn).length > 0) return undefined;
  return {
    cause: 'wrong-network-address-advertised',
    node: head,
    shown: shown.slice(0, 2),
    title: `${head} offers its message queue at an address that ${peersOf(evidence, head ?? '').join(' and ')} cannot reach`,
    why: 'NCCL is up, and then all ranks wait in silence: SGLang binds that queue to the address of the default route unless SGLANG_HOST_IP says otherwise.',
    advice: [
      "Set network: auto in the recipe, so that each rank gets SGLANG_HOST_IP with its own node's fabric address.",
      `On ${head}: ip route get 8.8.8.8`,
    ],
    confidence: evidence.recipe.network === 'engine' ? 0.8 : 0.55,
    specificity: 2,
  };
}

function vllm({ evidence, find }: View): Match | undefined {
  const found = find(vllmLeader)[0];
  const address = found?.groups['address'];
  const fabric = found === undefined ? [] : fabricAddresses(evidence, found.node);
  if (found === undefined || address === undefined || fabric.length === 0 || fabric.includes(address)) {
    return undefined;
  }
  return {
    cause: 'wrong-network-address-advertised',
    node: found.node,
    shown: [found],
    title: `${found.node} offers its message queue at ${address}, which is not on the fabric`,
    why: `The other nodes reach it at ${fabric.join(' or ')}. vLLM takes the address of the default route unless VLLM_HOST_IP says otherwise.`,
    advice: [
      "Set network: auto in the recipe, so that each rank gets VLLM_HOST_IP with its own node's address.",
    ],
    values: { address },
    confidence: 0.8,
    specificity: 2,
  };
}
