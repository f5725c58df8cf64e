import { expect, it } from 'vitest';
import { answerTo } from '../diagnosis/corpus.ts';

/** One made-up log or pair of logs: what it is, the answer, and the lines by log. */
export type Told = {
  readonly as: string;
  readonly cause: string;
  readonly at: string;
  readonly logs: Readonly<Record<string, readonly string[]>>;
};

/** The answer to lines by log, as `diagnose --log` gives it. */
export function answer(logs: Told['logs']): ReturnType<typeof answerTo> {
  return answerTo(
    Object.fromEntries(Object.entries(logs).map(([name, lines]) => [name, `${lines.join('\n')}\n`])),
  );
}

/** A test for each: the cause, where the fault lies, and that what is quoted stands in the logs. */
export function tells(cases: readonly Told[]): void {
  it.each(cases.map((one) => [`${one.cause}: ${one.as}`, one] as const))('%s', (_name, one) => {
    const said = answer(one.logs);
    expect({ cause: said.cause, at: said.atFault, title: said.finding?.title }).toMatchObject({
      cause: one.cause,
      at: one.at,
    });
    const lines = Object.values(one.logs).flat();
    for (const quote of said.finding?.quotes ?? []) expect(lines).toContain(quote.text);
    const words = [said.finding?.title, said.finding?.why, ...(said.finding?.advice ?? [])].join('\n');
    expect(words).not.toMatch(/undefined|NaN|\[object/);
  });
}
