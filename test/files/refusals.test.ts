import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UserError } from '../../src/domain/user-error.ts';
import { parseClusterText, readCluster } from '../../src/files/cluster-file.ts';
import { checkPasswordNodes, readPasswordFile } from '../../src/files/password-file.ts';
import { parseRecipeText, readRecipe } from '../../src/files/recipe-file.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'firstlight-files-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The refusal of whatever throws one. */
function refused(action: () => unknown): UserError {
  try {
    action();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

function write(name: string, content: string | Uint8Array, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, content, { mode });
  chmodSync(path, mode);
  return path;
}

const two = `cluster: sparks
nodes:
  - {name: spark-a, ssh: 10.0.0.1}
  - {name: spark-b, ssh: 10.0.0.2, jump: spark-a}
`;

const clusterTexts: readonly (readonly [string, string, string])[] = [
  [
    'an unknown key',
    two.replace('jump:', 'jmup:'),
    'c.yaml:4:36: unknown key "jmup" in nodes[1]; did you mean "jump"?',
  ],
  ['an unknown key at the top', `${two}node: []\n`, 'c.yaml:5:1: unknown key "node"; did you mean "nodes"?'],
  [
    'a key in the wrong place',
    `${two}key: ~/.ssh/id\n`,
    'unknown key "key"; it belongs into defaults or nodes[]',
  ],
  ['a repeated key', `${two}cluster: again\n`, 'c.yaml:5:1: the key "cluster" stands twice'],
  [
    'a repeated name',
    two.replace('name: spark-b', 'name: spark-a'),
    'c.yaml:4:12: the name "spark-a" is taken by nodes[0]',
  ],
  [
    'the same host twice',
    two.replace('10.0.0.2, jump: spark-a', '10.0.0.1'),
    'spark-b is the same host as spark-a: same ssh, port and jump',
  ],
  [
    'the same host in two spellings',
    two.replace('10.0.0.2, jump: spark-a', 'ssh://me@10.0.0.1:22'),
    'spark-b is the same host as spark-a',
  ],
  [
    'the same fabric address twice',
    two.replaceAll('ssh:', 'fabric: 192.168.200.12, ssh:'),
    'spark-b has the fabric address of spark-a',
  ],
  [
    'a jump over itself',
    two.replace('jump: spark-a', 'jump: spark-b'),
    'c.yaml:4:42: the jumps go in a circle: spark-b -> spark-b',
  ],
  [
    'jumps in a circle',
    two.replace('10.0.0.1}', '10.0.0.1, jump: spark-b}'),
    'the jumps go in a circle: spark-a -> spark-b -> spark-a',
  ],
  [
    'a circle in a list of jumps',
    two.replace('10.0.0.1}', '10.0.0.1, jump: "me@x,spark-b"}'),
    'the jumps go in a circle',
  ],
  ['no nodes', 'cluster: sparks\nnodes: []\n', 'c.yaml:2:8: nodes needs at least one node'],
  ['nodes left out', 'cluster: sparks\n', 'c.yaml:1:1: nodes is missing; it must be a list'],
  ['nodes left empty', 'cluster: sparks\nnodes:\n', 'c.yaml:2:1: nodes is empty'],
  [
    'a host that looks like an option',
    two.replace('10.0.0.2', '-oProxyCommand=x'),
    'nodes[1].ssh "-oProxyCommand=x" is not a host name, address or ssh alias; it looks like an option',
  ],
  ['an option behind a user', two.replace('10.0.0.2', 'me@-oProxyCommand=x'), 'ssh may read it as an option'],
  [
    'a jump that looks like an option',
    two.replace('jump: spark-a', 'jump: -oProxyCommand=x'),
    'it looks like an option',
  ],
  [
    'an option in a list of jumps',
    two.replace('jump: spark-a', 'jump: "spark-a,-oX"'),
    'ssh may read it as an option',
  ],
  ['a name that looks like an option', two.replace('name: spark-b', 'name: -b'), 'must be letters, digits'],
  [
    'a port out of range',
    two.replace('10.0.0.2', '10.0.0.2, port: 70000'),
    'nodes[1].port must be at most 65535, and is 70000',
  ],
  [
    'a port in words',
    two.replace('10.0.0.2', '10.0.0.2, port: ssh'),
    'nodes[1].port must be a number, and is "ssh"',
  ],
  [
    'a fabric that is no address',
    two.replace('10.0.0.2', '10.0.0.2, fabric: enp1s0'),
    'nodes[1].fabric "enp1s0" is not an IP address',
  ],
  [
    'a number as name',
    two.replace('cluster: sparks', 'cluster: 12'),
    'cluster must be text, and is 12; put it in quotes: "12"',
  ],
  ['a list', '- a\n- b\n', 'the file must be a group of "key: value", and is a list'],
  ['one word', 'sparks\n', 'the file must be a group of "key: value", and is "sparks"'],
  ['broken YAML', 'cluster: [sparks\nnodes: }\n', 'not valid YAML'],
  ['a tab', 'cluster: sparks\nnodes:\n\t- name: a\n', 'c.yaml:3:1'],
  ['two documents', `${two}---\n${two}`, 'one file holds one'],
  ['an unknown tag', 'cluster: !secret x\nnodes: []\n', 'not valid YAML'],
  ['a prototype key', `${two}__proto__: {a: 1}\n`, 'unknown key "__proto__"'],
  ['a merge key', `x: &x {name: a}\n${two}`, 'unknown key "x"'],
];

test.each(clusterTexts)('a cluster file with %s is refused where it stands', (_, text, words) => {
  const error = refused(() => parseClusterText(text, 'c.yaml'));
  expect(error.code).toBe('bad-cluster-file');
  expect(error.message).toMatch(/^c\.yaml:\d+:\d+: /);
  expect(error.message).toContain(words);
  expect(error.hint).not.toBe('');
});

test('all problems of a file are listed in its order, ten at most', () => {
  const nodes = Array.from({ length: 14 }, (_, at) => `  - {name: n${at}, ssh: 10.0.0.${at}, prot: 22}`);
  const lines = refused(() =>
    parseClusterText(`cluster: x\nnodes:\n${nodes.join('\n')}\n`, 'c.yaml'),
  ).message.split('\n');
  expect(lines).toHaveLength(11);
  expect(lines[0]).toContain('c.yaml:3:');
  expect(lines[9]).toContain('c.yaml:12:');
  expect(lines[10]).toBe('and 4 more');
});

const recipe = `recipe: qwen
model: Qwen/Qwen3
path: /models/qwen
engines: [sglang, vllm]
layout: {nodes: 2, tensor: 2}
run: {in: docker, image: {sglang: a/b:1, vllm: c/d:2}}
`;

const recipeTexts: readonly (readonly [string, string, string])[] = [
  ['an unknown key', `${recipe}contxt: 4096\n`, 'r.yaml:7:1: unknown key "contxt"; did you mean "context"?'],
  ['a key in the wrong place', `${recipe}port: 30000\n`, 'unknown key "port"; it belongs into serve'],
  [
    'a key of another kind of run',
    recipe.replace('in: docker', 'in: docker, venv: /x'),
    'unknown key "venv" in run: it goes with another kind of run',
  ],
  [
    'an unknown engine',
    recipe.replace('vllm]', 'vlm]'),
    'r.yaml:4:19: engines[1] must be sglang, vllm or vllm-ray, and is "vlm"; did you mean "vllm"?',
  ],
  [
    'an image for an unknown engine',
    recipe.replace('vllm: c', 'vlm: c'),
    'unknown key "vlm" in run.image; did you mean "vllm"?',
  ],
  [
    'no image for an engine',
    recipe.replace(', vllm: c/d:2', ''),
    'r.yaml:6:19: run.image has no image for vllm',
  ],
  ['an engine twice', recipe.replace('vllm]', 'sglang]'), 'engines names an engine twice'],
  [
    'an unknown way to run',
    recipe.replace('in: docker', 'in: lxc'),
    'run.in must be docker, podman or process, and is "lxc"',
  ],
  [
    'no way to run',
    recipe.replace('in: docker, ', ''),
    'run.in is missing; it must be docker, podman or process',
  ],
  [
    'a size in wrong units',
    `${recipe}memory: {reserve: 6gb}\n`,
    'memory.reserve "6gb" is not a size such as 6GiB',
  ],
  [
    'a size without its unit',
    `${recipe}memory: {reserve: 6}\n`,
    'r.yaml:7:19: memory.reserve "6" is less than 1 MiB; write it with its unit, such as 6GiB',
  ],
  [
    'a guard without its unit',
    `${recipe}memory: {guard: 3}\n`,
    'memory.guard "3" is less than 1 MiB; write it with its unit, such as 6GiB',
  ],
  [
    'a fraction above one',
    `${recipe}memory: {fraction: 80}\n`,
    'memory.fraction must be less than 1, and is 80',
  ],
  [
    'a fraction in words',
    `${recipe}memory: {fraction: lots}\n`,
    'memory.fraction must be auto or a number, and is "lots"',
  ],
  ['a bad variable name', `${recipe}env: {1A: x}\n`, 'r.yaml:7:7: "1A" is not an environment variable name'],
  ['a relative path', recipe.replace('/models', 'models'), 'path "models/qwen" must be an absolute path'],
  [
    'a model that looks like an option',
    recipe.replace('Qwen/Qwen3', '--help'),
    'model "--help" looks like an option',
  ],
  [
    'arguments in one string',
    `${recipe}args: {sglang: "--a --b"}\n`,
    'args.sglang must be a list, and is "--a --b"',
  ],
  [
    'ranks that nodes cannot share',
    recipe.replace(', tensor: 2', ''),
    'r.yaml:5:9: layout: tensor 1 x pipeline 1 x data 1 makes 1 GPU ranks, which 2 nodes cannot share evenly',
  ],
  ['a node twice', `${recipe}nodes: [a, a]\n`, 'r.yaml:7:12: the node "a" stands twice'],
  ['more nodes named than laid out', `${recipe}nodes: [a, b, c]\n`, 'nodes names 3, and layout.nodes is 2'],
  ['everything missing', 'recipe: x\n', 'model is missing; it must be text'],
];

test.each(recipeTexts)('a recipe with %s is refused where it stands', (_, text, words) => {
  const error = refused(() => parseRecipeText(text, 'r.yaml'));
  expect(error.code).toBe('bad-recipe-file');
  expect(error.message).toMatch(/^r\.yaml:\d+:\d+: /);
  expect(error.message).toContain(words);
});

test('a size below nothing is told as no size, and not as an option', () => {
  const error = refused(() => parseRecipeText(`${recipe}memory: {reserve: -1GiB}\n`, 'r.yaml'));
  expect(error.message).toBe('r.yaml:7:19: memory.reserve "-1GiB" is not a size such as 6GiB');
});

const bomb = `a0: &a0 [x, x]\n${Array.from({ length: 12 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`).join(', ')}]`).join('\n')}\n`;
const thinBomb = `a0: &a0 [x, x]\n${Array.from({ length: 15 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]`).join('\n')}\n`;

const wholeFiles: readonly (readonly [string, () => string, string])[] = [
  ['missing', () => join(folder, 'none.yaml'), 'there is no'],
  ['below a file', () => join(write('plain', 'x'), 'none.yaml'), 'there is no'],
  ['a directory', () => folder, 'is a directory'],
  ['binary', () => write('binary', Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1])), 'is binary'],
  [
    'in another encoding',
    () => write('latin', Uint8Array.from([0x63, 0x3a, 0x20, 0xe9, 0x0a])),
    'is not UTF-8 text',
  ],
  ['empty', () => write('empty', ''), 'is empty'],
  ['comments alone', () => write('comments', '# nothing\n\n'), 'is empty'],
  ['a device', () => '/dev/zero', 'is not a regular file'],
  ['an alias bomb', () => write('bomb', bomb), 'more than 32 aliases'],
  ['a thin alias bomb', () => write('thin', thinBomb), 'aliases that unfold without end'],
  ['an alias of itself', () => write('self', 'nodes: &a [*a]\ncluster: x\n'), 'self'],
  ['nested by the thousand', () => write('nested', '['.repeat(200_000)), 'nested too deeply'],
  ['a million dashes', () => write('dashes', '- '.repeat(100_000)), 'nested too deeply'],
  [
    'many keys',
    () => write('keys', Array.from({ length: 20_000 }, (_, at) => `k${at}: 1\n`).join('')),
    'unknown key "k0"',
  ],
  ['mappings nested by the thousand', () => write('nested2', '{a: '.repeat(60_000)), 'nested too deeply'],
];

/** Work done, ms of the processor: what a busy machine makes of it in seconds says nothing. */
function work(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

test.each(wholeFiles)('a file that is %s is refused at once, as cluster and as recipe', (_, make, words) => {
  const path = make();
  const began = process.cpuUsage();
  const cluster = refused(() => readCluster(path));
  expect(cluster.code).toBe('bad-cluster-file');
  expect(cluster.message).toContain(words);
  const recipeError = refused(() => readRecipe(path));
  expect(recipeError.code).toBe('bad-recipe-file');
  expect(work(began)).toBeLessThan(5000);
});

test('a file of 50 MB is refused unread', () => {
  const path = write('large', '');
  truncateSync(path, 50_000_000);
  const before = process.memoryUsage().rss;
  expect(refused(() => readCluster(path)).message).toContain(
    'too large for a cluster file: 47.7 MiB, at most 256 KiB',
  );
  expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
});

test('a pipe is refused without waiting for a writer', () => {
  const path = join(folder, 'pipe');
  execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', path]);
  expect(refused(() => readCluster(path)).message).toContain('is not a regular file');
});

const withKey = (key: string) => two.replace('10.0.0.2,', `10.0.0.2, key: ${key},`);

const keys: readonly (readonly [string, () => string, string])[] = [
  ['is missing', () => 'none', 'does not exist'],
  ['is a directory', () => '.', 'is not a regular file'],
  ['is empty', () => write('key-empty', ''), 'is empty'],
  ['is the public half', () => write('id.pub', 'ssh-ed25519 AAAA me@x\n'), 'is a public key'],
  ['is open to others', () => write('key-open', '-----BEGIN\n', 0o644), 'chmod 600'],
];

test.each(keys)('a key that %s is refused with the place that names it', (_, make, words) => {
  const path = write('keys.yaml', withKey(make()));
  const error = refused(() => readCluster(path));
  expect(error.code).toBe('unreadable-key');
  expect(error.message).toContain(`${path}:4:`);
  expect(error.message).toContain('of spark-b');
  expect(error.message).toContain(words);
});

test('a missing ssh_config is refused', () => {
  const path = write('config.yaml', `${two}sshConfig: ./none\n`);
  const error = refused(() => readCluster(path));
  expect(error.code).toBe('bad-cluster-file');
  expect(error.message).toContain(`:5:12: the ssh_config ${join(folder, 'none')} does not exist`);
});

const passwords: readonly (readonly [string, () => string, string])[] = [
  ['missing', () => join(folder, 'no-password'), 'there is no password file'],
  ['readable by the group', () => write('pw-640', 'secret\n', 0o640), 'has mode 0640; it must be 0600'],
  ['executable', () => write('pw-700', 'secret\n', 0o700), 'has mode 0700'],
  ['a directory', () => folder, 'is a directory'],
  ['empty', () => write('pw-empty', '\n'), 'is empty'],
  ['two lines long', () => write('pw-two', 'secret\nsecret\n'), 'more than one line'],
  ['too long', () => write('pw-long', 'secret'.repeat(1000)), 'too large'],
  ['binary', () => write('pw-nul', 'sec\0ret'), 'is binary'],
];

test.each(passwords)('a password file that is %s is refused, and never quoted', (_, make, words) => {
  const error = refused(() => readPasswordFile(make()));
  expect(error.code).toBe('bad-password-file');
  expect(error.message).toContain(words);
  expect(`${error.message}${error.hint}`).not.toContain('secret');
});

test('a password file for a node that the cluster does not have is refused', () => {
  const cluster = readCluster(write('two.yaml', two));
  checkPasswordNodes(['spark-b=/pw', '/general', './odd=name'], cluster);
  const error = refused(() => checkPasswordNodes(['spark-b=/pw', 'sparkb=/pw'], cluster));
  expect(error.code).toBe('bad-input');
  expect(`${error.message} ${error.hint}`).toBe(
    '--sudo-password-file names sparkb, which is no node of sparks Its nodes are spark-a and spark-b.',
  );
});

test('a password is the one line of its file, spaces included', () => {
  expect(readPasswordFile(write('pw', ' a b" $\n'))).toBe(' a b" $');
  expect(readPasswordFile(write('pw-crlf', 'a\r\n', 0o400))).toBe('a');
});

const policy = 'allow:\n  - {node: spark-b, kind: container, name: comfyui, user: lab}\n';
const swapped: readonly (readonly [string, () => unknown, string])[] = [
  ['a cluster file as recipe', () => parseRecipeText(two, 'f.yaml'), 'a cluster file, and a recipe'],
  [
    'a cluster file without its name as recipe',
    () => parseRecipeText(two.replace('cluster: sparks\n', ''), 'f.yaml'),
    'a cluster file, and a recipe',
  ],
  ['a recipe as cluster file', () => parseClusterText(recipe, 'f.yaml'), 'a recipe, and a cluster file'],
  ['a policy file as recipe', () => parseRecipeText(policy, 'f.yaml'), 'a policy file, and a recipe'],
];

test.each(swapped)('%s is one complaint, which says where each is named', (_, action, words) => {
  const error = refused(action);
  expect(error.message).toBe(`f.yaml is ${words} is needed here`);
  expect(error.hint).toContain('firstlight up RECIPE --cluster FILE');
});

test('a file that has the mark of its own kind is told what is wrong in it, whatever else stands there', () => {
  expect(refused(() => parseRecipeText(`${recipe}cluster: sparks\n`, 'r.yaml')).message).toContain(
    'r.yaml:7:1: unknown key "cluster"',
  );
  expect(refused(() => parseClusterText(`${two}recipe: qwen\n`, 'c.yaml')).message).toContain(
    'c.yaml:5:1: unknown key "recipe"',
  );
});
