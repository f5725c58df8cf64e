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

/** What a log may look like without saying anything else: DOS line ends, colours, garbage before and between. */
const DRESSES: readonly ((lines: readonly string[]) => readonly string[])[] = [
  (lines) => lines.map((line) => `${line}\r`),
  (lines) => lines.map((line) => (line === '' ? line : `\u001b[36m${line}\u001b[0m`)),
  (lines) => ['\u0000\u0001\ufffd\u0007', ...lines.flatMap((line) => [line, `${'.'.repeat(9000)}\u0000`])],
];

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
    for (const dress of DRESSES) {
      const dressed = Object.fromEntries(Object.entries(one.logs).map(([name, all]) => [name, dress(all)]));
      const again = answer(dressed);
      expect([again.cause, again.atFault]).toEqual([said.cause, said.atFault]);
    }
    const words = [said.finding?.title, said.finding?.why, ...(said.finding?.advice ?? [])].join('\n');
    expect(words).not.toMatch(/undefined|NaN|\[object/);
  });
}
