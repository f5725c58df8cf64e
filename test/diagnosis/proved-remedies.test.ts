import { describe, expect, it } from 'vitest';
import { provedIn, usableNow } from '../../src/diagnosis/proved-remedies.ts';
import { type Event, parseEvent } from '../../src/domain/event.ts';
import { editRecipe, recipeSchema } from '../../src/domain/recipe.ts';
import { knownToFail } from '../../src/knowledge/known-bad.ts';
import { buildOf, whySkip } from '../../src/planning/engine-choice.ts';
import { sparkFacts } from './facts.ts';

const recipe = recipeSchema.parse({
  recipe: 'm',
  model: 'org/m',
  path: '/models/m',
  engines: ['vllm', 'sglang'],
  layout: { nodes: 2, tensor: 2 },
  run: { in: 'docker', image: { vllm: 'v', sglang: 's' } },
  context: 131_072,
});
const edits = [{ path: 'context', from: 131_072, to: 65_536 }];
const remedy = {
  attempt: 1,
  cause: 'kv-cache-too-small-for-max-len',
  remedy: 'shorter-context',
  title: 'Less context',
  edits,
  why: 'it serves',
};

function journal(...bodies: readonly object[]): readonly Event[] {
  const head = { v: 1, run: '7', at: '2026-11-29T10:00:00.000Z' };
  return bodies.map((body, seq) => parseEvent(JSON.stringify({ ...head, seq: seq + 1, ...body })));
}

const started = {
  type: 'run-started',
  operation: 'up',
  cluster: 'two',
  nodes: ['a', 'b'],
  controller: { host: 'h', user: 'u', pid: 1 },
  version: '1',
};
const planned = { type: 'planned', attempt: 1, plan: { recipe, engine: 'vllm', phases: [] } };

describe('a remedy that a run proved', () => {
  const proved = provedIn(
    journal(started, planned, { type: 'remedy-applied', ...remedy }, { type: 'remedy-proved', ...remedy }),
  );
  const here = { cluster: 'two', recipe, engine: 'vllm' } as const;

  it('is used from the first attempt on for the same cluster, model and engine', () => {
    expect(usableNow(proved, here).map((one) => one.edits)).toEqual([edits]);
    expect(usableNow(proved, { ...here, cluster: 'other' })).toEqual([]);
    expect(usableNow(proved, { ...here, engine: 'sglang' })).toEqual([]);
    expect(usableNow(proved, { ...here, recipe: { ...recipe, model: 'org/other' } })).toEqual([]);
  });

  it('is not used where the recipe has changed since, nor twice', () => {
    expect(usableNow(proved, { ...here, recipe: editRecipe(recipe, edits) })).toEqual([]);
    expect(usableNow([...proved, ...proved], here)).toHaveLength(1);
  });

  it('is forgotten where it failed later, and where it was only against what stood in the way then', () => {
    expect(
      provedIn(
        journal(started, planned, { type: 'remedy-proved', ...remedy }, { type: 'remedy-failed', ...remedy }),
      ),
    ).toEqual([]);
    const port = {
      ...remedy,
      remedy: 'other-port',
      edits: [{ path: 'rendezvousPort', from: 20_000, to: 20_100 }],
    };
    expect(usableNow(provedIn(journal(started, planned, { type: 'remedy-proved', ...port })), here)).toEqual(
      [],
    );
  });
});

describe('an engine that is known to fail', () => {
  const nodes = [{ name: 'a' }, { name: 'b' }];
  const gb10 = {
    index: 0,
    name: 'NVIDIA GB10',
    uuid: 'u',
    unified: true,
    totalBytes: { known: false, why: '' },
    freeBytes: { known: false, why: '' },
    driver: '580',
  } as const;
  const facts = (version: string) =>
    nodes.map(({ name }) =>
      sparkFacts({
        node: name,
        more: {
          gpus: { known: true, value: [gb10] },
          engines: {
            known: true,
            value: [
              {
                engine: 'vllm',
                where: { in: 'docker', image: 'v', imageId: `sha-${version}`, arch: 'arm64' },
                version: { known: true, value: version },
              },
            ],
          },
        },
      }),
    );
  const input = (version: string) => ({ nodes, facts: facts(version), recipe, failedBefore: [] });

  it('is skipped by version, GPU and layout, with the reason', () => {
    expect(whySkip('vllm', input('0.27.1'))).toMatch(/CUDA graphs on pairs of GB10.*vllm#46253/);
    expect(whySkip('vllm', input('0.28.1'))).toBeUndefined();
    expect(
      whySkip('vllm', { ...input('0.27.1'), recipe: { ...recipe, args: { vllm: ['--enforce-eager'] } } }),
    ).toBeUndefined();
    expect(whySkip('sglang', input('0.27.1'))).toBeUndefined();
  });

  it('is skipped with the very build that failed before while another engine served', () => {
    const build = buildOf('vllm', nodes, facts('0.28.1')) ?? '';
    const failedBefore = [
      { model: 'org/m', engine: 'vllm', build, cause: 'attention-backend-unsupported', run: '4' },
    ] as const;
    expect(whySkip('vllm', { ...input('0.28.1'), failedBefore })).toMatch(
      /run 4.*attention-backend-unsupported/,
    );
    expect(whySkip('vllm', { ...input('0.28.2'), failedBefore })).toBeUndefined();
  });

  it('is never skipped by what is not known', () => {
    expect(
      knownToFail({
        engine: 'vllm-ray',
        versions: [],
        gpus: undefined,
        nodes: 2,
        quantisation: '',
        experts: false,
        args: [],
        env: {},
      }),
    ).toBeUndefined();
  });
});
