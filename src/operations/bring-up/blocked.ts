import { treat as chooseRemedy } from '../../diagnosis/treat.ts';
import type { NodeFacts } from '../../domain/facts.ts';
import type { Finding } from '../../domain/finding.ts';
import type { Blocker } from '../../domain/plan.ts';
import { list, sentences } from '../../domain/units.ts';
import { UserError } from '../../domain/user-error.ts';
import { nextEngine } from './next-engine.ts';
import { again, type BringUp, ended, type Move, type Progress, recipeNow } from './progress.ts';
import { tellFinding } from './tell-finding.ts';
import { tellRemedy } from './tell-remedy.ts';

/**
 * What no step can mend: told as findings. It ends the run, unless a remedy edits it out of the way, or it lies with this
 * engine alone and another is left. Throws a UserError where a rank that serves would have to be stopped and `--replace`
 * was not given.
 */
export function blocked(
  up: BringUp,
  progress: Progress,
  blockers: readonly Blocker[],
  facts: readonly NodeFacts[],
): Move {
  const findings = blockers.map(({ cause, node, title, why = '', advice, values = {} }) =>
    tellFinding(up, progress.attempt + 1, {
      cause,
      node,
      title,
      why: `${cause.startsWith('insufficient') ? notBack(progress, node) : ''}${why}`,
      advice,
      values,
    }),
  );
  const moved = movedPort(up, progress, findings, facts);
  if (moved !== undefined) return again(moved);
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

/** A rendezvous port that somebody has, and nothing else in the way: the remedy of a launch that met it, without one. */
function movedPort(
  { recorder, treat = chooseRemedy, ...up }: BringUp,
  progress: Progress,
  findings: readonly Finding[],
  facts: readonly NodeFacts[],
): Progress | undefined {
  const [finding] = findings;
  if (finding === undefined || findings.length > 1 || finding.values['kind'] !== 'rendezvous')
    return undefined;
  const { engine, tried, attempt } = progress;
  const recipe = recipeNow({ ...up, recorder }, progress);
  const evidence = {
    engine,
    recipe,
    services: [],
    ranks: [],
    before: facts,
    after: facts,
    now: up.world.clock.now(),
  };
  const treatment = treat({ recipe, finding, facts, evidence, tried, engine });
  if (treatment === undefined) return undefined;
  const pending = { finding, treatment, attempt };
  tellRemedy(recorder, 'remedy-applied', pending, finding.title);
  return {
    ...progress,
    pending,
    edits: [...progress.edits, ...treatment.edits],
    tried: [...tried, { engine, remedy: treatment.remedy, cause: treatment.cause }],
  };
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
