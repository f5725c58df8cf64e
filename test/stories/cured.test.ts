import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { curedStories } from '../../src/lab/stories/index.ts';
import type { Story } from '../../src/lab/story.ts';
import { type Ended, endOf, of, openLab } from './lab.ts';

const LIMIT = 240_000;
/** What a bring-up does of its own accord, to itself or to what nobody holds. */
const OWN = ['start-rank', 'stop-rank', 'await-memory', 'drop-cache'];
/** Words that the remedy's edits must hold, where its name does not say all. */
const EDITS: Readonly<Record<string, string>> = {
  'misspelled-flag': '--enable-metrics',
  'old-ptxas': '/usr/local/cuda/bin/ptxas',
  'kernels-missing': 'marlin',
  'wrong-interface': 'env.GLOO_SOCKET_IFNAME',
  'other-cage': 'env.NCCL_SOCKET_IFNAME',
  'misspelled-value': 'qwen3',
  'experimental-experts': '"to":[]',
  'wrong-attention': 'triton',
  'large-tiles': 'triton',
  'many-compilers': 'MAX_JOBS',
  'shared-cache': 'env.TRITON_CACHE_DIR',
  'wrong-devices': 'env.NCCL_IB_HCA',
  'wrong-gid': 'env.NCCL_IB_GID_INDEX',
  'crossed-rails': 'env.NCCL_CROSS_NIC',
  'stalling-nccl': '--disable-cuda-graph',
  'broken-capture': '--enforce-eager',
  'low-memlock': 'NCCL_IB_DISABLE',
  'regressed-kernel': 'NCCL_IB_DISABLE',
  'management-names': '"path":"network"',
  'unset-variable': '"path":"network"',
  'head-by-name': '"to":[]',
  'same-rank': '"to":[]',
  'same-address': 'env.VLLM_HOST_IP',
  'port-taken': 'rendezvousPort',
  'few-tasks': 'OMP_NUM_THREADS',
  'graphs-too-large': 'memory.fraction',
  'too-many-requests': '"to":1024',
  'context-too-long': '"path":"context"',
  'odd-heads': 'layout.pipeline',
  'half-blocks': 'layout.pipeline',
  'long-context': '262144',
  'hub-away': 'HF_HUB_OFFLINE',
  'hub-limits': 'HF_HUB_OFFLINE',
  'read-only-cache': 'VLLM_CACHE_ROOT',
  'strange-reasoning': 'serve.reasoning',
  thoughtless: 'serve.reasoning',
  'tools-without-parser': 'serve.tools',
  'strange-tools': 'serve.tools',
  'late-kernel': 'VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS',
};

/** Remedies that are tried first, and do not help. */
const BEFORE: Readonly<Record<string, readonly string[]>> = {
  // What the kernel remembers of files is no page cache, and stays when that is dropped.
  'slab-hides-memory': ['look-again'],
  // Nobody holds it, and the recipe says itself how much the engine is to ask for.
  'less-than-seen': ['look-again'],
};

/** The owner of the story's cluster allows what its person would. */
function policyOf({ hosts, consents }: Story): string {
  const rules = consents.map(({ node, holder }) => {
    const found = hosts.find(({ name }) => name === node)?.holders.find(({ name }) => name === holder);
    return { node, kind: found?.kind, name: holder, user: found?.user };
  });
  return JSON.stringify({ allow: rules });
}

function holds(story: Story, { events, code, stderr }: Ended): void {
  const [named, applied] = story.expect.events;
  const vain = BEFORE[story.name] ?? [];
  const finals = of(events, 'finding').filter(({ final }) => final);
  expect(finals).toMatchObject([...vain.map(() => named), named]);
  // That a host began anew is told by its boot id, and by no line.
  if (named?.['cause'] !== 'host-restarted')
    expect(of(events, 'finding').at(-1)?.quotes.length).toBeGreaterThan(0);
  expect(of(events, 'remedy-applied')).toMatchObject(
    [...vain.map((remedy) => ({ remedy })), applied].map((one) => ({ ...one, cause: named?.['cause'] })),
  );
  expect(of(events, 'remedy-failed')).toMatchObject(vain.map((remedy) => ({ remedy })));
  expect(JSON.stringify(of(events, 'remedy-applied'))).toContain(EDITS[story.name] ?? '');
  expect(of(events, 'remedy-proved')).toMatchObject([{ cause: named?.['cause'] }]);
  expect(of(events, 'engine-changed')).toEqual([]);
  const engine = of(events, 'rank-started')[0]?.engine;
  expect(of(events, 'serving')).toMatchObject([{ engine, answer: '204' }]);
  expect([code, endOf(events).outcome, stderr]).toEqual([0, 'serving', '']);
  // Nobody's work was touched but what the person of the story allows.
  const allowed = story.consents.map(({ holder }) => holder);
  const foreign = of(events, 'step-started').filter(({ kind }) => !OWN.includes(kind));
  for (const { title } of foreign)
    expect(
      allowed.some((holder) => title.includes(holder)),
      title,
    ).toBe(true);
  expect(foreign).toHaveLength(allowed.length);
}

describe('what an edit of what is wanted, or another look, mends', () => {
  it.concurrent.each(curedStories.map((story) => [story.name, story] as const))(
    '%s: is named with its lines, cured, proved, and serves with the engine that was asked for',
    async (name, story) => {
      const lab = await openLab(name);
      if (story.consents.length > 0) writeFileSync(lab.file('policy.yaml'), policyOf(story));
      const ended = await lab.run(['up', 'recipe.yaml', '--json']).finally(lab.down);
      holds(story, ended);
    },
    LIMIT,
  );
});
