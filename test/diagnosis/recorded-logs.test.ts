import { describe, expect, it } from 'vitest';
import { diagnose, failed } from '../../src/diagnosis/diagnose.ts';
import { evidenceOf, nodeOf, readCases } from './cases.ts';

const cases = readCases();
const failures = cases.filter((one) => one.cause !== 'no-fault');

describe('a recorded failure', () => {
  it.each(failures.filter((one) => !one.unrecognised).map((one) => [one.name, one] as const))(
    '%s gives its cause and its node',
    (_name, one) => {
      const evidence = evidenceOf(one);
      expect(failed(evidence)).toBe(true);
      const finding = diagnose(evidence, { final: true });
      expect(finding.cause).toBe(one.cause);
      if (one.bothAdvertise) return;
      if (one.atFault === 'head' || one.atFault === 'worker') expect(finding.node).toBe(nodeOf(one.atFault));
      if (one.atFault === 'launcher') expect(finding.node).toBeUndefined();
    },
  );

  it.each(failures.filter((one) => one.unrecognised).map((one) => [one.name, one] as const))(
    '%s, which no rule knows yet, is called unknown and not something else',
    (_name, one) => {
      const finding = diagnose(evidenceOf(one), { final: true });
      expect(['unknown', one.cause]).toContain(finding.cause);
    },
  );

  it.each(failures.map((one) => [one.name, one] as const))(
    '%s is told in plain words with quotes that stand in its logs',
    (_name, one) => {
      const evidence = evidenceOf(one);
      const finding = diagnose(evidence, { final: true });
      expect(finding.title.length).toBeLessThan(160);
      expect(finding.title).not.toMatch(/\n|undefined|NaN/);
      expect(finding.why).not.toMatch(/undefined|NaN/);
      expect(finding.advice.join('\n')).not.toMatch(/undefined|NaN/);
      expect(finding.advice.length).toBeGreaterThan(0);
      expect(finding.quotes.length).toBeGreaterThan(0);
      for (const quote of finding.quotes) {
        const rank = evidence.ranks.find((each) => each.rank === quote.rank);
        expect(rank?.node).toBe(quote.node);
        expect(rank?.lines.find((line) => line.line === quote.line)?.text).toBe(quote.text);
      }
      if (finding.node !== undefined && finding.cause !== 'unknown')
        expect(finding.title + finding.why).toContain(finding.node);
    },
  );
});

describe('a healthy log', () => {
  const healthy = cases.filter((one) => one.cause === 'no-fault');

  it('is there for both engines', () => {
    expect(new Set(healthy.map((one) => one.engine))).toEqual(new Set(['sglang', 'vllm']));
  });

  it.each(healthy.map((one) => [one.name, one] as const))('%s has not failed', (_name, one) => {
    expect(failed(evidenceOf({ ...one, silence: 1000 }))).toBe(false);
  });

  it.each(healthy.filter((one) => one.name !== 'healthy-gloo-pair').map((one) => [one.name, one] as const))(
    '%s has not failed at any line on its way, nor long after',
    (_name, one) => {
      const whole = evidenceOf({ ...one, silence: 48 * 3_600_000 });
      expect(failed(whole)).toBe(false);
      const longest = Math.max(...whole.ranks.map((rank) => rank.lines.length));
      for (let count = 1; count <= longest; count++) {
        const logs = Object.fromEntries(
          whole.ranks.map((rank) => [rank.role, rank.lines.slice(0, count).map((line) => line.text)]),
        );
        expect(failed(evidenceOf({ engine: one.engine, logs, silence: 1000 })), `after ${count} lines`).toBe(
          false,
        );
      }
    },
  );
});
