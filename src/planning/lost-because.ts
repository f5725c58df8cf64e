import type { Holder, Owner } from '../domain/facts.ts';

/** Why a bare process could not be started again, or undefined when it can. */
export function lostBecause(
  holder: Holder,
  owner: Extract<Owner, { kind: 'process' }>,
  rootAtHand: boolean,
): string | undefined {
  if (!owner.environmentReadable && !rootAtHand)
    return 'Its environment cannot be read without root, so it cannot be started again as it was.';
  // setproctitle writes over argv (VLLM::EngineCore, ray::IDLE): what stands there is no command.
  if (/^\S+::/.test(holder.command))
    return 'It has written over its own command line, so what it was started with is not known.';
  return undefined;
}
