import { type Command, script } from '../domain/command.ts';
import { digestOf } from '../domain/digest.ts';
import { type Holder, type Owner, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Step, StepTarget, Undo } from '../domain/plan.ts';
import { age, list } from '../domain/units.ts';
import { needsRoot } from './allocate.ts';
import { lostBecause } from './lost-because.ts';
import {
  CONTAINER_RUNS_SH,
  SAME_PROCESS_SH,
  START_CONTAINER_SH,
  START_PROCESS_SH,
  START_UNIT_SH,
  STOP_CONTAINER_SH,
  STOP_PROCESS_SH,
  STOP_UNIT_SH,
  UNIT_RUNS_SH,
} from './step-scripts.ts';

type Input = {
  readonly holder: Holder;
  readonly facts: ReachedFacts;
  readonly why: string;
  readonly rootAtHand: boolean;
};

/** How one kind of holder is stopped and given back. */
type Means = Pick<Step, 'kind' | 'guard' | 'command' | 'undo'> & {
  readonly title: string;
  readonly what: string;
  readonly kind: 'stop-container' | 'stop-unit' | 'stop-process';
};

/**
 * The step that stops one foreign holder by the means its owner asks for, with guard and undo. Always with consent.
 * A plain Error for holders that have no such means (ranks, untouchable ones): callers choose among the others.
 */
export function stopStep(input: Input): Step {
  const { holder, facts, why } = input;
  const { node } = facts;
  const { title, what, kind, ...means } = meansFor(input);
  return {
    id: idOf(node, kind, holder),
    phase: 'clear',
    kind,
    node,
    title,
    why,
    risk: riskOf(holder),
    needsConsent: true,
    target: targetOf(holder, what, kind),
    ...means,
  };
}

function idOf(node: string, kind: Step['kind'], holder: Holder): string {
  return digestOf({ node, kind, identity: holder.identity }).slice(0, 4);
}

function meansFor(input: Input): Means {
  const { owner } = input.holder;
  switch (owner.kind) {
    case 'container':
      return container(input, owner);
    case 'unit':
      return unit(input, owner);
    case 'process':
      return bareProcess(input, owner);
    default:
      throw new Error(`a holder of kind ${owner.kind} cannot be stopped`);
  }
}

function container({ holder, facts }: Input, owner: Extract<Owner, { kind: 'container' }>): Means {
  const { runtime, id, name } = owner;
  const policy = valueIf(owner.restartPolicy) ?? '';
  // podman 4 has no `update --restart`; and a plain stop is honoured by every policy until the daemon restarts.
  const hold = runtime === 'docker' && policy !== '' && policy !== 'no';
  const more = rootIf(needsRoot(holder, facts), 60);
  const irreversible = valueIf(owner.autoRemove) === true;
  return {
    kind: 'stop-container',
    title: `Stop container ${name}`,
    what: `container of image ${owner.image}`,
    guard: script(CONTAINER_RUNS_SH, [runtime, id], rootIf(needsRoot(holder, facts), 20)),
    command: script(STOP_CONTAINER_SH, [runtime, id, hold ? 'hold' : ''], more),
    undo: irreversible
      ? {
          kind: 'irreversible',
          why: `${name} was started with --rm: stopping it deletes the container and what it wrote inside.`,
        }
      : {
          kind: 'command',
          title: `Start container ${name} again${hold ? `, with its restart policy ${policy}` : ''}`,
          command: script(START_CONTAINER_SH, [runtime, id, hold ? policy : ''], more),
        },
  };
}

function unit({ holder, facts }: Input, owner: Extract<Owner, { kind: 'unit' }>): Means {
  const uid = owner.userUnitUid === undefined ? '' : String(owner.userUnitUid);
  // Two users may well have a unit of one name.
  const name = uid === '' ? owner.unit : `${owner.unit} of user ${holder.user}`;
  const runs = [owner.unit, uid];
  const args = [...runs, idOf(facts.node, 'stop-unit', holder), valueIf(facts.host)?.home ?? ''];
  const root = needsRoot(holder, facts);
  return {
    kind: 'stop-unit',
    title: `Stop service ${name}`,
    what: `${uid === '' ? 'system service' : 'user service'}, user ${holder.user}`,
    // is-active asks nobody's permission; another user's manager does.
    guard: script(UNIT_RUNS_SH, runs, rootIf(root && uid !== '', 20)),
    command: script(STOP_UNIT_SH, args, rootIf(root, 120)),
    undo: {
      kind: 'command',
      title: `Start service ${name} again`,
      command: script(START_UNIT_SH, args, rootIf(root, 120)),
    },
  };
}

function bareProcess(
  { holder, facts, rootAtHand }: Input,
  owner: Extract<Owner, { kind: 'process' }>,
): Means {
  const { pid, startTicks, name } = holder;
  const why = lostBecause(holder, owner, rootAtHand);
  // Root also where only its environment needs it: without that it could not be given back.
  const root = needsRoot(holder, facts) || (!owner.environmentReadable && rootAtHand);
  const id = idOf(facts.node, 'stop-process', holder);
  const home = valueIf(facts.host)?.home ?? '';
  const undo: Undo =
    why === undefined
      ? {
          kind: 'command',
          title: `Start ${name} again, as ${holder.user}`,
          command: script(START_PROCESS_SH, [id, home], rootIf(root, 60)),
        }
      : { kind: 'irreversible', why };
  return {
    kind: 'stop-process',
    title: `Stop process ${name}`,
    what: `process ${pid} of user ${holder.user}`,
    guard: script(SAME_PROCESS_SH, [String(pid), startTicks], { timeoutSeconds: 20 }),
    command: script(
      STOP_PROCESS_SH,
      [String(pid), startTicks, id, home, why === undefined ? 'record' : 'forget', holder.user],
      rootIf(root, 90),
    ),
    undo,
  };
}

function rootIf(root: boolean, timeoutSeconds: number): Omit<Command, 'argv' | 'stdin'> {
  return root ? { sudo: true, timeoutSeconds } : { timeoutSeconds };
}

function riskOf(holder: Holder): string {
  const ports = [...holder.listens].sort((a, b) => a - b);
  const seconds = valueIf(holder.ageSeconds);
  const loses =
    ports.length === 0
      ? ''
      : `It listens on ${ports.length === 1 ? 'port' : 'ports'} ${list(ports.map(String))}: whoever uses that loses it. `;
  return `${loses}${seconds === undefined ? 'What' : `Running for ${age(seconds)}; what`} it has not saved is lost.`;
}

function targetOf(holder: Holder, what: string, kind: Means['kind']): StepTarget {
  const seconds = valueIf(holder.ageSeconds);
  const { owner } = holder;
  // Of what merely started it nobody knows whether it would do so again.
  const returns = (holder.returns ?? [])
    .filter(({ by, handled }) => !handled && by !== 'parent')
    .map(({ what: by, keepAway }) => ({ what: by, keepAway }));
  return {
    identity: holder.identity,
    name: holder.name,
    what,
    kind: kind === 'stop-container' ? 'container' : kind === 'stop-unit' ? 'unit' : 'process',
    user: holder.user,
    ...(owner.kind === 'container' ? { image: owner.image } : {}),
    pid: holder.pid,
    bytes: holder.bytes,
    ...(seconds === undefined ? {} : { ageSeconds: seconds }),
    listens: holder.listens,
    ...(returns.length === 0 ? {} : { returns }),
  };
}
