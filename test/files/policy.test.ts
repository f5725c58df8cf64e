import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { StepTarget } from '../../src/domain/plan.ts';
import { policySchema, ruleFor } from '../../src/domain/policy.ts';
import { readPolicy } from '../../src/files/policy-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'fl-policy-'));
const NODES = ['spark-a', 'spark-b'];
const cluster = join(folder, 'cluster.yaml');
const path = join(folder, 'policy.yaml');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(text: string, mode = 0o644): void {
  writeFileSync(path, text);
  chmodSync(path, mode);
}

const comfyui: StepTarget = {
  identity: 'c0ffee',
  name: 'comfyui-1',
  what: 'container of user lab',
  kind: 'container',
  user: 'lab',
  image: 'yanwk/comfyui-boot:cu128',
  pid: 4711,
  bytes: 2 ** 30,
  listens: [],
};

function allows(
  rule: Readonly<Record<string, string>>,
  target: StepTarget = comfyui,
  node = 'spark-b',
): boolean {
  return ruleFor(policySchema.parse({ allow: [rule] }), { node, target }) !== undefined;
}

describe('the policy file', () => {
  it('is not there: nothing is allowed without being asked', () => {
    expect(readPolicy(cluster, NODES)).toBeUndefined();
  });

  it.each<[string, string, string]>([
    [
      'a wildcard alone',
      'allow: [{node: spark-b, kind: container, name: "*", user: lab}]\n',
      'must say more than a wildcard',
    ],
    [
      'a wildcard for any user',
      'allow: [{node: spark-b, kind: container, name: comfyui, user: "*"}]\n',
      'must say more than a wildcard',
    ],
    [
      'a wildcard for any node',
      'allow: [{node: "*", kind: container, name: comfyui, user: lab}]\n',
      'must say more than a wildcard',
    ],
    [
      'a wildcard with a letter',
      'allow: [{node: spark-b, kind: container, name: "*a*", user: lab}]\n',
      'must say more than a wildcard',
    ],
    [
      'neither name nor image',
      'allow: [{node: spark-b, kind: container, user: lab}]\n',
      'needs name or image',
    ],
    [
      'an image that no process has',
      'allow: [{node: spark-b, kind: process, image: comfyui, user: lab}]\n',
      'only containers have an image',
    ],
    ['no user', 'allow: [{node: spark-b, kind: container, name: comfyui}]\n', 'user is missing'],
    ['no node', 'allow: [{kind: container, name: comfyui, user: lab}]\n', 'node is missing'],
    [
      'a key that is none',
      'allow: [{node: spark-b, kind: container, name: comfyui, user: lab, always: true}]\n',
      'unknown key "always"',
    ],
    ['another list', 'deny: []\n', 'unknown key "deny"'],
    ['no list at all', 'yes\n', 'must be'],
  ])('with %s is refused with its place, and not passed over', (_, text, why) => {
    write(text);
    expect(() => readPolicy(cluster, NODES)).toThrow(why);
    expect(() => readPolicy(cluster, NODES)).toThrow(path);
  });

  it.each([0o666, 0o664, 0o646, 0o777])('of mode %o is refused, since others could write it', (mode) => {
    write('allow: []\n', mode);
    expect(() => readPolicy(cluster, NODES)).toThrow('it must be 0644');
  });

  it('is read where it is in order', () => {
    write('allow:\n  - {node: spark-b, kind: unit, name: ollama.service, user: ollama}\n');
    expect(readPolicy(cluster, NODES)).toEqual({
      policy: { allow: [{ node: 'spark-b', kind: 'unit', name: 'ollama.service', user: 'ollama' }] },
      lines: [2],
    });
  });

  it('tells the line on which each rule begins', () => {
    write(`# what may go
allow:
  - {node: spark-b, kind: unit, name: ollama.service, user: ollama}

  - node: "spark-*"
    kind: process
    name: llama-server
    user: root
`);
    expect(readPolicy(cluster, NODES)?.lines).toEqual([3, 5]);
  });

  it.each<[string, string, string]>([
    ['a slip', 'spark-c', `no node of the cluster is called "spark-c"; did you mean "spark-a"?`],
    ['another cluster’s node', 'dgx-17', 'no node of the cluster is called "dgx-17"'],
    ['a pattern that fits none', 'dgx-*', 'no node of the cluster is called "dgx-*"'],
  ])('with a node that is none, by %s, is refused with its line and what to write', (_, node, why) => {
    write(`allow:
  - {node: spark-b, kind: unit, name: ollama.service, user: ollama}
  - {node: "${node}", kind: unit, name: ollama.service, user: ollama}
`);
    const read = () => readPolicy(cluster, NODES);
    expect(read).toThrow(`${path}:3:12: ${why}`);
    expect(read).toThrow(
      expect.objectContaining({
        code: 'bad-policy-file',
        hint: `Name a node of ${cluster} as it is called there (spark-a, spark-b), or take the rule away.`,
      }),
    );
  });
});

describe('a rule', () => {
  const rule = { node: 'spark-b', kind: 'container', name: 'comfyui-1', user: 'lab' };

  it('allows what it names in every point, by name, by image, by both, with letters left open', () => {
    expect(allows(rule)).toBe(true);
    expect(allows({ ...rule, name: 'comfyui-*' })).toBe(true);
    expect(allows({ node: 'spark-*', kind: 'container', image: 'yanwk/comfyui-boot:*', user: 'lab' })).toBe(
      true,
    );
    expect(allows({ ...rule, image: 'yanwk/comfyui-boot:cu128' })).toBe(true);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ['node', { ...rule, node: 'spark-a' }],
    ['kind', { ...rule, kind: 'unit' }],
    ['user', { ...rule, user: 'root' }],
    ['name', { ...rule, name: 'comfyui' }],
    ['a longer name', { ...rule, name: 'comfyui-12' }],
    ['letters of another case', { ...rule, name: 'Comfyui-1' }],
    ['image', { ...rule, image: 'yanwk/comfyui-boot:cu12*9' }],
    ['a dot that means any letter elsewhere', { ...rule, name: 'comfyui.1' }],
  ])('does not allow what differs by %s', (_, other) => {
    expect(allows(other)).toBe(false);
  });

  it('with an image allows nothing whose image is not known', () => {
    const { image: _, ...unknown } = comfyui;
    expect(allows({ node: 'spark-b', kind: 'container', image: 'yanwk/*', user: 'lab' }, unknown)).toBe(
      false,
    );
  });
});
