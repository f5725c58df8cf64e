import {
  type Fact,
  type Holder,
  known,
  type NodeFacts,
  type ReachedFacts,
  unknown,
  valueIf,
} from '../domain/facts.ts';
import type { MemoryHolder, NodeMemory } from '../domain/report.ts';
import { isStoppable, needsRoot, stoppableHolders } from './allocate.ts';
import { chooseHolders } from './choose-holders.ts';
import { driverHeldBytes } from './driver-held.ts';
import { gpuAnswer } from './gpu-answer.ts';
import { gpusSeen, memoryTroubles, RESERVE_BYTES } from './memory-items.ts';
import { stopStep } from './stop-step.ts';

/** All that is to be told of one node's memory: who holds how much, what can be had, what would have to go. */
export function nodeMemory(facts: NodeFacts, needBytes: number | undefined): NodeMemory {
  const base = { node: facts.node, facts, reserveBytes: RESERVE_BYTES };
  if (!facts.reached) {
    const why = unknown(facts.failure.sentence);
    return {
      ...base,
      unified: why,
      driverBytes: why,
      canGetBytes: why,
      canGetAfterBytes: why,
      holders: why,
      ...(needBytes === undefined ? {} : { wouldGo: why }),
      troubles: [{ level: 'blocks', title: facts.failure.sentence, remedy: facts.failure.remedy }],
      unknown: [],
    };
  }
  const unified = isUnified(facts);
  const canGetBytes = canGet(facts, unified);
  const gives = (holder: Holder): number =>
    valueIf(unified) === false ? (valueIf(holder.gpuBytes) ?? 0) : holder.bytes;
  const stoppable = stoppableHolders(facts);
  const orphans = (valueIf(facts.holders) ?? []).filter(isOrphan);
  const all = [...stoppable, ...orphans].reduce((bytes, holder) => bytes + gives(holder), 0);
  const orphaned = orphans.reduce((bytes, holder) => bytes + gives(holder), 0);
  return {
    ...base,
    unified,
    driverBytes: driverHeldBytes(facts),
    canGetBytes,
    canGetAfterBytes: canGetBytes.known ? known(canGetBytes.value + all) : canGetBytes,
    holders: facts.holders.known
      ? known(facts.holders.value.map((holder) => asMemoryHolder(holder, facts)))
      : facts.holders,
    ...(needBytes === undefined
      ? {}
      : {
          wouldGo: canGetBytes.known
            ? known(
                chooseHolders({
                  holders: stoppable,
                  bytes: needBytes - canGetBytes.value - orphaned,
                  facts,
                  gives,
                }).map(({ identity, name, bytes }) => ({ identity, name, bytes })),
              )
            : canGetBytes,
        }),
    troubles: memoryTroubles(facts, RESERVE_BYTES),
    unknown: unknownParts(facts),
  };
}

/** A process or container of an earlier run of ours that nothing follows any more. */
function isOrphan({ owner }: Holder): boolean {
  return owner.kind === 'rank' && owner.orphan !== undefined;
}

function isUnified(facts: ReachedFacts): Fact<boolean> {
  const gpus = gpusSeen(facts);
  if (gpus.length > 0) return known(gpus.some((gpu) => gpu.unified));
  return facts.gpus.known ? known(false) : facts.gpus;
}

function canGet(facts: ReachedFacts, unified: Fact<boolean>): Fact<number> {
  const answer = gpuAnswer(facts);
  if (!answer.known) return answer;
  const gpus = answer.value;
  // Without a GPU, what the host has is all there is to go by.
  if (!unified.known || unified.value || gpus.length === 0) {
    if (!facts.memory.known) return facts.memory;
    return known(facts.memory.value.availableBytes - RESERVE_BYTES);
  }
  let sum = 0;
  for (const { freeBytes } of gpus) {
    if (!freeBytes.known) return freeBytes;
    sum += freeBytes.value;
  }
  return known(sum);
}

function asMemoryHolder(holder: Holder, facts: ReachedFacts): MemoryHolder {
  const { owner, protectedWhy } = holder;
  const leave = (how: string): MemoryHolder => ({ holder, stop: 'leave', how });
  if (owner.kind === 'rank')
    return owner.orphan === undefined
      ? { holder, stop: 'ours', how: 'firstlight down', back: 'firstlight up' }
      : {
          holder,
          stop: 'ours',
          how: 'firstlight down; up removes it too',
          back: 'not at all, it serves nobody',
        };
  if (protectedWhy !== undefined) return leave(protectedWhy);
  if (owner.kind === 'untouchable') return leave(owner.what);
  if (!isStoppable(holder, facts))
    return leave(
      needsRoot(holder, facts)
        ? 'stopping it takes root, which cannot be had'
        : 'there is no means to stop it',
    );
  const step = stopStep({ holder, facts, why: '', rootAtHand: valueIf(facts.sudo) !== 'none' });
  return {
    holder,
    stop: 'ask',
    how: `${means(holder)}${step.command.sudo === true ? ', with sudo' : ''}`,
    back:
      step.undo.kind === 'command'
        ? step.undo.title
        : step.undo.kind === 'irreversible'
          ? `not at all: ${step.undo.why}`
          : '',
  };
}

function means({ owner }: Holder): string {
  switch (owner.kind) {
    case 'container': {
      const policy = valueIf(owner.restartPolicy) ?? 'no';
      const held = owner.runtime === 'docker' && policy !== 'no' && policy !== '';
      return `${held ? 'restart policy to no, ' : ''}${owner.runtime} stop`;
    }
    case 'unit':
      return owner.userUnitUid === undefined ? 'systemctl stop' : 'systemctl --user stop';
    default:
      return 'TERM, after 20 s KILL';
  }
}

/** Unknown is not zero, and not fine: each is said with its reason. */
function unknownParts(facts: ReachedFacts): readonly string[] {
  const memory = valueIf(facts.memory);
  const lines = memory?.lines;
  const parts: readonly (readonly [string, Fact<unknown>])[] = [
    ['memory', facts.memory],
    ...(facts.driver?.trouble === undefined ? [['GPUs', facts.gpus] as const] : []),
    ['who holds it', facts.holders],
    ['containers', facts.containers],
    ...(lines === undefined
      ? []
      : ([
          ['what could be dropped', lines.cleanBytes],
          ['swap', lines.swapTotalBytes],
          ['pressure', lines.pressure],
        ] as const)),
    ...(facts.gpus.known && facts.gpus.value.length > 0
      ? [['what the driver holds', driverHeldBytes(facts)] as const]
      : []),
  ];
  return parts.flatMap(([what, fact]) => (fact.known ? [] : [`${what}: ${fact.why}`]));
}
