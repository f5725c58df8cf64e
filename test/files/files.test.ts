import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { digestOf } from '../../src/domain/digest.ts';
import { UserError } from '../../src/domain/user-error.ts';
import { chooseNodes } from '../../src/files/choose-nodes.ts';
import { parseClusterText, readCluster } from '../../src/files/cluster-file.ts';
import { parseRecipeText, readRecipe } from '../../src/files/recipe-file.ts';
import { jsonSchema } from '../../src/files/schema.ts';
import { editDistance, suggest } from '../../src/files/suggest.ts';
import { clusterText, writeClusterFile } from '../../src/files/write-cluster.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'firstlight-files-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sparks = `# cluster.yaml (or --cluster FILE)
cluster: sparks
sshConfig: ./ssh_config
defaults: {user: aurora, jump: spark-a, key: keys/id}
nodes:
  - {name: spark-a, ssh: 10.1.230.180, port: 22, fabric: 192.168.200.12}
  - {name: spark-b, ssh: 192.168.200.13, fabric: 192.168.200.13, key: ~/.ssh/b}
  - {name: spark-c, ssh: "root@gpu", jump: "me@door:2222,inner"}
`;

test('defaults are folded into nodes, paths are absolute, and the default jump needs no jump itself', () => {
  expect(parseClusterText(sparks, '/etc/fl/cluster.yaml')).toEqual({
    name: 'sparks',
    file: '/etc/fl/cluster.yaml',
    sshConfig: '/etc/fl/ssh_config',
    nodes: [
      {
        name: 'spark-a',
        ssh: '10.1.230.180',
        user: 'aurora',
        port: 22,
        key: '/etc/fl/keys/id',
        fabric: '192.168.200.12',
      },
      {
        name: 'spark-b',
        ssh: '192.168.200.13',
        user: 'aurora',
        key: join(homedir(), '.ssh/b'),
        jump: 'spark-a',
        fabric: '192.168.200.13',
      },
      // A user in the destination is nearer than the default.
      { name: 'spark-c', ssh: 'root@gpu', key: '/etc/fl/keys/id', jump: 'me@door:2222,inner' },
    ],
  });
});

const reachable: readonly (readonly [string, string])[] = [
  [
    'two nodes behind one address with different ports',
    '[{name: a, ssh: 10.0.0.1, port: 2201}, {name: b, ssh: 10.0.0.1, port: 2202}]',
  ],
  [
    'the same inner address behind two jumps',
    '[{name: a, ssh: 10.0.0.1, jump: x}, {name: b, ssh: 10.0.0.1, jump: y}]',
  ],
  ['an ssh URL', '[{name: a, ssh: "ssh://me@10.0.0.1:2222"}]'],
  ['an IPv6 address', '[{name: a, ssh: "fe80::1", fabric: "fd00::12"}]'],
  ['an alias with a dash inside', '[{name: a, ssh: my-gpu_1.lan}]'],
  ['a chain of jumps', '[{name: a, ssh: h1}, {name: b, ssh: h2, jump: a}, {name: c, ssh: h3, jump: b}]'],
  [
    'one jump for two nodes',
    '[{name: a, ssh: h1}, {name: b, ssh: h2, jump: a}, {name: c, ssh: h3, jump: a}]',
  ],
  ['an alias of YAML', '[&a {name: a, ssh: h1, port: &p 22}, {name: b, ssh: h2, port: *p}]'],
];

test.each(reachable)('%s is a good cluster', (_, nodes) => {
  expect(parseClusterText(`cluster: x\nnodes: ${nodes}\n`, 'c.yaml').nodes.length).toBeGreaterThan(0);
});

test('a cluster file with a key that can be read is read', () => {
  writeFileSync(join(folder, 'id'), '-----BEGIN OPENSSH PRIVATE KEY-----\n', { mode: 0o600 });
  const path = join(folder, 'cluster.yaml');
  writeFileSync(path, '\ufeffcluster: x\r\nnodes: [{name: a, ssh: h, key: id}]\r\n');
  expect(readCluster(path).nodes[0]?.key).toBe(join(folder, 'id'));
});

