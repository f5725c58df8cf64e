import { STAGES } from './finding.ts';
import type { GuardRecord } from './guard.ts';
import type { RankState } from './run-state.ts';
import { STAGE_WORDS } from './run-words.ts';
import { gib, gibNumber, list } from './units.ts';

const MEANS: Readonly<Record<GuardRecord['by'], string>> = {
  docker: 'docker kill',
  podman: 'podman kill',
  signal: 'a signal',
  sudo: 'sudo',
  none: 'nothing',
};

/** What a guard can do, or has done, as one clause: "guarded, stopped by docker kill under 3.0 GiB available". */
export function guardWords(guard: GuardRecord): string {
  const least = gib(guard.reserveBytes);
  switch (guard.state) {
    case 'guards': {
      const blind =
        guard.kernelLog === 'read' ? '' : '; what the driver reports is unknown: no kernel log to read';
      return `guarded, stopped by ${MEANS[guard.by]} under ${least} available${blind}`;
    }
    case 'unguarded':
      return 'unguarded: neither its runtime, nor a signal, nor sudo would stop it';
    case 'blind':
      return 'unguarded: the memory of its node cannot be read';
    case 'stopping':
    case 'stopped':
      return `stopped by its guard ${WHY[guard.why ?? 'reserve'](gib(guard.curve.at(-1)?.bytes ?? guard.lowestBytes), least)}`;
    case 'failed':
      return 'its guard could not stop it';
  }
}

const WHY: Readonly<Record<NonNullable<GuardRecord['why']>, (now: string, least: string) => string>> = {
  reserve: (now, least) => `with ${now} available, under ${least}`,
  falling: (now) => `with ${now} available, which would have been gone within two seconds`,
  driver: (now) => `with ${now} available and falling, as the driver reported NV_ERR_NO_MEMORY`,
};

/** Whether a rank has nobody who would stop it; a rank without any record never had a guard. */
function isUnguarded(guard: GuardRecord | undefined): boolean {
  return guard === undefined || ['unguarded', 'blind', 'failed'].includes(guard.state);
}

/**
 * "24.7 and 23.9 GiB available; lowest 19.8 on spark-b during graphs", then who is unguarded. Empty where no guard
 * told anything.
 */
export function memorySentences(ranks: readonly RankState[]): readonly string[] {
  const seen = ranks.flatMap(({ guard, ...rank }) => (guard === undefined ? [] : [{ ...rank, guard }]));
  const lowest = seen.toSorted((a, b) => a.guard.lowestBytes - b.guard.lowestBytes)[0];
  if (lowest === undefined) return [];
  const now = seen.flatMap(({ guard }) =>
    guard.availableBytes === undefined ? [] : [gibNumber(guard.availableBytes)],
  );
  const during = stageAt(lowest, lowest.guard.lowestAt);
  const least = `lowest ${gibNumber(lowest.guard.lowestBytes)}${now.length > 0 ? '' : ' GiB available'} on ${lowest.node}${during === undefined ? '' : ` during ${during}`}`;
  return [
    now.length > 0 ? `${list(now)} GiB available; ${least}` : least,
    ...ranks.flatMap(({ node, guard }) =>
      isUnguarded(guard)
        ? [`${node}: ${guard === undefined ? 'its guard has told nothing yet' : guardWords(guard)}`]
        : [],
    ),
  ];
}

/** The stage that the rank was in then, by what it entered last before. */
function stageAt({ entered }: Pick<RankState, 'entered'>, at: string | undefined): string | undefined {
  if (at === undefined) return undefined;
  const stage = STAGES.findLast((one) => {
    const since = entered[one];
    return since !== undefined && Date.parse(since) <= Date.parse(at) + 1000;
  });
  return stage === undefined ? undefined : STAGE_WORDS[stage];
}
