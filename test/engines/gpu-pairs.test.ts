import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { evidenceOfTexts } from '../../src/diagnosis/offline.ts';
import { networkInUse } from '../../src/operations/network-in-use.ts';
import { answerTo } from '../diagnosis/corpus.ts';

// Both ranks of jobs that served on two H200, as firstlight kept their logs; see test/samples/SOURCES.md.

const PAIRS = new URL('../samples/engines/gpu/', import.meta.url);

const pairs = readdirSync(PAIRS).map((name) => {
  const read = (role: string) => readFileSync(new URL(`${name}/${role}.log`, PAIRS));
  return [name, { head: read('head'), worker: read('worker') }] as const;
});

describe('a pair that served on real GPUs', () => {
  // Their interfaces bear a Spark's names and had no RDMA beneath: that, and no more, is there to be told.
  it.each(pairs)('%s lacks RDMA by its logs alone, and nothing else', (_name, logs) => {
    expect(answerTo(logs)).toMatchObject({ cause: 'rdma-not-available-in-container', atFault: 'both' });
  });

  it.each(pairs)('%s is seen to serve, over the network that NCCL names', (_name, logs) => {
    const evidence = evidenceOfTexts(logs);
    expect(evidence.ranks.find(({ role }) => role === 'head')).toMatchObject({ stage: 'serving' });
    expect(networkInUse(evidence, [])).toMatchObject({ kind: 'sockets', text: 'TCP sockets' });
  });
});