const recipe = `recipe: qwen3.5-122b
model: Qwen/Qwen3.5-122B-A10B-FP8
path: /home/aurora/models/Qwen3.5-122B-A10B-FP8
engines: [sglang, vllm]
layout: {nodes: 2, tensor: 2}
context: 131072
sequences: 16
memory: {fraction: auto, reserve: 6GiB}
run: {in: docker, image: {sglang: "lmsysorg/sglang:v1", vllm: "vllm/vllm-openai:v1"}, volumes: ["/a:/b:ro"]}
network: auto
serve: {port: 30000, listen: all, name: qwen3.5-122b, reasoning: auto, tools: auto}
args: {sglang: ["--trust-remote-code"], vllm: []}
env: {}
`;

test('the recipe of the documentation is read, whatever it listens on', () => {
  const path = join(folder, 'recipe.yaml');
  writeFileSync(path, recipe);
  const read = readRecipe(path);
  expect(read.file).toBe(path);
  expect(read.recipe.serve.listen).toBe('all');
  expect(read.digest).toBe(digestOf(read.recipe));
});

test('the digest is of the meaning: order, comments and written defaults do not change it', () => {
  const { digest } = parseRecipeText(recipe, 'r.yaml');
  const reordered = `${recipe.split('\n').reverse().join('\n')}\n# a comment\nrendezvousPort: 20000\n`;
  expect(parseRecipeText(reordered, 'elsewhere.yaml').digest).toBe(digest);
  expect(parseRecipeText(recipe.replace('sequences: 16', 'sequences: 17'), 'r.yaml').digest).not.toBe(digest);
});

test('in a process every engine has a command of its own by default', () => {
  const text = recipe.replace(/run: .*/, 'run: {in: process, command: {vllm: [python3, -m, vllm]}}');
  expect(parseRecipeText(text, 'r.yaml').recipe.run).toEqual({
    in: 'process',
    command: { vllm: ['python3', '-m', 'vllm'] },
  });
});

const three = parseClusterText(
  'cluster: x\nnodes: [{name: a, ssh: h1}, {name: b, ssh: h2}, {name: c, ssh: h3}]\n',
  'c.yaml',
);

function chosen(change: (text: string) => string): readonly string[] | string {
  try {
    return chooseNodes(three, parseRecipeText(change(recipe), 'r.yaml').recipe).map((node) => node.name);
  } catch (error) {
    if (error instanceof UserError) return `${error.code}: ${error.message} | ${error.hint}`;
    throw error;
  }
}

test('a recipe runs on the first nodes of the cluster, or on those that it names, head first', () => {
  expect(chosen((text) => text)).toEqual(['a', 'b']);
  expect(chosen((text) => `${text}nodes: [c, a]\n`)).toEqual(['c', 'a']);
  expect(chosen((text) => text.replace('{nodes: 2, tensor: 2}', '{nodes: 1, tensor: 2}'))).toEqual(['a']);
  expect(chosen((text) => text.replace('{nodes: 2, tensor: 2}', '{nodes: 3, pipeline: 3}'))).toEqual([
    'a',
    'b',
    'c',
  ]);
});

test('a recipe that asks for nodes which are not there is refused', () => {
  expect(chosen((text) => text.replace('{nodes: 2, tensor: 2}', '{nodes: 4, tensor: 4}'))).toMatch(
    /^bad-recipe-file: recipe qwen3.5-122b: it needs 4 nodes, and .*c\.yaml has 3 \| Add nodes/,
  );
  expect(chosen((text) => `${text}nodes: [a, d]\n`)).toContain('has no node "d" | Did you mean "a"?');
  expect(chosen((text) => `${text}nodes: [a, spark-9]\n`)).toContain('Its nodes are a, b, c.');
});

