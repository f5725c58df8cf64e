import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { familyOf } from '../../src/knowledge/causes.ts';
import { answerTo, type CorpusCase, readCorpus, readHealthy } from './corpus.ts';
import { type Mutation, mutations, type Texts } from './mutate.ts';
import { score } from './scoring.ts';

/** A wrong answer with at least this much confidence is worse than none. */
const CONFIDENT = 0.8;

const known = score(readCorpus())
  .filter(({ cause, node }) => cause && node)
  .map(({ one }) => one);

describe('a failure that is recognised', () => {
  it('is recognised whatever hosts, people and terminals make of its logs', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...known),
        fc.uniqueArray(fc.constantFrom(...mutations), {
          minLength: 1,
          maxLength: 2,
          selector: ({ name }) => name,
        }),
        fc.nat(),
        (one, changes, seed) => {
          const wrong = failureOf(one, changes, seed);
          expect(wrong).toBe('');
        },
      ),
      { numRuns: 400, seed: 20_261_129 },
    );
  });

  it.each(mutations.map((mutation) => [mutation.name, mutation] as const))('with %s', (_name, mutation) => {
    expect(known.map((one) => failureOf(one, [mutation], 7)).filter((wrong) => wrong !== '')).toEqual([]);
  });
});

describe('logs that are called by their nodes', () => {
  const NAMES: Readonly<Record<string, string>> = {
    head: 'gx10-7.example',
    worker: 'gx10-9.example',
    worker2: 'gx10-11.example',
  };

  it('give the same answer, with the node by its name', () => {
    const wrong = known.flatMap((one) => {
      const texts = Object.fromEntries(
        Object.keys(one.texts).map((name) => [NAMES[name] ?? name, textOf(one, name)]),
      );
      // Of a worker's log alone nothing says that it is a worker's.
      if (!('head' in one.texts)) return [];
      const said = answerTo(texts);
      const place = NAMES[one.atFault] ?? one.atFault;
      // A node without a log is still called by its role.
      const fits = said.cause === one.cause && (said.atFault === place || said.atFault === one.atFault);
      return fits ? [] : [`${one.name}: ${said.cause} @${said.atFault}`];
    });
    expect(wrong).toEqual([]);
  });
});

describe('two failures at once', () => {
  it('are one of the two, or unknown', () => {
    fc.assert(
      fc.property(fc.constantFrom(...known), fc.constantFrom(...known), (one, other) => {
        const texts = Object.fromEntries(
          [...new Set([...Object.keys(one.texts), ...Object.keys(other.texts)])].map((name) => [
            name,
            `${textOf(one, name)}${textOf(other, name)}`,
          ]),
        );
        const said = answerTo(texts);
        const fits = [one.cause, other.cause, 'unknown'].includes(said.cause) || said.confidence < CONFIDENT;
        expect(fits ? '' : `${one.name} + ${other.name}: ${said.cause}`).toBe('');
      }),
      { numRuns: 200, seed: 20_261_129 },
    );
  });
});

describe('a healthy job', () => {
  const benign = mutations.filter(({ keeps }) => keeps === 'all');

  it.each(readHealthy())('%s stays one', (_name, logs) => {
    const texts = Object.fromEntries(
      Object.entries(logs).map(([name, bytes]) => [name, bytes.toString('utf8')]),
    );
    for (const mutation of benign)
      expect(`${mutation.name}: ${answerTo(mutation.apply(texts, draw(7))).cause}`).toBe(
        `${mutation.name}: no-fault`,
      );
  });
});

/** What is wrong with the answer to a case with these changes; empty where it holds. */
function failureOf(one: CorpusCase, changes: readonly Mutation[], seed: number): string {
  const texts = changes.reduce((before, change) => change.apply(before, draw(seed)), textsOf(one));
  const said = answerTo(texts);
  const keeps = changes.some((change) => change.keeps === 'honesty')
    ? 'honesty'
    : changes.some((change) => change.keeps === 'cause')
      ? 'cause'
      : 'all';
  const about = `${one.name} with ${changes.map(({ name }) => name).join(' and ')}: ${said.cause} @${said.atFault} ${said.confidence}`;
  if (keeps === 'honesty') {
    const close = said.cause === one.cause || said.cause === 'unknown' || said.family === familyOf(one.cause);
    return close || said.confidence < CONFIDENT ? '' : about;
  }
  if (said.cause !== one.cause) return about;
  return keeps === 'cause' || said.atFault === one.atFault ? '' : about;
}

function textsOf(one: CorpusCase): Texts {
  return Object.fromEntries(Object.keys(one.texts).map((name) => [name, textOf(one, name)]));
}

function textOf(one: CorpusCase, name: string): string {
  return one.texts[name]?.toString('utf8') ?? '';
}

/** Numbers that look drawn, the same for the same seed. */
function draw(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}
