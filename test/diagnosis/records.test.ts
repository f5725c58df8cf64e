import { describe, expect, it } from 'vitest';
import { requiredLiterals } from '../../src/diagnosis/required-literals.ts';
import { netLiterals } from '../../src/diagnosis/scan-net.ts';
import { ENGINES } from '../../src/domain/recipe.ts';
import { engines } from '../../src/knowledge/engines/index.ts';
import { WEIGHTY, weight } from '../../src/knowledge/signatures/telling.ts';
import { answerTo, linesOf, readCorpus, readHealthy } from './corpus.ts';

const traceback = [
  '[2026-11-29 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):',
  '  File "/sgl/scheduler.py", line 3099, in run_scheduler_process',
  '    scheduler = Scheduler(server_args)',
  '                ^^^^^^^^^^^^^^^^^^^^^^',
  'quux.FrobnicationError: the flux is 12 over 7',
];

describe('an unknown failure', () => {
  it('is told by the exception and not by the frames of its traceback', () => {
    const said = answerTo({ head: traceback.join('\n') });
    expect(said.cause).toBe('unknown');
    expect(said.finding?.quotes.map(({ line }) => line)).toContain(5);
    expect(said.finding?.quotes.map(({ text }) => text).join()).not.toContain('^^^');
  });

  it('says how often a line came that repeats itself', () => {
    const again = Array.from({ length: 250 }, (_, at) => `quux.FrobnicationError: try ${at} of the flux`);
    const said = answerTo({ head: ['sglang begins', ...again].join('\n') });
    expect(said.finding?.why).toContain('line 2 of head came 250 times in a row');
    expect(said.finding?.quotes.filter(({ text }) => text.startsWith('quux')).length).toBeLessThan(5);
  });
});

describe('the literals that are looked for first', () => {
  const texts = [...readCorpus().map(({ texts: each }) => each), ...readHealthy().map(([, each]) => each)]
    .flatMap((each) => Object.values(each))
    .flatMap((bytes) => linesOf(bytes).map(({ text }) => text));

  it('are in every landmark and in every line with weight', () => {
    const literals = netLiterals();
    for (const text of texts)
      for (const name of ENGINES) {
        const engine = engines[name];
        if (engine.landmark(text) !== undefined)
          expect(
            literals.some((one) => text.includes(one)),
            text,
          ).toBe(true);
        if (weight(engine.message(text), text) > 0)
          expect(
            WEIGHTY.some((one) => text.includes(one)),
            text,
          ).toBe(true);
      }
  });

  it.each([
    [/^KV Cache (?:is allocated|VA upper bound)\./, ['KV Cache ']],
    [/vLLM (?:API )?server version \S+|^version \S+$/, ['server version ', 'version ']],
    [/^Capturing [^:]*:\s*(\d+)%\|/, ['Capturing ']],
    [/colou?r is (\d+)/, ['r is ']],
    [/^(?:a|b)$/, undefined],
    [/Caseless/i, undefined],
  ])('of %s are %s', (form, expected) => expect(requiredLiterals(form)).toEqual(expected));
});
