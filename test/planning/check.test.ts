import { expect, test } from 'vitest';
import { known, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import { check } from '../../src/planning/check.ts';
import { plan } from '../../src/planning/plan.ts';
import { spark, sparkNodes, sparkRecipe, sparks, storyFacts } from '../pretend/facts.ts';

function withPlan(facts: readonly NodeFacts[], written: Readonly<Record<string, unknown>> = {}) {
  const recipe = sparkRecipe(written);
  const made = plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe,
    recipeDigest: 'aaaa',
    edits: [],
    engine: 'sglang',
    facts,
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
  });
  return check({ cluster: sparks, nodes: sparkNodes, recipe, plan: made, facts });
}

test('with a recipe, each holder in the way blocks and names what up would ask', () => {
  const items = withPlan(storyFacts());
  const blocks = items.filter((item) => item.level === 'blocks');
  expect(blocks.map((item) => item.title)).toEqual([
    'ollama.service (system service, user ollama) is in the way: 31.2 GiB.',
    'comfyui (container of image ghcr.io/ai-dock/comfyui:v2-cuda-13.0) is in the way: 22.6 GiB.',
    'python train.py (process 3307 of user root) is in the way: 20.9 GiB.',
  ]);
  expect(items[0]).toBe(blocks[0]);
});

test('clean nodes block nothing, and say so part by part', () => {
  const items = withPlan([spark('a'), spark('b')]);
  expect(items.filter((item) => item.level === 'blocks' || item.level === 'warning')).toEqual([]);
  expect(new Set(items.map((item) => item.topic))).toEqual(
    new Set(['memory', 'ssh', 'gpus', 'names', 'fabric', 'rdma', 'sudo']),
  );
});

test('without a recipe it judges the hosts alone', () => {
  const items = check({ cluster: sparks, facts: storyFacts() });
  const warnings = items.filter((item) => item.level === 'warning').map((item) => item.topic);
  expect(warnings).toContain('names');
  expect(warnings).toContain('holders');
});

test('what is not known is said with its reason', () => {
  const facts = [spark('a', { gpus: unknown('nvidia-smi gave no answer in 5 s') }), spark('b')];
  const items = check({ cluster: sparks, facts });
  expect(items).toContainEqual({
    level: 'unknown',
    topic: 'gpus',
    node: 'spark-a',
    title: 'Not known: nvidia-smi gave no answer in 5 s.',
    remedy: undefined,
  });
});

test('a host that does not answer blocks, with what to do', () => {
  const failure = {
    kind: 'unreachable',
    why: 'no-route',
    sentence: 'There is no route to spark-b.',
    remedy: 'Check its cable.',
    text: '',
  } as const;
  const facts: readonly NodeFacts[] = [spark('a'), { node: 'spark-b', at: '', reached: false, failure }];
  expect(check({ cluster: sparks, facts })[0]).toMatchObject({
    level: 'blocks',
    topic: 'ssh',
    title: failure.sentence,
    remedy: failure.remedy,
  });
});

test('a nearly full disk is a warning', () => {
  const facts = [spark('a', { disks: known([{ path: '/', totalBytes: 1e12, freeBytes: 1e6 }]) }), spark('b')];
  expect(check({ cluster: sparks, facts }).map((item) => item.topic)).toContain('disk');
});

test('a full home blocks, since no rank could be started there; a full disk elsewhere does not', () => {
  const full = (path: string) =>
    spark('b', { disks: known([{ path, totalBytes: 1e12, freeBytes: 40_000 }]) });
  const levels = (path: string) =>
    check({ cluster: sparks, facts: [spark('a'), full(path)] })
      .filter(({ topic }) => topic === 'disk')
      .map(({ level }) => level);
  expect(levels('/home/aurora')).toEqual(['blocks']);
  expect(levels('/models')).toEqual(['warning']);
});

test('a node that gives no lock blocks, since up would do nothing there', () => {
  const facts = [spark('a', { lock: unknown('its /tmp takes no files') }), spark('b')];
  expect(check({ cluster: sparks, facts })[0]).toMatchObject({
    level: 'blocks',
    topic: 'lock',
    node: 'spark-a',
    title: 'No lock: its /tmp takes no files.',
    remedy: expect.stringContaining('df -h /tmp'),
  });
});

test('a Spark that prints a total for memory it has not is warned of, and a hanging nvidia-smi has a way out', () => {
  const seen = spark('b');
  const printed = { totalBytes: 95896 * 2 ** 20, freeBytes: known(95896 * 2 ** 20) };
  const [gpu] = seen.gpus.known ? seen.gpus.value : [];
  const gpus = gpu === undefined ? [] : [{ ...gpu, printed }];
  const items = (facts: NodeFacts) => check({ cluster: sparks, facts: [spark('a'), facts] });
  const misled = items({ ...seen, gpus: known(gpus) });
  expect(misled.filter(({ level }) => level === 'warning').map(({ title }) => title)).toContainEqual(
    expect.stringMatching(/^nvidia-smi prints 0MiB \/ 95896MiB .* has 114\.7 GiB of 119\.7 GiB available/),
  );
  const why = 'nvidia-smi gave no answer in 5 s';
  const hung = items({
    ...seen,
    gpus: unknown(why),
    driver: {
      version: known('580.1'),
      flavour: known('open'),
      listed: known(1),
      trouble: { kind: 'hangs', why, remedy: 'a hung driver ends only with a restart', seen: [] },
    },
  });
  expect(hung.filter(({ topic, node }) => topic === 'gpus' && node === 'spark-b')).toMatchObject([
    { level: 'unknown', title: `Not known: ${why}.`, remedy: 'a hung driver ends only with a restart' },
  ]);
});
