import { describe, expect, test } from 'vitest';
import { known, type NodeFacts, unknown } from '../../src/domain/facts.ts';
import type { Plan } from '../../src/domain/plan.ts';
import { plan } from '../../src/planning/plan.ts';
import { spark, sparkNodes, sparkRecipe, sparks } from '../pretend/facts.ts';

function planOf(facts: readonly NodeFacts[], written: Readonly<Record<string, unknown>> = {}): Plan {
  return plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe: sparkRecipe({ engines: ['vllm-ray'], ...written }),
    recipeDigest: 'aaaabbbbccccdddd',
    edits: [],
    engine: 'vllm-ray',
    facts,
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
  });
}

const inProcess = { run: { in: 'process', venv: '/opt/vllm' } };
const programs = (...paths: readonly string[]) => ({
  engines: known(
    paths.map((program) => ({
      engine: 'vllm-ray' as const,
      where: { in: 'process' as const, program },
      version: unknown('x'),
    })),
  ),
});

describe('a plan for vLLM over Ray', () => {
  test('takes vLLM’s image, and keeps its entry script, which hands on the node’s script', () => {
    const made = planOf([spark('a'), spark('b')]);
    expect(made.blockers).toEqual([]);
    const [worker, head] = made.phases.flatMap((phase) => phase.services);
    expect([worker?.address, head?.address]).toEqual(['192.168.200.13', '192.168.200.12']);
    const words = worker?.argv ?? [];
    const image = words.indexOf('nvcr.io/nvidia/vllm:26.09-py3');
    expect(words.slice(image + 1, image + 3)).toEqual(['sh', '-c']);
    expect(words).toContain('GLOO_SOCKET_IFNAME=enp1s0f1np1');
    expect([worker?.healthPort, head?.healthPort]).toEqual([undefined, 30000]);
  });

  test('takes its own image where the recipe names one, and the script in place of that image’s entry point', () => {
    const run = { in: 'docker', image: { vllm: 'one:1', 'vllm-ray': 'two:2' } };
    const facts = (['a', 'b'] as const).map((which) =>
      spark(which, {
        engines: known([
          {
            engine: 'vllm-ray',
            where: { in: 'docker', image: 'two:2', imageId: 'sha256:2', arch: 'arm64' },
            version: unknown('x'),
          },
        ]),
      }),
    );
    const made = planOf(facts, { run });
    expect(made.blockers).toEqual([]);
    const words = made.phases[0]?.services[0]?.argv ?? [];
    const image = words.indexOf('two:2');
    expect(words.slice(image - 2, image + 2)).toEqual(['--entrypoint', 'sh', 'two:2', '-c']);
  });

  test('needs ray beside vllm on every node, and lies with this engine alone', () => {
    const both = programs('/opt/vllm/bin/vllm', '/opt/vllm/bin/ray');
    expect(planOf([spark('a', both), spark('b', both)], inProcess).blockers).toEqual([]);
    const made = planOf([spark('a', both), spark('b', programs('/opt/vllm/bin/vllm'))], inProcess);
    expect(made.blockers).toMatchObject([
      {
        cause: 'engine-missing',
        node: 'spark-b',
        title: '/opt/vllm/bin/ray is not on spark-b.',
        engineOnly: true,
      },
    ]);
  });

  test('is blocked by who listens on the port where the nodes’ Ray is to meet', () => {
    const taken = known([{ address: '0.0.0.0', port: 20000, pid: known(1), process: known('redis-server') }]);
    const made = planOf([spark('a', { ports: taken, holders: known([]) }), spark('b')]);
    expect(made.blockers).toMatchObject([{ cause: 'port-already-in-use', node: 'spark-a' }]);
  });

  test('counts memory as vLLM does', () => {
    const made = planOf([spark('a'), spark('b')]);
    const vllm = plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe({ engines: ['vllm-ray'] }),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'vllm',
      facts: [spark('a'), spark('b')],
      sudo: {},
      replace: false,
    });
    expect(made.memory).toEqual(vllm.memory);
  });
});
