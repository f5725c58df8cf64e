import { dirname, join } from 'node:path';
import { meansNode, type Policy, policySchema } from '../domain/policy.ts';
import { explain } from './explain.ts';
import { exists, readText } from './read-text.ts';
import { suggest } from './suggest.ts';
import { type Problem, parseYaml, refusal, type YamlFile } from './yaml-file.ts';

const CODE = 'bad-policy-file';
const HINT = 'Mend the file, or take it away; docs/files.md shows every key.';

export const POLICY_FILE = 'policy.yaml';

/** Where the owner's policy lies: beside the cluster file. */
export function policyPath(clusterFile: string): string {
  return join(dirname(clusterFile), POLICY_FILE);
}

export type PolicyFile = {
  readonly policy: Policy;
  /** Line of each rule, from 1. */
  readonly lines: readonly number[];
};

/**
 * The owner's policy for these nodes, or undefined where there is none. It allows what would else be asked for, so it
 * must belong to this user or to root, and nobody else may be able to write it. Throws a UserError `bad-policy-file`: a
 * policy that cannot be read allows nothing and is not passed over, nor is a rule for a node that is none.
 */
export function readPolicy(clusterFile: string, nodes: readonly string[]): PolicyFile | undefined {
  const path = policyPath(clusterFile);
  if (!exists(path)) return undefined;
  const text = readText(path, {
    code: CODE,
    what: 'policy',
    absent: 'It was there a moment ago; ask again.',
    forbiddenMode: 0o022,
    wantedMode: '0644',
    ownOnly: true,
  });
  const yaml = parseYaml(text, path, CODE);
  const result = policySchema.safeParse(yaml.value);
  if (!result.success) throw refusal(CODE, path, explain('policy', yaml, result.error.issues), HINT);
  const strange = strangeNodes(result.data, yaml, nodes);
  if (strange.length > 0)
    throw refusal(
      CODE,
      path,
      strange,
      `Name a node of ${clusterFile} as it is called there (${nodes.join(', ')}), or take the rule away.`,
    );
  return {
    policy: result.data,
    lines: result.data.allow.map((_, at) => yaml.problem(['allow', at], '').line),
  };
}

function strangeNodes({ allow }: Policy, yaml: YamlFile, nodes: readonly string[]): readonly Problem[] {
  return allow.flatMap((rule, at) => {
    if (nodes.some((node) => meansNode(rule, node))) return [];
    const near = suggest(rule.node, nodes);
    const meant = near === undefined ? '' : `; did you mean "${near}"?`;
    const words = `no node of the cluster is called "${rule.node}"${meant}`;
    return [yaml.problem(['allow', at, 'node'], words)];
  });
}
