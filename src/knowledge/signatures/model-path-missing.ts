import type { Evidence } from '../../domain/evidence.ts';
import { valueIf } from '../../domain/facts.ts';
import { quotePlainly } from '../../domain/quote.ts';
import { fabricAddresses, factsOf, nodesOf } from './scene.ts';
import { pattern, type Signature } from './signature.ts';

const repoId = pattern(
  [
    'HFValidationError',
    '(invalid repository id)',
    'Invalid repository ID or local directory',
    'path_or_model_id',
  ],
  /(?:HFValidationError: Repo id must .*?: '(?<a>\/[^']+)'|FileNotFoundError: (?<b>\/\S+) \(invalid repository id\)|(?:Invalid repository ID or local directory specified|Incorrect path_or_model_id): '(?<c>\/[^']+)')/,
);
const config = pattern(
  ["Can't load the configuration of '", 'does not appear to have a file named', 'is not a local folder'],
  /(?:Can't load the configuration of '(?<a>\/[^']+)'|(?<b>\/\S+) does not appear to have a file named|(?<c>\/\S+) is not a local folder)/,
);
const noFile = pattern(
  ['No such file or directory: ', 'bind source path does not exist', 'NotADirectoryError'],
  /(?:No such file or directory: '(?<a>\/[^']+)'|bind source path does not exist: (?<b>\/\S+))/,
);

/** A rank does not find the model's folder and takes its path for a name of the hub. */
export const modelPathMissing: Signature = {
  name: 'model-path-missing',
  causes: ['model-path-missing-on-worker'],
  seenOn: 'vLLM 0.5 to 0.11, transformers 4 and 5',
  source: 'huggingface_hub validators; transformers configuration_utils.py; vLLM weight_utils.py',
  patterns: [repoId, config, noFile],
  match({ evidence, find }) {
    const path = evidence.recipe.path.replace(/\/+$/, '');
    const shown = [
      ...find(repoId),
      ...find(config),
      ...find(noFile).filter((found) => within(path, found.groups)),
    ];
    const first = shown.toSorted((a, b) => a.line.at - b.line.at)[0];
    if (first === undefined) return undefined;
    const { a, b, c } = first.groups;
    const missing = a ?? b ?? c ?? path;
    const lies = valueIf(factsOf(evidence, first.node)?.model);
    const unmounted = lies?.present === true;
    return {
      cause: 'model-path-missing-on-worker',
      node: first.node,
      shown: shown.filter((found) => found.rank === first.rank).slice(0, 3),
      title: unmounted
        ? `The container on ${first.node} does not see the model at ${missing}`
        : `${first.node} does not have the model at ${missing}`,
      why: unmounted
        ? `The folder lies on ${first.node} itself, but it is not mounted into the container at that path.`
        : 'Where the folder is missing the engine takes its path for a name on the hub, and says so.',
      advice: unmounted
        ? [`Mount it at the same path: run.volumes: ["${path}:${path}:ro"]`]
        : copy(evidence, first.node, path),
      values: { path: missing },
      confidence: lies?.present === false ? 0.97 : 0.9,
      specificity: 3,
    };
  },
};

function within(path: string, groups: Readonly<Record<string, string | undefined>>): boolean {
  const file = groups['a'] ?? groups['b'] ?? '';
  return file === path || file.startsWith(`${path}/`);
}

/** The exact command that brings the folder over the fabric, from a node that has it. */
function copy(evidence: Evidence, node: string, path: string): readonly string[] {
  const others = nodesOf(evidence).filter((other) => other !== node);
  const from =
    others.find((other) => valueIf(factsOf(evidence, other)?.model)?.present === true) ?? others[0];
  if (from === undefined) return [`Put the model at ${path} on ${node}.`];
  const user = valueIf(factsOf(evidence, node)?.host)?.user;
  const target = `${user === undefined ? '' : `${user}@`}${fabricAddresses(evidence, node)[0] ?? node}`;
  return [
    `On ${node}: mkdir -p ${quotePlainly(path)}`,
    `On ${from}: rsync -a --partial --info=progress2 ${quotePlainly(`${path}/`)} ${target}:${quotePlainly(`${path}/`)}`,
  ];
}
