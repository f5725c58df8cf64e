import { logsAfterwards } from '../../diagnosis/afterwards.ts';
import { diagnose } from '../../diagnosis/diagnose.ts';
import { treat as chooseRemedy } from '../../diagnosis/treat.ts';
import type { Evidence } from '../../domain/evidence.ts';
import type { Service } from '../../domain/plan.ts';
import { sentences } from '../../domain/units.ts';
import { look } from '../look.ts';
import { awaitMemory, memoryTargets } from '../memory-back.ts';
import { nextEngine } from './next-engine.ts';
import {
  again,
  type BringUp,
  ended,
  type Move,
  notServing,
  type Pending,
  type Progress,
  recipeNow,
} from './progress.ts';
import { stopAttempt } from './stop-attempt.ts';
import { tellRemedy } from './tell-remedy.ts';

/** How far back the kernel's log is read where no look came before. */
const SINCE_SECONDS = 3600;
/** No other engine, and no edit of the recipe, brings back a host, a cable or a card. */
const BROKEN: ReadonlySet<string> = new Set(['host-unreachable', 'fabric-link-down', 'gpu-hardware-fault']);
/** The kernel's clock is read by the second. */
const MARGIN_SECONDS = 2;

/**
 * What follows a failed attempt: the cause is named from its evidence, its ranks are stopped, and a remedy edits what
 * is wanted; where none is left the next engine is tried, and where none of these is left the run ends.
 */
export async function cure(
  up: BringUp,
  failed: Progress,
  services: readonly Service[],
  evidence: Evidence,
): Promise<Move> {
  const { world, recorder, nodes, treat = chooseRemedy } = up;
  const { attempt, engine, tried } = failed;
  const after = await look(world, nodes, evidence.recipe, { sinceSeconds: sinceLaunch(evidence) });
  const side = [...(evidence.side ?? []), ...logsAfterwards(after)];
  const whole: Evidence = { ...evidence, after, side };
  const finding = diagnose(whole, { final: true });
  recorder.emit({ type: 'finding', attempt, ...finding });
  const one = evidence.ranks.some(({ ended }) => ended !== undefined);
  await stopAttempt(up, attempt, services, `${one ? 'one rank ended' : finding.title}, so all are stopped`);
  await awaitMemory(world, recorder, memoryTargets(services, evidence.before, after));

  if (BROKEN.has(finding.cause))
    return ended(notServing(sentences(sentences(finding.title, finding.why), finding.advice[0])));
  const progress = takeBack(up, failed, finding.cause);
  const recipe = recipeNow(up, progress);
  const treatment = treat({ recipe, finding, facts: after, evidence: whole, tried, engine });
  if (treatment !== undefined) {
    const pending: Pending = { finding, treatment, attempt };
    tellRemedy(recorder, 'remedy-applied', pending, finding.title);
    return again({
      ...progress,
      pending,
      edits: [...progress.edits, ...treatment.edits],
      tried: [...tried, { engine, remedy: treatment.remedy, cause: treatment.cause }],
    });
  }
  const changed = nextEngine(up, progress, `${engine} has no remedy left: ${finding.title}`);
  return changed === undefined
    ? ended(notServing(sentences(finding.title, finding.advice[0])))
    : again(changed);
}

/** Seconds since the look before the launch: what a kernel said earlier is about something else. */
function sinceLaunch({ before, now }: Evidence): number {
  const looked = before.map(({ at }) => Date.parse(at)).filter(Number.isFinite);
  return looked.length === 0 ? SINCE_SECONDS : (now - Math.min(...looked)) / 1000 + MARGIN_SECONDS;
}

/** A remedy that did not help is taken back, so that it does not colour what comes next. */
function takeBack({ recorder }: BringUp, progress: Progress, cause: string): Progress {
  const { pending, edits } = progress;
  if (pending === undefined) return progress;
  const { finding, treatment } = pending;
  const why =
    cause === finding.cause ? 'the same cause again' : `it did not get past ${finding.stage ?? 'the launch'}`;
  tellRemedy(recorder, 'remedy-failed', pending, why);
  return {
    ...progress,
    pending: undefined,
    edits: edits.filter((edit) => !treatment.edits.includes(edit)),
  };
}
