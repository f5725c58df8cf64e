import { dirname, join } from 'node:path';
import { type Policy, policySchema } from '../domain/policy.ts';
import { explain } from './explain.ts';
import { exists, readText } from './read-text.ts';
import { parseYaml, refusal } from './yaml-file.ts';

const CODE = 'bad-policy-file';
const HINT = 'Mend the file, or take it away; docs/files.md shows every key.';

/** Where the owner's policy lies: beside the cluster file. */
export function policyPath(clusterFile: string): string {
  return join(dirname(clusterFile), 'policy.yaml');
}

/**
 * The owner's policy, or undefined where there is none. It allows what would else be asked for, so it must belong to
 * this user or to root, and nobody else may be able to write it. Throws a UserError `bad-policy-file`: a policy that
 * cannot be read allows nothing, and is not passed over.
 */
export function readPolicy(clusterFile: string): Policy | undefined {
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
  return result.data;
}
