import { valueIf } from '../../../domain/facts.ts';
import { list } from '../../../domain/units.ts';
import { factsOf, nodesOf, severalNodes } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';
import { ADDRESS_FORMS, addressBook, nodeAt, otherThanHead } from './addresses.ts';

const joined = pattern(
  'Ray has ',
  /^Ray has (?:only )?(?<there>\d{1,20}) of (?<wanted>\d{1,20}) nodes: (?<addresses>[\d.a-fA-F:, ]{1,200})$/,
);
const unplaced = pattern(
  [
    'Waiting for creating a placement group',
    'No available node types can fulfill resource request',
    'Cannot provide a placement group',
  ],
  /^Waiting for creating a placement group of specs for (?<seconds>\d{1,20}) seconds|No available node types can fulfill resource request|Cannot provide a placement group/,
);
const headSilent = pattern('No answer from Ray at ', /^No answer from Ray at (?<address>\S{1,300})\.$/);
/** vLLM's "Tensor parallel size (2) exceeds available GPUs (1)" counts its own host alone and stands in good starts too. */
const fewGpus = pattern(
  ['exceeds the total number of available', 'not have enough GPUs', 'not enough GPUs'],
  /number of required GPUs exceeds the total number of available GPUs|(?:does|do) not have enough GPUs|not enough GPUs (?:available )?in the (?:Ray )?cluster/,
);
const accelerators = pattern(
  ['has no GPU available', ' TPU', "'TPU", ':TPU', 'does not allocate any GPUs on the driver'],
  /(?<nothing>Current node has no (?:GPU|accelerator)\w{0,80} available)(?:.{0,400}current_ip=['"]?(?<ip>[\d.]{1,200}))?|(?<nothing2>does not allocate any GPUs on the driver node)|^\s{0,60}[\d.]{1,200}\/(?<other>[1-9][\d.]{0,200}) (?:TPU|neuron_cores|HPU|NPU)\b|['"]TPU[\w-]{0,200}['"]: (?<other2>[1-9][\d.]{0,200})|(?<other3>accelerator_type:TPU|(?:resource|accelerator|chip|vfio|ray)\w{0,80}\b.{0,400}\bTPU\b(?!.{0,400}platform))/,
);
const joinedRay = pattern(
  [
    'Local node IP: ',
    'Ray runtime started',
    'RayWorker',
    'ray_utils',
    'Connected to Ray cluster',
    'placement group',
  ],
  /Local node IP: |Ray runtime started|RayWorker|ray_utils|Connected to Ray cluster|placement group/,
);
const differs = pattern(
  ['Version mismatch: The cluster was started with', 'ray version', 'Ray version', 'version mismatch'],
  /^(?:\w{1,80}(?:\.\w{1,80})*: )?Version mismatch: The cluster was started with|Ray versions? (?:mismatch|differ|do not match)|(?:[Cc]lient|[Cc]luster|server).{0,400}[Rr]ay version \S{1,300} (?:does not match|differs|!=|vs)|[Vv]ersion mismatch.{0,400}\bray\b/,
);
const startedWith = pattern(
  'was started with',
  /[Tt]his process on node (?<ip>[\d.a-fA-F:]{1,200})\b.{0,400}was started with/,
);
const versionLine = pattern(
  ['Ray: ', 'Python: '],
  /^\s{0,60}(?:Ray|Python): (?<version>\d[\w.]{0,200})\s{0,60}$/,
);
/** So long vLLM's driver asks without an answer before it is no longer a matter of waiting. */
const LONG_WAIT_SECONDS = 150;

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
  seenOn: 'vLLM 0.8 to 0.28 over Ray 2.40 to 2.60, 2025 and 2026',
  source:
    'vLLM v1/executor/ray_utils.py, docs/serving/distributed_troubleshooting.md; Ray accelerators/tpu.py',
  looks: [
    'Waiting for creating a placement group of specs for 640 seconds. specs=[…]. Check `ray status` and `ray list nodes`',
    "Error: No available node types can fulfill resource request {'GPU': 1.0}.",
  ],
  patterns: [unplaced, fewGpus, accelerators, joinedRay, ...ADDRESS_FORMS],
  match(view) {
    const { evidence, find } = view;
    const hard = find(unplaced).findLast((found) => found.groups['seconds'] === undefined);
    const long = find(unplaced).findLast((found) => Number(found.groups['seconds']) >= LONG_WAIT_SECONDS);
    const few = severalNodes(evidence) && find(joinedRay).length > 0 ? find(fewGpus)[0] : undefined;
    const wrong = find(accelerators).find(
      (found) => (found.groups['other'] ?? found.groups['other2'] ?? found.groups['other3']) !== undefined,
    );
    const none = find(accelerators).find(
      (found) => (found.groups['nothing'] ?? found.groups['nothing2']) !== undefined,
    );
    // What stands in a finished log may have ended well a moment later.
    const still = view.stalled !== undefined && evidence.finished !== true;
    const own = find(accelerators).find(
      (found) => (found.groups['other2'] ?? found.groups['other3']) !== undefined,
    );
    const waits = still ? find(unplaced).at(-1) : undefined;
    const found = hard ?? none ?? few ?? long ?? wrong ?? waits;
    if (found === undefined || view.serves) return undefined;
    // Totals of ray status are the cluster's; only a node's own resources say whose they are.
    const node = gpuless(view, found, none ?? (wrong?.groups['other'] === undefined ? wrong : own));
    return {
      cause: 'ray-gpu-not-registered',
      node,
      shown: [found, ...[none, wrong, hard, long].filter((one) => one !== undefined && one !== found)]
        .filter((one) => one !== undefined)
        .slice(0, 3),
      title:
        wrong === undefined
          ? 'Ray has no node with a free GPU for every rank'
          : `Ray took the accelerator of ${node ?? 'a node'} for another kind, and counts no GPU there`,
      why:
        wrong === undefined
          ? 'vLLM asked Ray for its GPUs and waits for them in vain: a node joined without its GPU.'
          : 'It found a device by its name, such as a group of vfio, and offers that in place of the GPU.',
      advice: [
        'On the head, while it waits: ray status shows the GPUs that Ray knows and who has them.',
        'Give ray start its --num-gpus on the node that lacks one, and see nvidia-smi -L inside its container.',
      ],
      confidence:
        hard !== undefined || none !== undefined || wrong !== undefined
          ? 0.9
          : few !== undefined
            ? 0.93
            : 0.78,
      specificity: hard !== undefined || few !== undefined || wrong !== undefined ? 3 : 2,
    };
  },
};

