import type { Unreachable } from '../domain/command.ts';
import { classify, failureOf } from './classify.ts';
import type { Connection, ConnectionOptions } from './connection.ts';
import { ALONE, askJump, NO_KEY } from './key-trouble.ts';
import { firstKnown } from './limit.ts';
import { type Place, placeOf } from './place.ts';
import { runLocal } from './ssh-child.ts';

/** What another client on the jump host may find out for us. */
const DIALLING: ReadonlySet<string> = new Set([
  'no-route',
  'refused',
  'timeout-connect',
  'timeout-banner',
  'name-unknown',
]);

/** Who is so out of reach answers nothing over a connection that is open either. */
export const ANSWERS_NOTHING: ReadonlySet<string> = new Set([
  'no-route',
  'timeout-connect',
  'jump-unreachable',
]);
/**
 * Tries the way to a host beside any open connection: what it meets; undefined where nothing stops it, or where that
 * could not be found out. A host behind a jump host is asked by that one, while the jump host itself is knocked at.
 */
export async function knock(
  connection: Connection,
  options: ConnectionOptions,
  signal: AbortSignal,
): Promise<Unreachable | undefined> {
  const { via } = connection;
  const place = await placeOf(connection, signal);
  if (via === undefined) {
    const timeoutMs = (options.connectTimeoutSeconds + 2) * 1000;
    const { stderr } = await runLocal(connection.argv([...ALONE, ...NO_KEY, '-n']).concat('true'), {
      signal,
      timeoutMs,
    });
    const { why } = classify(stderr, '');
    return ANSWERS_NOTHING.has(why) ? failureOf({ why, atJump: false }, place, stderr) : undefined;
  }
  const answered = new AbortController();
  const both = AbortSignal.any([signal, answered.signal]);
  const beyond = async (): Promise<{ readonly met: Unreachable | undefined } | undefined> => {
    const asked = await via.asks(both, () => askJump(via, place, 'no-key', both));
    if (asked === undefined) return undefined;
    const { why } = classify(asked.text, '');
    return { met: DIALLING.has(why) ? failureOf({ why, atJump: true }, place, asked.text) : undefined };
  };
  const before = async (): Promise<{ readonly met: Unreachable } | undefined> => {
    const broken = await via.gone(both);
    return broken && { met: jumpBroken(broken, place) };
  };
  try {
    return (await firstKnown([beyond(), before()]))?.met;
  } finally {
    answered.abort();
  }
}

/** The failure of a host whose jump host failed so. */
export function jumpBroken(broken: Unreachable, place: Place): Unreachable {
  const failure = failureOf({ why: 'jump-unreachable', atJump: true }, place, broken.text);
  return {
    ...failure,
    sentence: `${failure.sentence} ${broken.sentence}`,
    remedy: broken.remedy,
    ...(broken.hostKey === undefined ? {} : { hostKey: broken.hostKey }),
  };
}
