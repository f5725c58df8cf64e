import { describe, expect, it } from 'vitest';
import { causeOf } from '../../src/knowledge/causes.ts';
import { remedies } from '../../src/knowledge/remedies/index.ts';
import { stories } from '../../src/lab/stories/index.ts';

/** Curable causes of which no story tells, and why none can. */
const WITHOUT: Readonly<Record<string, string>> = {
  'rdma-underused-one-half-or-small-mtu':
    'it serves, only slower, so that no attempt fails: diagnose names it beside a measured bandwidth, up does not',
  'lossless-ethernet-config-lost':
    'a rank’s log has the unanswered packets alone, which up takes for a wrong GID and cures with TCP too; that packets were lost stands in the counters of NICs and switch, which diagnose reads where they are given',
};

/** Causes that a remedy exists for, each with its remedies. */
const curable = new Map<string, readonly string[]>();
for (const { name, causes } of remedies)
  for (const cause of causes) curable.set(cause, [...(curable.get(cause) ?? []), name]);

/** Causes that a story names, cures and proves, each with the stories that do. */
const told = new Map<string, readonly string[]>();
for (const { name, expect: ends } of stories)
  for (const { type, cause } of ends.events)
    if (type === 'remedy-proved' && cause !== undefined) told.set(cause, [...(told.get(cause) ?? []), name]);

/** Cause, remedies, stories: one line each, in the order of the remedies. */
const table = [...curable].map(([cause, cures]) => [
  cause,
  cures.join(' '),
  (told.get(cause) ?? []).join(' '),
]);

describe('every cause that a remedy cures is broken, named, cured and proved in the lab', () => {
  it.each(table)('%s, by %s: %s', (cause, _, by) => {
    expect(causeOf(cause)).toBeDefined();
    if (cause in WITHOUT) expect(by, 'has a story now: take it off the list').toBe('');
    else expect(by, 'needs a story in src/lab/stories').not.toBe('');
  });

  it('says of nothing else that it has no story', () => {
    expect(Object.keys(WITHOUT).filter((cause) => !curable.has(cause))).toEqual([]);
  });

  it('proves in a story nothing that no remedy cures', () => {
    expect([...told.keys()].filter((cause) => !curable.has(cause))).toEqual([]);
  });
});
