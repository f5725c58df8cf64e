import type { Event, Outcome, Owed } from './event.ts';
import type { NodeFacts } from './facts.ts';
import type { Finding, Stage } from './finding.ts';
import type { GuardRecord } from './guard.ts';
import type { Plan } from './plan.ts';
import { moveRanks, type RankMove } from './rank-moves.ts';
import type { EngineName, RecipeEdit } from './recipe.ts';

export type RankState = {
  readonly rank: number;
  readonly node: string;
  readonly role: 'head' | 'worker';
  readonly stage: Stage;
  readonly percent: number | undefined;
  /** When each stage was entered, ISO. */
  readonly entered: Readonly<Partial<Record<Stage, string>>>;
  /** When its stage or percent last moved, ISO. */
  readonly movedAt: string;
  /** Seconds without progress, by stage, after which that is a finding; absent where the run did not say. */
  readonly limits: Readonly<Partial<Record<Stage, number>>> | undefined;
  readonly ended:
    | { readonly code: number | undefined; readonly requested: boolean; readonly at: string }
    | undefined;
  /** What the rank's guard told last, where there is one. */
  readonly guard?: GuardRecord | undefined;
};

export type RemedyState = {
  readonly remedy: string;
  readonly cause: string;
  readonly node: string | undefined;
  readonly title: string;
  readonly edits: readonly RecipeEdit[];
  readonly state: 'applied' | 'proved' | 'failed';
  readonly why: string;
};

export type AttemptState = {
  readonly attempt: number;
  readonly engine: EngineName;
  readonly startedAt: string;
  readonly ranks: readonly RankState[];
  readonly finding: Finding | undefined;
  /** The remedy that followed this attempt's finding. */
  readonly remedy: RemedyState | undefined;
};

export type StepState = {
  readonly id: string;
  readonly node: string;
  readonly title: string;
  readonly phase: string;
  readonly kind: string;
  readonly undo: 'command' | 'irreversible' | 'nothing';
  readonly startedAt: string;
  readonly result: 'running' | 'done' | 'failed' | 'skipped' | 'lost';
  readonly text: string;
  readonly milliseconds: number | undefined;
};

export type RunPhase =
  | 'starting'
  | 'looking'
  | 'planned'
  | 'waiting'
  | 'clearing'
  | 'launching'
  | 'following'
  | 'proving'
  | 'ended';

/** All that the faces show of a run: a fold over its events, nothing else. */
export type RunState = {
  readonly run: string;
  readonly operation: 'up' | 'down' | 'restore' | 'adopt' | undefined;
  readonly cluster: string;
  readonly recipe: string | undefined;
  readonly nodes: readonly string[];
  readonly phase: RunPhase;
  readonly startedAt: string | undefined;
  readonly lastAt: string | undefined;
  readonly lastSeq: number;
  readonly facts: readonly NodeFacts[];
  readonly lookedAt: string | undefined;
  readonly plan: Plan | undefined;
  readonly asked: Extract<Event, { type: 'consent-asked' }> | undefined;
  readonly consented: readonly string[];
  readonly refused: readonly string[];
  readonly steps: readonly StepState[];
  readonly attempts: readonly AttemptState[];
  /** The last finding, also one made before anything was launched. */
  readonly finding: Finding | undefined;
  readonly serving: Extract<Event, { type: 'serving' }> | undefined;
  readonly measured: Extract<Event, { type: 'measured' }> | undefined;
  readonly notes: readonly Extract<Event, { type: 'note' }>[];
  readonly ended:
    | {
        readonly outcome: Outcome;
        readonly why: string;
        readonly exit: number;
        readonly at: string;
        readonly owed: readonly Owed[];
        readonly givesBack?: true | undefined;
      }
    | undefined;
};

export const blank: RunState = {
  run: '',
  operation: undefined,
  cluster: '',
  recipe: undefined,
  nodes: [],
  phase: 'starting',
  startedAt: undefined,
  lastAt: undefined,
  lastSeq: 0,
  facts: [],
  lookedAt: undefined,
  plan: undefined,
  asked: undefined,
  consented: [],
  refused: [],
  steps: [],
  attempts: [],
  finding: undefined,
  serving: undefined,
  measured: undefined,
  notes: [],
  ended: undefined,
};