test('a change of the recipe after it was read is checked too', () => {
  const { recipe: read } = parseRecipeText(recipe, 'r.yaml');
  const layout = { ...read.layout, tensor: 3 };
  expect(() => chooseNodes(three, { ...read, layout })).toThrow('which 2 nodes cannot share evenly');
  expect(() => chooseNodes(three, { ...read, nodes: ['a', 'a'] })).toThrow('nodes names a twice');
  expect(() => chooseNodes(three, { ...read, nodes: ['a'] })).toThrow('nodes names 1, and layout.nodes is 2');
});

test('a cluster file that was written is one that can be read', () => {
  const path = join(folder, 'written.yaml');
  const cluster = {
    cluster: 'x',
    nodes: [
      { name: 'a', ssh: 'me@h' },
      { name: 'b', ssh: 'h2', jump: 'a', port: 2222 },
    ],
  };
  const text = clusterText(cluster, path);
  writeClusterFile(path, text, false);
  expect(readCluster(path).nodes.map((node) => node.ssh)).toEqual(['me@h', 'h2']);
  expect(() => writeClusterFile(path, 'x', false)).toThrow('exists already; it was not changed');
  expect(readFileSync(path, 'utf8')).toBe(text);
  writeClusterFile(path, '# new\n', true);
  expect(readFileSync(path, 'utf8')).toBe('# new\n');
  expect(() => writeClusterFile(join(folder, 'none', 'c.yaml'), text, false)).toThrow(
    'cannot be written (ENOENT)',
  );
  expect(() => clusterText({ ...cluster, nodes: [] }, path)).toThrow('needs at least one node');
});

test('a slip is recognised, and a different word is not', () => {
  expect(suggest('jmup', ['jump', 'user'])).toBe('jump');
  expect(suggest('Port', ['port'])).toBe('port');
  expect(suggest('contxt', ['context', 'sequences'])).toBe('context');
  expect(suggest('sequence', ['context', 'sequences'])).toBe('sequences');
  expect(suggest('banana', ['context', 'sequences'])).toBeUndefined();
  expect(suggest('port', ['port'])).toBeUndefined();
});

test('an edit distance is a metric for single slips', () => {
  expect(editDistance('', 'abc')).toBe(3);
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect(editDistance('jmup', 'jump')).toBe(1);
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a));
      expect(editDistance(a, b) === 0).toBe(a === b);
    }),
    { numRuns: 200 },
  );
});

test('whatever text stands in a file, it is read or refused in words', () => {
  const words = fc.constantFrom(
    'cluster',
    'nodes',
    'name',
    'ssh',
    ':',
    ' ',
    '\n',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ',',
    '&a',
    '*a',
    '"',
    '-o',
    '1',
    '~',
    '!x',
    '#',
    '\t',
    'null',
  );
  fc.assert(
    fc.property(fc.array(words, { maxLength: 40 }), (parts) => {
      for (const parse of [parseClusterText, parseRecipeText]) {
        try {
          parse(parts.join(''), 'f.yaml');
        } catch (error) {
          if (!(error instanceof UserError)) throw error;
        }
      }
    }),
    { numRuns: 1500 },
  );
});

test('each file has a JSON Schema that refuses unknown keys', () => {
  for (const kind of ['cluster', 'recipe'] as const)
    expect(jsonSchema(kind)).toMatchObject({ type: 'object', additionalProperties: false });
});

test('the examples of docs/files.md can be read', () => {
  const blocks = [...readFileSync('docs/files.md', 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)];
  const [cluster = '', recipe = ''] = blocks.map(([, text = '']) => text);
  expect(parseClusterText(cluster, 'cluster.yaml').nodes).toHaveLength(2);
  expect(parseRecipeText(recipe, 'recipe.yaml').recipe.layout.tensor).toBe(2);
});
