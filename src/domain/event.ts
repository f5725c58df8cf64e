import type { NodeFacts } from './facts.ts';
import type { Finding, Stage } from './finding.ts';
import type { GuardRecord } from './guard.ts';
import type { MemoryMeasured } from './memory-measured.ts';
import type { Plan, StepTarget, Undo } from './plan.ts';
import type { EngineName, RecipeEdit } from './recipe.ts';

export type Outcome =
  | 'serving'
  | 'not-serving'
  | 'consent-needed'
  | 'cancelled'
  | 'stopped'
  | 'restored'
  | 'nothing-to-do'
  | 'adopted';

export type Owed = { readonly node: string; readonly id: string; readonly title: string };

/** Everything that happens. One union; the journal adds v, seq, run and at. */
export type EventBody =
  | {
      readonly type: 'run-started';
      readonly operation: 'up' | 'down' | 'restore' | 'adopt';
      readonly cluster: string;
      readonly recipe: string | undefined;
      readonly recipeDigest: string | undefined;
      readonly nodes: readonly string[];
      readonly controller: { readonly host: string; readonly user: string; readonly pid: number };
      readonly version: string;
    }
  | {
      readonly type: 'looked';
      readonly attempt: number;
      readonly milliseconds: number;
      readonly facts: readonly NodeFacts[];
    }
  | { readonly type: 'planned'; readonly attempt: number; readonly plan: Plan }
  | {
      readonly type: 'consent-asked';
      readonly plan: string;
      readonly steps: readonly {
        readonly id: string;
        readonly node: string;
        readonly title: string;
        readonly target: StepTarget;
        readonly undo: Undo;
        readonly how: string;
      }[];
    }
  | {
      readonly type: 'consent-given';
      readonly steps: readonly string[];
      readonly refused: readonly string[];
      readonly by: string;
    }
  | {
      readonly type: 'step-started';
      readonly id: string;
      readonly node: string;
      readonly title: string;
      readonly phase: string;
      readonly kind: string;
      readonly undo: Undo['kind'];
    }
  | {
      readonly type: 'step-ended';
      readonly id: string;
      readonly node: string;
      readonly title: string;
      readonly kind: string;
      readonly result: 'done' | 'failed' | 'skipped' | 'lost';
      readonly text: string;
      readonly milliseconds: number;
    }
  | {
      readonly type: 'rank-started';
      readonly attempt: number;
      readonly node: string;
      readonly rank: number;
      readonly role: 'head' | 'worker';
      readonly engine: EngineName;
      readonly name: string;
      readonly log: string;
      /** True when it ran already and is only followed. */
      readonly followed: boolean;
      /** Seconds without progress, by stage, after which that is a finding (the engine's `stallSeconds`). */
      readonly limits?: Readonly<Partial<Record<Stage, number>>>;
    }
  | {
      readonly type: 'rank-stage';
      readonly attempt: number;
      readonly node: string;
      readonly rank: number;
      readonly stage: Stage;
      /** 0 to 100 within the stage, where the engine tells. */
      readonly percent: number | undefined;
      readonly line: number;
    }
  | {
      readonly type: 'rank-ended';
      readonly attempt: number;
      readonly node: string;
      readonly rank: number;
      readonly code: number | undefined;
      readonly requested: boolean;
    }
  | {
      /** A rank's guard began, cannot do its work, or has stopped its rank. */
      readonly type: 'guard';
      readonly attempt: number;
      readonly node: string;
      readonly rank: number;
      readonly guard: GuardRecord;
    }
  | {
      /** What a rank took of memory: the plans to come use it. */
      readonly type: 'memory-measured';
      readonly attempt: number;
      readonly measured: MemoryMeasured;
    }
  | ({ readonly type: 'finding'; readonly attempt: number } & Finding)
  | {
      readonly type: 'remedy-applied' | 'remedy-proved' | 'remedy-failed';
      readonly attempt: number;
      readonly cause: string;
      readonly node: string | undefined;
      readonly remedy: string;
      readonly title: string;
      readonly edits: readonly RecipeEdit[];
      readonly why: string;
    }
  | {
      readonly type: 'engine-changed';
      readonly from: EngineName;
      readonly to: EngineName;
      readonly why: string;
    }
  | {
      readonly type: 'serving';
      readonly model: string;
      readonly engine: EngineName;
      readonly head: string;
      readonly port: number;
      readonly listen: string;
      readonly network: 'rdma' | 'sockets' | 'unknown';
      readonly networkText: string;
      readonly answer: string;
      readonly reasoning: string;
      readonly edits: readonly RecipeEdit[];
    }
  | {
      readonly type: 'measured';
      readonly firstTokenSeconds: number;
      readonly tokensPerSecond: number;
      readonly promptTokens: number;
      readonly outputTokens: number;
      readonly streams: number;
    }
  | {
      readonly type: 'note';
      readonly level: 'info' | 'warning';
      readonly node: string | undefined;
      readonly text: string;
    }
  | {
      readonly type: 'run-ended';
      readonly outcome: Outcome;
      /** One sentence: why it ended so, and what to do. */
      readonly why: string;
      readonly exit: 0 | 1 | 2 | 3;
      readonly owed: readonly Owed[];
      /** A run that gives back what is owed follows at once, and tells what it could not. */
      readonly givesBack?: true;
    };

export type EventHead = { readonly v: 1; readonly seq: number; readonly run: string; readonly at: string };
export type Event = EventHead & EventBody;
export type EventType = EventBody['type'];

/**
 * Reads one stored event; types this version does not know pass through and are ignored by the fold. Its head is
 * checked by hand: a run may have a hundred thousand. Throws a plain Error for what is none.
 */
export function parseEvent(json: string): Event {
  const value: unknown = JSON.parse(json);
  if (!hasHead(value)) throw new Error(`not an event of the journal: ${json.slice(0, 200)}`);
  return value;
}

/** A JSON list of events of the journal. Throws where one is none. */
export function parseEvents(json: string): readonly Event[] {
  const values: unknown = JSON.parse(json);
  if (!Array.isArray(values)) throw new Error('not a list of events');
  return values.map((value: unknown) => {
    if (!hasHead(value))
      throw new Error(`not an event of the journal: ${JSON.stringify(value).slice(0, 200)}`);
    return value;
  });
}

/** The journal is written by firstlight alone; its head is checked, its body is trusted. */
function hasHead(value: unknown): value is Event {
  if (typeof value !== 'object' || value === null) return false;
  const of = (key: string): unknown => Reflect.get(value, key);
  return (
    of('v') === 1 &&
    typeof of('seq') === 'number' &&
    ['run', 'at', 'type'].every((key) => typeof of(key) === 'string')
  );
}
