import { known, type Owner, unknown } from '../../domain/facts.ts';
import { quotePlainly } from '../../domain/quote.ts';
import { type Attribution, attribute } from './cgroup.ts';
import {
  containerOf,
  type HolderInput,
  isBareScope,
  isSeparate,
  type Member,
  never,
  type OwnRank,
  programProtection,
  shortCommand,
} from './holder-member.ts';
import { printable } from './output.ts';
import type { ProcessReading, UnitState } from './process-reading.ts';
import { hostsOthers, protectedWhy } from './protected-work.ts';

/** The owner of a holder, from its main process: what decides how it is stopped and given back. */
export function ownerOf(
  main: Member,
  members: readonly Member[],
  reading: ProcessReading,
  input: HolderInput,
): Owner {
  const { whose, rank } = main;
  if (rank !== undefined) return rankOwner(rank, members);
  const bare: Owner = {
    kind: 'process',
    environmentReadable: main.details.environmentReadable || input.rootToBeHad,
  };
  switch (whose.kind) {
    case 'container': {
      const keeper = keeperOf(whose.id, reading, input);
      return keeper === undefined ? containerOwner(whose, input) : unitOwner(keeper, reading);
    }
    case 'pod':
      return { kind: 'untouchable', what: `Kubernetes pod ${whose.pod || whose.id.slice(0, 12)}` };
    case 'monitor':
      return { kind: 'untouchable', what: 'the monitor of a podman container' };
    case 'machine':
      return { kind: 'untouchable', what: `virtual machine or nspawn container ${printable(whose.machine)}` };
    case 'unit':
      return isSeparate(main) ? bare : unitOwner(whose, reading);
    case 'scope':
      return isBareScope(whose.scope)
        ? bare
        : { kind: 'untouchable', what: `program of a desktop session (${printable(whose.scope)})` };
    case 'session':
    case 'none':
      return bare;
    default:
      return never(whose);
  }
}

function rankOwner({ name, orphan }: OwnRank, members: readonly Member[]): Owner {
  if (orphan === undefined) return { kind: 'rank', name };
  const processes = members.map(({ row: { pid, startTicks } }) => ({ pid, startTicks }));
  return { kind: 'rank', name, orphan: { why: orphan, processes } };
}

/**
 * The service that runs a container by staying its client (`ExecStart=docker run …`): it would start the container
 * again, and it alone can be asked to stop and to bring it back. Told by the container's name or id on its command line.
 */
function keeperOf(
  id: string,
  reading: ProcessReading,
  input: HolderInput,
): Extract<Attribution, { kind: 'unit' }> | undefined {
  const name = containerOf(id, input)?.name;
  for (const { args, cgroup } of reading.details.values()) {
    const [program = '', ...words] = args;
    if (!/(^|\/)(docker|podman)$/.test(program) || !words.some((word) => /^(run|start)$/.test(word)))
      continue;
    const means = words.some(
      (word) => word === name || word === `--name=${name}` || (word.length >= 12 && id.startsWith(word)),
    );
    const whose = means ? attribute(cgroup, reading.ownCgroup) : undefined;
    if (whose?.kind === 'unit' && !hostsOthers(whose.unit)) return whose;
  }
  return undefined;
}

