import { expect, it } from 'vitest';
import { FAST, liveThrough, of } from './lab.ts';

it('lives through engine-fallback-ray: two engines cannot be had, and vLLM over Ray serves', async () => {
  const told = await liveThrough('engine-fallback-ray', { env: FAST });
  expect(told.code, told.stderr).toBe(0);
  expect(of(told.events, 'run-ended').map((end) => end.outcome)).toEqual([
    'serving',
    'nothing-to-do',
    'stopped',
    'restored',
  ]);
  expect(of(told.events, 'engine-changed')).toMatchObject([
    { from: 'sglang', to: 'vllm' },
    { from: 'vllm', to: 'vllm-ray' },
  ]);
  // SGLang's image is for another processor, so nothing of it was ever started.
  expect(new Set(of(told.events, 'rank-started').map(({ engine }) => engine))).toEqual(
    new Set(['vllm', 'vllm-ray']),
  );
  const [serving] = of(told.events, 'serving');
  expect(serving).toMatchObject({ engine: 'vllm-ray', head: 'spark-a', answer: '204', network: 'rdma' });
  // The worker's own log holds its Ray alone; how far its rank is stands in the head's.
  const worker = of(told.events, 'rank-stage').filter(({ run, rank }) => run === serving?.run && rank === 1);
  expect(worker.every(({ node }) => node === 'spark-b')).toBe(true);
  expect(worker.map(({ stage }) => stage)).toEqual(expect.arrayContaining(['rendezvous', 'weights', 'kv']));
}, 180_000);
