import { expect, it } from 'vitest';
import { known } from '../../src/domain/facts.ts';
import type { LookRequest } from '../../src/domain/probe.ts';
import { assembleFacts, probesFor } from '../../src/knowledge/probes/index.ts';

const request: LookRequest = { memoryOnly: true, modelPath: undefined, images: [], programs: [], peers: [] };

it('a look at memory asks for root only where no look before has: each question is a line in the log of the host', () => {
  const names = (one: LookRequest): readonly string[] => probesFor(one).map(({ name }) => name);
  expect(names(request)).toContain('sudo');
  const knowing: LookRequest = { ...request, sudo: known('free') };
  expect(names(knowing)).toEqual(names(request).filter((name) => name !== 'sudo'));
  const facts = assembleFacts({
    node: 'spark-a',
    at: '2026-11-29T10:00:00.000Z',
    milliseconds: 1,
    outputs: new Map(),
    request: knowing,
    clockOffsetSeconds: known(0),
  });
  expect(facts.sudo).toEqual(known('free'));
});
