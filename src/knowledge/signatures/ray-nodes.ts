import { valueIf } from '../../domain/facts.ts';
import { list } from '../../domain/units.ts';
import { factsOf, nodesOf, severalNodes } from './scene.ts';
import { pattern, type Signature, type View } from './signature.ts';

const joined = pattern(
  'Ray has ',
  /^Ray has (?:only )?(?<there>\d+) of (?<wanted>\d+) nodes: (?<addresses>[\d.a-fA-F:, ]+)$/,
);
const unplaced = pattern(
  ['Waiting for creating a placement group', 'No available node types can fulfill resource request'],
  /^Waiting for creating a placement group of specs for \d+ seconds|No available node types can fulfill resource request/,
);
const headSilent = pattern('No answer from Ray at ', /^No answer from Ray at (?<address>\S+)\.$/);
const differs = pattern(
  ['Version mismatch: The cluster was started with:'],
  /^(?:\w+: )?Version mismatch: The cluster was started with:/,
);

/** A node's Ray did not join the head's in time, so the driver was never started. */
export const rayNodeMissing: Signature = {
  name: 'ray-node-missing',
  causes: ['unknown'],
  seenOn: 'Ray 2.60, November 2026',
  source: "firstlight's own ray-script.ts",
  patterns: [joined, headSilent],
  match(view) {
    const { evidence, find } = view;
    const last = find(joined).at(-1);
    if (!severalNodes(evidence) || last === undefined || !waited(view, last.line.text)) return undefined;
    const { there = '', wanted = '', addresses = '' } = last.groups;
    if (Number(there) >= Number(wanted)) return undefined;
    const here = addresses.split(/,\s*/);
    const missing = evidence.services.filter(
      ({ address }) => address !== undefined && !here.includes(address),
    );
    const node = missing.length === 1 ? missing[0]?.node : undefined;
    const who = missing.length === 0 ? 'a node' : list(missing.map((service) => service.node));
    return {
      cause: 'unknown',
      node,
      shown: [last, ...find(headSilent).slice(0, 1)],
      title: `Ray on ${who} did not join the head`,
      why: `The head's Ray came up and saw ${there} of ${wanted} nodes, so vLLM was not started.`,
      advice: [
        ...missing.map((service) => `firstlight logs --node ${service.node} shows what its Ray said`),
        `From there the head must be reached at port ${evidence.recipe.rendezvousPort}, and Ray's random ports both ways: sudo ufw status`,
      ],
      confidence: 0.7,
      specificity: 1,
    };
  },
};

/** Ray has all nodes and too few GPUs to give. */
export const rayGpuMissing: Signature = {
  name: 'ray-gpu-missing',
  causes: ['ray-gpu-not-registered'],
  seenOn: 'vLLM 0.28 over Ray, August 2026',
  source: 'vLLM v1/executor/ray_utils.py, docs/serving/distributed_troubleshooting.md',
  patterns: [unplaced],
  match(view) {
    const { evidence, find } = view;
    const found = find(unplaced).at(-1);
    if (found === undefined || view.stalled === undefined) return undefined;
    const blind = nodesOf(evidence).filter((node) => valueIf(factsOf(evidence, node)?.gpus)?.length === 0);
    return {
      cause: 'ray-gpu-not-registered',
      node: blind.length === 1 ? blind[0] : undefined,
      shown: [found],
      title: 'Ray has no node with a free GPU for every rank',
      why: 'vLLM asked Ray for its GPUs and waits for them in vain.',
      advice: ['On the head, while it waits: ray status shows the GPUs that Ray knows and who has them.'],
      confidence: 0.75,
      specificity: 2,
    };
  },
};

/** Ray refuses a node of another version. */
export const rayVersions: Signature = {
  name: 'ray-versions',
  causes: ['ray-version-mismatch'],
  seenOn: 'Ray 2.60, November 2026',
  source: "Ray's _private/utils.py, check_version_info",
  patterns: [differs],
  match({ find }) {
    const found = find(differs)[0];
    if (found === undefined) return undefined;
    return {
      cause: 'ray-version-mismatch',
      node: found.node,
      shown: [found],
      title: `${found.node} runs another version of Ray or Python than the head`,
      why: 'Ray joins only nodes of one version, in Ray and in Python.',
      advice: ['Use the same image, or the same versions in the environment, on every node.'],
      confidence: 0.92,
      specificity: 3,
    };
  },
};

/** Whether the head gave up waiting, or stands still. */
function waited(view: View, text: string): boolean {
  return text.startsWith('Ray has only ') || view.stalled !== undefined;
}