/** The node without a GPU: by a look, by its own word, else the one that is not the head. */
function gpuless(view: View, found: Found, said: Found | undefined): string | undefined {
  const { evidence } = view;
  const blind = nodesOf(evidence).filter((node) => valueIf(factsOf(evidence, node)?.gpus)?.length === 0);
  if (blind.length === 1) return blind[0];
  if (said !== undefined) return nodeAt(addressBook(view), evidence, said, said.groups['ip']);
  return otherThanHead(evidence) ?? found.node;
}

/** Ray refuses a node of another version. */
export const rayVersions: Signature = {
  name: 'ray-versions',
  causes: ['ray-version-mismatch'],
  seenOn: 'Ray 2.9 to 2.60, 2024 to 2026',
  source: "Ray's _private/utils.py, check_version_info; client/worker.py",
  looks: [
    'RuntimeError: Version mismatch: The cluster was started with: Ray: 2.55.0 Python: 3.12.11 This process on node 10.7.0.2 was started with: Ray: 2.55.0 Python: 3.11.9',
  ],
  patterns: [differs, startedWith, versionLine, ...ADDRESS_FORMS],
  match(view) {
    const { evidence, find } = view;
    const found = find(differs)[0];
    if (found === undefined) return undefined;
    const by = find(startedWith)[0] ?? found;
    const node = nodeAt(addressBook(view), evidence, by, by.groups['ip']);
    const lines = find(versionLine).filter((one) => one.node === found.node);
    return {
      cause: 'ray-version-mismatch',
      node,
      shown: [found, ...lines.slice(0, 4)],
      title: `${node} runs another version of Ray or Python than the head`,
      why: 'Ray joins only nodes of one version, in Ray and in Python.',
      advice: [
        'Use the same image, or the same versions in the environment, on every node.',
        `On each node, where the rank runs: ray --version; python3 --version`,
      ],
      confidence: 0.94,
      specificity: 3,
    };
  },
};

/** Whether the head gave up waiting, or stands still. */
function waited(view: View, text: string): boolean {
  return text.startsWith('Ray has only ') || view.stalled !== undefined;
}