/** One event onto the state. Types it does not know only move the clock. */
export function fold(state: RunState, event: Event): RunState {
  const next = { ...state, lastAt: event.at, lastSeq: event.seq };
  switch (event.type) {
    case 'run-started':
      return {
        ...next,
        run: event.run,
        operation: event.operation,
        cluster: event.cluster,
        recipe: event.recipe,
        nodes: event.nodes,
        startedAt: event.at,
        phase: 'looking',
      };
    case 'looked':
      return { ...next, facts: event.facts, lookedAt: event.at, phase: 'looking' };
    case 'planned':
      return { ...next, plan: event.plan, phase: 'planned' };
    case 'consent-asked':
      return { ...next, asked: event, phase: 'waiting' };
    case 'consent-given': {
      const consented = [...state.consented, ...event.steps];
      const refused = [...state.refused, ...event.refused];
      // Somebody may allow one by one: the rest is asked still. A refusal ends the asking.
      const isLast = event.refused.length > 0 || event.steps.length === 0;
      const open = state.asked?.steps.filter(({ id }) => !consented.includes(id)) ?? [];
      const asked =
        state.asked === undefined || isLast || open.length === 0
          ? undefined
          : { ...state.asked, steps: open };
      return { ...next, asked, consented, refused, phase: asked === undefined ? 'clearing' : 'waiting' };
    }
    case 'step-started':
      return {
        ...next,
        phase: event.phase === 'launch' ? 'launching' : 'clearing',
        steps: [
          ...state.steps,
          {
            id: event.id,
            node: event.node,
            title: event.title,
            phase: event.phase,
            kind: event.kind,
            undo: event.undo,
            startedAt: event.at,
            result: 'running',
            text: '',
            milliseconds: undefined,
          },
        ],
      };
    case 'step-ended':
      return { ...next, steps: endStep(state.steps, event) };
    case 'rank-started':
      return { ...next, phase: 'following', attempts: startRank(state.attempts, event) };
    case 'rank-stage':
      return { ...next, attempts: moveRanks(state.attempts, [event]) };
    case 'rank-ended':
      return {
        ...next,
        attempts: eachRank(state.attempts, event, (rank) => ({
          ...rank,
          ended: { code: event.code, requested: event.requested, at: event.at },
        })),
      };
    case 'guard':
      return {
        ...next,
        attempts: eachRank(state.attempts, event, (rank) => ({ ...rank, guard: event.guard })),
      };
    case 'finding':
      return {
        ...next,
        finding: event,
        attempts: onAttempt(state.attempts, event.attempt, (attempt) => ({ ...attempt, finding: event })),
      };
    case 'remedy-applied':
    case 'remedy-proved':
    case 'remedy-failed': {
      const { remedy, cause, node, title, edits, why } = event;
      const was =
        event.type === 'remedy-applied' ? 'applied' : event.type === 'remedy-proved' ? 'proved' : 'failed';
      return {
        ...next,
        attempts: onAttempt(state.attempts, event.attempt, (attempt) => ({
          ...attempt,
          remedy: { remedy, cause, node, title, edits, state: was, why },
        })),
      };
    }
    case 'engine-changed':
      return next;
    case 'serving':
      return { ...next, serving: event, phase: 'proving' };
    case 'measured':
      return { ...next, measured: event };
    case 'note':
      return { ...next, notes: [...state.notes, event] };
    case 'run-ended':
      return {
        ...next,
        phase: 'ended',
        asked: undefined,
        ended: {
          outcome: event.outcome,
          why: event.why,
          exit: event.exit,
          at: event.at,
          owed: event.owed,
          givesBack: event.givesBack,
        },
      };
    default:
      return next;
  }
}

/** Many events onto the state: the same as one after the other, in less time. */
export function foldAll(events: Iterable<Event>, from: RunState = blank): RunState {
  let state = from;
  let moves: RankMove[] = [];
  for (const event of events) {
    if (event.type === 'rank-stage') moves.push(event);
    else {
      state = fold(foldMoves(state, moves), event);
      moves = [];
    }
  }
  return foldMoves(state, moves);
}

function foldMoves(state: RunState, moves: readonly RankMove[]): RunState {
  const last = moves.at(-1);
  if (last === undefined) return state;
  return { ...state, lastAt: last.at, lastSeq: last.seq, attempts: moveRanks(state.attempts, moves) };
}

function endStep(
  steps: readonly StepState[],
  event: Extract<Event, { type: 'step-ended' }>,
): readonly StepState[] {
  const ended = {
    id: event.id,
    node: event.node,
    title: event.title,
    kind: event.kind,
    result: event.result,
    text: event.text,
    milliseconds: event.milliseconds,
  };
  const at = steps.findLastIndex(
    (step) => step.id === event.id && step.node === event.node && step.result === 'running',
  );
  return at === -1
    ? [...steps, { ...ended, phase: '', undo: 'nothing', startedAt: event.at }]
    : steps.map((step, index) => (index === at ? { ...step, ...ended } : step));
}

function startRank(
  attempts: readonly AttemptState[],
  event: Extract<Event, { type: 'rank-started' }>,
): readonly AttemptState[] {
  const rank: RankState = {
    rank: event.rank,
    node: event.node,
    role: event.role,
    stage: 'start',
    percent: undefined,
    entered: { start: event.at },
    movedAt: event.at,
    limits: event.limits,
    ended: undefined,
  };
  if (!attempts.some((attempt) => attempt.attempt === event.attempt)) {
    return [
      ...attempts,
      {
        attempt: event.attempt,
        engine: event.engine,
        startedAt: event.at,
        ranks: [rank],
        finding: undefined,
        remedy: undefined,
      },
    ];
  }
  return onAttempt(attempts, event.attempt, (attempt) => ({
    ...attempt,
    ranks: [...attempt.ranks.filter((other) => other.rank !== rank.rank), rank].sort(
      (a, b) => a.rank - b.rank,
    ),
  }));
}

function onAttempt(
  attempts: readonly AttemptState[],
  number: number,
  change: (attempt: AttemptState) => AttemptState,
): readonly AttemptState[] {
  return attempts.map((attempt) => (attempt.attempt === number ? change(attempt) : attempt));
}

function eachRank(
  attempts: readonly AttemptState[],
  event: { readonly attempt: number; readonly rank: number },
  change: (rank: RankState) => RankState,
): readonly AttemptState[] {
  return onAttempt(attempts, event.attempt, (attempt) => ({
    ...attempt,
    ranks: attempt.ranks.map((rank) => (rank.rank === event.rank ? change(rank) : rank)),
  }));
}
