import { UserError, type UserErrorCode } from '../domain/user-error.ts';
import { type FileKind, get } from './schema.ts';

/** What only a file of that kind has at its top. */
const MARKS: Readonly<Record<FileKind, (value: unknown) => boolean>> = {
  cluster: (value) => has(value, 'cluster') || nodesWithSsh(value),
  recipe: (value) => has(value, 'recipe') || (has(value, 'model') && has(value, 'path')),
  policy: (value) => has(value, 'allow'),
};

const NAMES: Readonly<Record<FileKind, string>> = {
  cluster: 'a cluster file',
  recipe: 'a recipe',
  policy: 'a policy file',
};

/** One sentence for a file that is another of ours than the one asked for, where each of its keys would be a complaint. */
export function otherFile(
  wanted: FileKind,
  value: unknown,
  file: string,
  code: UserErrorCode,
): UserError | undefined {
  if (MARKS[wanted](value)) return undefined;
  const is = (['cluster', 'recipe', 'policy'] as const).find((kind) => MARKS[kind](value));
  if (is === undefined) return undefined;
  const where = is === 'policy' ? '; policy.yaml is read by itself, from beside the cluster file' : '';
  return new UserError(
    code,
    `${file} is ${NAMES[is]}, and ${NAMES[wanted]} is needed here`,
    `The recipe is named by itself, the cluster file behind --cluster: firstlight up RECIPE --cluster FILE${where}`,
  );
}

function has(value: unknown, key: string): boolean {
  return get(value, key) !== undefined;
}

function nodesWithSsh(value: unknown): boolean {
  const nodes = get(value, 'nodes');
  return Array.isArray(nodes) && nodes.some((node: unknown) => has(node, 'ssh'));
}
