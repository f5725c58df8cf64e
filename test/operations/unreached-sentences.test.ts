import { expect, test } from 'vitest';
import { unknown } from '../../src/domain/facts.ts';
import { unreachedSentences } from '../../src/operations/unreached-sentences.ts';
import { sparkFacts } from '../diagnosis/facts.ts';

test('who was not reached and whose records were not read are told, and nobody else', () => {
  const failure = {
    kind: 'unreachable',
    why: 'no-route',
    sentence: 'No route.',
    remedy: '',
    text: '',
  } as const;
  const why = unknown('reading our own records took too long');
  expect(
    unreachedSentences([
      sparkFacts({ node: 'spark-a' }),
      sparkFacts({ node: 'spark-b', more: { ranks: why, owed: why } }),
      { node: 'spark-c', at: '', reached: false, failure },
    ]),
  ).toEqual([
    'What firstlight left on spark-b is not known: reading our own records took too long.',
    'spark-c was not reached: No route.',
  ]);
});
