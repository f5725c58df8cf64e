import type { Blocker } from '../../domain/plan.ts';
import { list, sentences } from '../../domain/units.ts';
import { UserError } from '../../domain/user-error.ts';
import { nextEngine } from './next-engine.ts';
import { again, type BringUp, ended, type Move, type Progress } from './progress.ts';
import { tellFinding } from './tell-finding.ts';

/**
 * What no step can mend: told as findings. It ends the run, unless it lies with this engine alone and another is left.
 * Throws a UserError where a rank that serves would have to be stopped and `--replace` was not given.
 */
export function blocked(up: BringUp, progress: Progress, blockers: readonly Blocker[]): Move {
  for (const { cause, node, title, why = '', advice } of blockers)
    tellFinding(up, progress.attempt + 1, {
      cause,
      node,
      title,
      why: `${cause.startsWith('insufficient') ? notBack(progress, node) : ''}${why}`,
      advice,
    });
  const [first] = blockers;
  if (first === undefined) throw new Error('a blocked plan has no blocker');
  // What lies with one engine's image or program does not lie with the next one's.
  if (blockers.every((blocker) => blocker.engineOnly === true)) {
    const changed = nextEngine(up, progress, first.title);
    if (changed !== undefined) return again(changed);
  }
  if (first.cause === 'needs-replace')
    throw new UserError('needs-replace', first.title, first.advice[0] ?? 'firstlight up --replace');
  return ended({
    outcome: 'not-serving',
    why: sentences(first.title, first.advice[0]),
    exit: first.userError ? 2 : 1,
  });
}

/** What was stopped on the node in this run, and left its memory short all the same. */
function notBack({ stopped, short }: Progress, node: string | undefined): string {
  const text = node === undefined ? undefined : short.get(node);
  if (text === undefined) return '';
  const names = [...stopped.keys()].flatMap((key) => {
    const [on, , ...name] = key.split(' ');
    return on === node ? [name.join(' ')] : [];
  });
  return `${names.length === 0 ? 'What was in the way' : list(names)} ${names.length > 1 ? 'were' : 'was'} stopped, and not all of the memory came back: ${text}. `;
}
