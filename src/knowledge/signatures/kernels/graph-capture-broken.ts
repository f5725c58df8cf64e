import { NCCL_NETWORK } from '../fabric/rdma-setup.ts';
import { nodesOf, severalNodes } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const broken = pattern(
  [
    'illegal memory access',
    'stream is capturing',
    'during capture',
    'StreamCapture',
    'capturing blocking stream',
    'graph capture',
    'capture mode',
  ],
  /CUDA error: an illegal memory access|Cuda failure (?:\d{1,20} )?'an illegal memory access|(?:operation not permitted|would make the legacy stream depend|not permitted) .{0,400}captur|operation failed due to a previous error during capture|cudaErrorStreamCapture\w{1,80}|STREAM_CAPTURE_\w{1,80}|operation would make the legacy stream depend on a capturing/,
);
const capturing = pattern(
  ['Capturing CUDA graphs', 'Capturing batches', 'Capture', 'capture_model', 'graph_capture'],
  /^Capturing (?:CUDA graphs|batches|num tokens)|^Capture (?:\w{1,80} )*(?:cuda|CUDA) graph begin|in (?:capture_model|graph_capture|capture_one_batch_size)\b/,
);
const clocks = pattern(['MHz'], /\b(?<mhz>\d{3,4}) ?MHz/);
const captureWords = /captur/i;

/** NCCL stages data through the host from a thread of its own while a graph is being captured, and breaks it. */
export const graphCaptureBroken: Signature = {
  name: 'graph-capture-broken',
  causes: ['cuda-graph-capture-with-host-staged-nccl'],
  seenOn: 'vLLM 0.27.1 on two GB10, June 2026',
  source: 'vllm-project/vllm#46253; CUDA programming guide, capture modes; NCCL enqueue.cc',
  looks: [
    'Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 0% …, then on all nodes: CUDA error: an illegal memory access was encountered',
  ],
  patterns: [broken, capturing, clocks, NCCL_NETWORK],
  match(view) {
    const { evidence, find } = view;
    if (!severalNodes(evidence)) return undefined;
    const first = find(broken).find(
      (found) => captureWords.test(found.message) || duringCapture(view, found),
    );
    if (first === undefined || find(clocks).some((found) => Number(found.groups['mhz']) < 1000))
      return undefined;
    const others = find(broken).filter((found) => found.node !== first.node);
    const everywhere = others.length > 0 || nodesOf(evidence).length < 2;
    const begun = find(capturing).findLast(
      (found) => found.node === first.node && found.line.line <= first.line.line,
    );
    return {
      cause: 'cuda-graph-capture-with-host-staged-nccl',
      node: undefined,
      atFault: 'both',
      shown: [first, ...others.slice(0, 2), ...(begun === undefined ? [] : [begun])],
      title: `CUDA graphs break on ${nodesOf(evidence).join(' and ')} while they are captured across nodes`,
      why: 'Without GPUDirect, as on GB10, NCCL copies through the host from a thread of its own; such a call while a graph is being captured breaks the graph.',
      advice: [
        'Start without CUDA graphs: --enforce-eager (vLLM) or --disable-cuda-graph (SGLang) in args of the engine. It is slower by a third to a half.',
        'A build that captures with capture_error_mode=thread_local keeps the graphs.',
      ],
      confidence: everywhere ? 0.85 : 0.68,
      specificity: captureWords.test(first.message) ? 3 : 2,
    };
  },
};

function duringCapture(view: View, found: Found): boolean {
  if (found.stage === 'graphs') return true;
  return view
    .find(capturing)
    .some(
      (one) =>
        one.rank === found.rank && one.line.line <= found.line.line && found.line.line - one.line.line < 400,
    );
}
