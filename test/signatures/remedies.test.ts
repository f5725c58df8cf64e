import { describe, expect, it } from 'vitest';
import { treat } from '../../src/diagnosis/treat.ts';
import type { Finding } from '../../src/domain/finding.ts';
import type { Service } from '../../src/domain/plan.ts';
import { editRecipe } from '../../src/domain/recipe.ts';
import { remedies } from '../../src/knowledge/remedies/index.ts';
import { evidenceOf } from '../diagnosis/cases.ts';

const blank: Finding = {
  cause: 'unknown',
  node: 'spark-b',
  rank: 1,
  role: 'worker',
  stage: 'graphs',
  final: true,
  confidence: 0.9,
  title: '',
  why: '',
  quotes: [],
  consequences: [],
  advice: [],
  values: {},
};

/** A rank of ours. */
const service: Service = {
  name: 'model-x-r0',
  node: 'spark-a',
  rank: 0,
  role: 'head',
  engine: 'vllm',
  in: 'docker',
  argv: [],
  env: {},
  secretEnv: {},
  recipe: 'model-x',
  recipeDigest: '',
  effectiveDigest: '',
  edits: [],
  servedName: 'model-x',
};

type Input = {
  readonly cause: string;
  readonly engine?: 'sglang' | 'vllm';
  readonly recipe?: object;
  readonly more?: Partial<Finding>;
  /** Somebody else launched the ranks. */
  readonly byHand?: boolean;
};

/** The remedies for a cause one after the other, each with the recipe that the ones before left. */
function cures({ cause, engine = 'vllm', recipe = {}, more = {}, byHand = false }: Input) {
  const made = evidenceOf({ engine, logs: { head: [], worker: [] }, recipe });
  const evidence = { ...made, services: byHand ? [] : [service] };
  let effective = evidence.recipe;
  const tried: { engine: typeof engine; remedy: string; cause: string }[] = [];
  for (;;) {
    const input = {
      recipe: effective,
      engine,
      finding: { ...blank, cause, ...more },
      facts: [],
      evidence,
      tried,
    };
    const treatment = treat(input);
    if (treatment === undefined) return { tried: tried.map(({ remedy }) => remedy), recipe: effective };
    expect(`${treatment.title}${treatment.cost}`).not.toMatch(/undefined|NaN/);
    effective = editRecipe(effective, treatment.edits);
    tried.push({ engine, remedy: treatment.remedy, cause });
  }
}

describe('cures by variables', () => {
  it.each([
    ['ray-memory-monitor-killed-worker', { RAY_memory_monitor_refresh_ms: '0' }],
    ['jit-compile-parallelism-oom', { MAX_JOBS: '2', FLASHINFER_NVCC_THREADS: '1' }],
    ['rank-local-kernel-cache-drift', { VLLM_FLASHINFER_AUTOTUNE_DISTRIBUTED_SYNC: '0' }],
    ['stale-nccl-config-in-image', { NCCL_CONF_FILE: '/dev/null', NCCL_NET_PLUGIN: 'none' }],
    ['kernel-regression-rdma-registration', { NCCL_IB_DISABLE: '1' }],
  ])('%s', (cause, env) => {
    expect(cures({ cause }).recipe.env).toEqual(env);
  });

  it('are not tried where they are set already', () => {
    const recipe = { env: { RAY_memory_monitor_refresh_ms: 0 } };
    expect(cures({ cause: 'ray-memory-monitor-killed-worker', recipe }).tried).toEqual([]);
  });

  it('follow what the finding says of the cabling', () => {
    const of = (remedy: string) => cures({ cause: 'rdma-cabling-topology', more: { values: { remedy } } });
    expect(of('cross-nic').recipe.env).toMatchObject({ NCCL_CROSS_NIC: '0' });
    expect(of('subnet-aware').recipe.env).toMatchObject({ NCCL_IB_SUBNET_AWARE_ROUTING: '1' });
    expect(of('').tried).toEqual(['over-sockets']);
  });
});

