import type { Evidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { quotePlainly } from '../../../domain/quote.ts';
import { inOrder, movedOn, sameLog, whoSaid } from '../line-signature.ts';
import { fabricAddresses, factsOf, nodesOf } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const repoId = pattern(
  [
    'HFValidationError',
    'Repo id must',
    '(invalid repository id)',
    'Invalid repository ID or local directory',
    'path_or_model_id',
  ],
  /(?:Repo id must .{0,600}?: ?'(?<a>[./~][^']{1,400})'|FileNotFoundError: (?<b>\/\S{1,300}) \(invalid repository id\)|(?:Invalid repository ID or local directory specified|Incorrect path_or_model_id): '(?<c>[./~][^']{1,400})')/,
);
const config = pattern(
  [
    "Can't load the configuration of '",
    "Can't load tokenizer for '",
    'does not appear to have a file named',
    'is not a local folder',
    'model weights with',
    'config.json',
    'Error no file named',
  ],
  /(?:Can't load (?:the configuration of|tokenizer for|the model for) '(?<a>[./~][^']{1,400})'|(?<b>\/\S{1,300}) does not appear to have a file named|(?:^|[\s'":])(?<c>[~.]{0,2}\/\S{1,300}) is not a local folder|Cannot find any (?:safetensors )?model weights with [`'](?<d>\/[^`']{1,400})|Error no file named .{0,600} found in directory (?<f>\/[^\s.]\S{0,300}?)\.?$|(?:[Nn]o|[Cc]ould not find|[Cc]annot find|[Mm]issing) (?:a )?config\.json (?:in|at|under) ['"]?(?<e>\/[^'"\s]{1,400}))/,
);
const noFile = pattern(
  [
    'No such file or directory',
    'bind source path does not exist',
    'NotADirectoryError',
    'does not exist',
    'link_stat',
  ],
  /(?:No such file or directory: ['"](?<a>\/[^'"]{1,400})['"]|bind source path does not exist: (?<b>\/\S{1,300})|link_stat "(?<d>\/[^"]{1,400})" failed: No such file|cannot access '(?<e>\/[^']{1,400})': No such file|(?:[Mm]odel|[Pp]ath|[Ff]older|[Dd]irectory)\b[^/']{0,60}['"`]?(?<c>\/[^\s'"`]{1,400})['"`]? (?:does not exist|not found))/,
);
/** Files that only a model's folder has. */
const MODEL_FILE =
  /\/(?:config\.json|generation_config\.json|tokenizer[\w.]{0,400}|[\w.-]{1,400}\.safetensors(?:\.index\.json)?|pytorch_model[\w.-]{0,400}|preprocessor_config\.json|[\w.-]{1,400}\.gguf)$/;
/** Caches and system folders: not the model, whatever is missing there. */
const ELSEWHERE =
  /\/(?:triton|torchinductor|flashinfer|tilelang|torch_compile_cache|deep_gemm|dev|proc|sys|run|tmp|usr|etc|bin|lib)\/|transformers_modules|\/blobs\/|\.lock$|\.no_exist/;

/** A rank does not find the model's folder and takes its path for a name of the hub. */
export const modelPathMissing: Signature = {
  name: 'model-path-missing',
  causes: ['model-path-missing-on-worker'],
  seenOn: 'vLLM 0.5 to 0.32, SGLang 0.4 to 0.5, transformers 4 and 5, docker 29',
  source: 'huggingface_hub validators; transformers configuration_utils.py; vLLM weight_utils.py; moby',
  patterns: [repoId, config, noFile],
  looks: [
    "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/model-x'.",
  ],
  match(view) {
    const { evidence } = view;
    const all = inOrder([repoId, config, noFile], view).filter(
      (found) => counts(found, view) && !movedOn(found, view),
    );
    const first = all[0];
    if (first === undefined) return undefined;
    const path = evidence.recipe.path.replace(/\/+$/, '');
    const { a, b, c, d, e, f } = first.groups;
    const missing = a ?? b ?? c ?? d ?? e ?? f ?? path;
    const place = whoSaid(first, all, view);
    const where = place.node ?? nodesOf(evidence).join(' and ');
    const lies = valueIf(factsOf(evidence, first.node)?.model);
    const unmounted = lies?.present === true;
    const folder = missing.replace(MODEL_FILE, '');
    return {
      cause: 'model-path-missing-on-worker',
      ...place,
      shown:
        place.atFault === 'both'
          ? nodesOf(evidence).flatMap((node) => all.find((found) => found.node === node) ?? [])
          : all.filter((found) => sameLog(found, first)).slice(0, 3),
      title: unmounted
        ? `The container on ${where} does not see the model at ${missing}`
        : `${where} does not have the model at ${missing}`,
      why: unmounted
        ? `The folder lies on ${where} itself, but it is not mounted into the container at that path.`
        : 'Where the folder is missing the engine takes its path for a name on the hub, and says so.',
      advice: unmounted
        ? [`Mount it at the same path: run.volumes: ["${path}:${path}:ro"]`]
        : copy(evidence, first.node, path === '/unknown' ? folder : path),
      values: { path: missing },
      confidence: confidenceOf(first, lies?.present === false),
      specificity: 3,
    };
  },
};

function counts(found: Found, { evidence, command }: View): boolean {
  const { groups, message } = found;
  if (
    /\((?:invalid repository id)\)|Repo id|Invalid repository ID|path_or_model_id|Can't load|does not appear|is not a local|any (?:safetensors )?model weights|config\.json (?:in|at|under)|Error no file named/.test(
      message,
    )
  )
    return true;
  const file = groups['a'] ?? groups['b'] ?? groups['c'] ?? groups['d'] ?? groups['e'] ?? '';
  const path = evidence.recipe.path.replace(/\/+$/, '');
  if (within(path, file)) return true;
  if (ELSEWHERE.test(file)) return false;
  const told = /(?:--model(?:-path)?[= ]|model(?:_path)?=|serve )['"]?(\/[^\s'",)]+)/.exec(
    command(found.node),
  )?.[1];
  return (
    (told !== undefined && within(told, file)) ||
    MODEL_FILE.test(file) ||
    /bind source path|link_stat/.test(message) ||
    (/cannot access|does not exist|not found/.test(message) &&
      /models?\b|weights|checkpoint|\/hub\b|snapshots|safetensors/i.test(file))
  );
}

function within(folder: string, file: string): boolean {
  return file === folder || file.startsWith(`${folder.replace(/\/+$/, '')}/`);
}

function confidenceOf({ message }: Found, seenMissing: boolean): number {
  if (seenMissing) return 0.97;
  return /bind source path|link_stat|does not exist|No such file/.test(message) ? 0.78 : 0.9;
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