function containerOwner(whose: Extract<Attribution, { kind: 'container' }>, input: HolderInput): Owner {
  const seen = containerOf(whose.id, input);
  if (seen !== undefined) {
    const project = seen.labels['com.docker.compose.project'] ?? seen.labels['io.podman.compose.project'];
    // swarmkit puts it on the container of every task (Docker, "Swarm mode key concepts").
    const service = seen.labels['com.docker.swarm.service.name'];
    return {
      kind: 'container',
      runtime: seen.runtime,
      id: seen.id,
      name: seen.name,
      image: seen.image,
      restartPolicy: known(seen.restartPolicy),
      autoRemove: known(seen.autoRemove),
      ...(project === undefined ? {} : { composeProject: project }),
      ...(service === undefined || service === '' ? {} : { swarmService: printable(service) }),
    };
  }
  const short = whose.id.slice(0, 12);
  if (whose.rootlessUid !== undefined) {
    return {
      kind: 'untouchable',
      what: `${whose.runtime} container ${short} of user ${whose.rootlessUid}, run without root`,
    };
  }
  if (whose.runtime !== 'docker' && whose.runtime !== 'podman') {
    return { kind: 'untouchable', what: `${whose.runtime} container ${short}` };
  }
  const why = input.containers.known ? `${whose.runtime} does not list this container` : input.containers.why;
  return {
    kind: 'container',
    runtime: whose.runtime,
    id: whose.id,
    name: short,
    image: 'unknown',
    restartPolicy: unknown(why),
    autoRemove: unknown(why),
  };
}

function unitOwner(whose: Extract<Attribution, { kind: 'unit' }>, reading: ProcessReading): Owner {
  const state = unitState(whose, reading);
  return {
    kind: 'unit',
    unit: whose.unit,
    restart: state === undefined ? unknown(whyNoState(reading)) : known(state.restart),
    ...(whose.uid === undefined ? {} : { userUnitUid: whose.uid }),
  };
}

function whyNoState(reading: ProcessReading): string {
  return reading.units.size > 0 ? 'systemd told nothing of this unit' : reading.unitTrouble;
}

/** What systemd told of a unit; nothing of another user's. */
export function unitState(
  whose: Extract<Attribution, { kind: 'unit' }>,
  reading: ProcessReading,
): UnitState | undefined {
  return reading.units.get(whose.uid === undefined ? whose.unit : `user:${whose.unit}`);
}

/** Stable while it is the same thing. */
export function identityOf(main: Member, owner: Owner): string {
  const start = main.row.startTicks;
  switch (owner.kind) {
    case 'container':
      return owner.id;
    case 'unit':
      return `${owner.userUnitUid === undefined ? '' : `${owner.userUnitUid}:`}${owner.unit}@${start}`;
    case 'process':
      return `${main.row.pid}:${start}`;
    case 'rank':
      return owner.orphan === undefined
        ? `rank ${owner.name}`
        : `orphan ${owner.name} ${main.row.pid}:${start}`;
    case 'untouchable':
      return 'id' in main.whose ? main.whose.id : `${main.row.pid}:${start}`;
    default:
      return never(owner);
  }
}

/** What a person calls it. */
export function nameOf(main: Member, owner: Owner): string {
  switch (owner.kind) {
    case 'container':
    case 'rank':
      return owner.name;
    case 'unit':
      return owner.unit;
    case 'process':
    case 'untouchable':
      return shortCommand(main);
    default:
      return never(owner);
  }
}

/**
 * Why this is never proposed to be stopped, whatever it holds; a container is stopped as a whole or not at all. That of
 * a Swarm task is no more than one try of its service: stopped, it is never started again, and another takes its place
 * at once, on this node or another. Its service alone is scaled down and up, and a manager alone can do that.
 */
export function whyProtected(members: readonly Member[], owner: Owner): string | undefined {
  if (owner.kind === 'container')
    return owner.swarmService === undefined ? undefined : swarmWords(owner.swarmService);
  if (owner.kind === 'rank') return undefined;
  const unit = owner.kind === 'unit' ? protectedWhy(owner.unit) : undefined;
  if (unit !== undefined) return unit;
  if (owner.kind === 'unit' && /^(org\.gnome|gnome-|plasma-|pipewire|wireplumber|xdg-)/.test(owner.unit)) {
    return 'it belongs to the desktop';
  }
  for (const member of members) {
    const why = programProtection(member);
    if (why !== undefined) return why;
  }
  return undefined;
}

function swarmWords(service: string): string {
  return `it is a task of Docker Swarm's service ${service}, which would start another in its place; to have its memory, on a manager of the swarm: docker service scale ${quotePlainly(service)}=0 (a global service: keep it off this node by a constraint)`;
}