describe('TCP instead of RDMA', () => {
  it('is the last resort for ranks of ours, and none for others’', () => {
    const cause = 'lossless-ethernet-config-lost';
    expect(cures({ cause }).tried).toEqual(['over-sockets']);
    expect(cures({ cause, byHand: true }).tried).toEqual([]);
  });
});

describe('one value that was meant for all nodes', () => {
  it('is taken away: devices', () => {
    const recipe = { network: 'auto', env: { NCCL_IB_HCA: 'rocep1s0f0', NCCL_SOCKET_IFNAME: 'eth0' } };
    const cured = cures({ cause: 'wrong-rdma-device-list', recipe });
    expect(cured.tried).toEqual(['use-node-addresses', 'over-sockets']);
    expect(cured.recipe.env).toEqual({ NCCL_SOCKET_IFNAME: 'eth0', NCCL_IB_DISABLE: '1' });
  });

  it('is taken away: the index of a GID, and else the usual one is set', () => {
    const given = cures({ cause: 'wrong-gid-index', recipe: { env: { NCCL_IB_GID_INDEX: 5 } } });
    expect(given.tried).toEqual(['gid-index', 'over-sockets']);
    expect(given.recipe.env).not.toHaveProperty('NCCL_IB_GID_INDEX');
    expect(cures({ cause: 'wrong-gid-index' }).recipe.env).toMatchObject({ NCCL_IB_GID_INDEX: '3' });
    const shown = { cause: 'wrong-gid-index', byHand: true, more: { values: { index: '5' } } };
    expect(cures(shown).tried).toEqual([]);
  });

  it('is taken away: ranks and addresses among the arguments', () => {
    const args = [
      '--node-rank',
      '0',
      '--max-num-seqs',
      '8',
      '--master-addr=10.0.0.1',
      '--headless',
      '--seed',
      '-1',
    ];
    const cured = cures({ cause: 'duplicate-node-rank', recipe: { args: { vllm: args } } });
    expect(cured.tried).toEqual(['own-arguments']);
    expect(cured.recipe.args.vllm).toEqual(['--max-num-seqs', '8', '--seed', '-1']);
  });
});

describe('graphs', () => {
  it('are done without where they do not fit beside the cache after all', () => {
    const recipe = { memory: { fraction: 0.8 } };
    const cured = cures({ cause: 'cuda-graph-capture-oom', recipe });
    expect(cured.tried).toEqual(['less-memory', 'eager']);
    expect(cured.recipe.args.vllm).toEqual(['--enforce-eager']);
  });

  it('are done without where NCCL breaks them, in each engine’s own word', () => {
    const cause = 'cuda-graph-capture-with-host-staged-nccl';
    expect(cures({ cause, engine: 'sglang' }).recipe.args.sglang).toEqual(['--disable-cuda-graph']);
  });

  it('stay where NCCL hangs elsewhere', () => {
    const cause = 'nccl-build-incompatible-with-platform';
    expect(cures({ cause, more: { stage: 'serving' } }).tried).toEqual([]);
    expect(cures({ cause }).tried).toEqual(['eager']);
  });
});

describe('memory', () => {
  it('is asked for less after fewer sequences did not help', () => {
    const recipe = { memory: { fraction: 0.85 }, sequences: 64 };
    expect(cures({ cause: 'too-many-sequences-for-memory', recipe })).toMatchObject({
      tried: ['fewer-sequences', 'less-memory'],
      recipe: { sequences: 16, memory: { fraction: 0.8 } },
    });
  });

  it('is looked at again before less is asked for', () => {
    const recipe = { memory: { fraction: 0.85 } };
    for (const cause of ['unified-memory-exhausted-driver-alloc', 'oom-killer-during-weight-load'])
      expect(cures({ cause, recipe }).tried).toEqual(['look-again', 'less-memory']);
  });
});

describe('every remedy', () => {
  it('ends: none is tried twice for one cause, whatever the recipe', () => {
    const named = [...new Set(remedies.flatMap((one) => one.causes))];
    for (const cause of named) {
      const { tried } = cures({
        cause,
        recipe: { memory: { fraction: 0.8 }, network: 'engine', sequences: 64 },
      });
      expect(new Set(tried).size).toBe(tried.length);
      expect(tried.length).toBeLessThan(5);
    }
  });
});
