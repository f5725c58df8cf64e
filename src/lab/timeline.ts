import { appendFileSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { GIB, type StoryMoment, type StoryTurn } from './story.ts';
import type { LabWorld } from './world.ts';

const POLL_MS = 200;
const BOOT_MS = 2500;
const OVER_MS = 15_000;

/** A file of the lab's folder with one line for each turn of the timeline that is over. */
export const TURNS_FILE = 'turns';
/** Made by whoever brought the model up, once that run is over. */
export const SERVED_FILE = 'served';

/** What the story has coming, and what of it has come. */
export class Timeline {
  readonly #folder: string;
  readonly #turns: readonly StoryTurn[];
  readonly #happen: (turn: StoryTurn) => Promise<void>;
  #servedAt: number | undefined;
  readonly #seen = new Set<StoryTurn>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(folder: string, turns: readonly StoryTurn[], happen: (turn: StoryTurn) => Promise<void>) {
    this.#folder = folder;
    this.#turns = turns;
    this.#happen = happen;
    for (const name of [TURNS_FILE, SERVED_FILE]) rmSync(join(folder, name), { force: true });
    if (turns.some(({ when }) => when === 'serving')) this.#watch();
  }

  sees(moment: StoryMoment, node: string): void {
    for (const turn of this.#turns) {
      if (turn.when !== moment || (turn.seenOn ?? turn.node) !== node || this.#seen.has(turn)) continue;
      this.#seen.add(turn);
      if (turn.afterSeconds === undefined) this.#start(turn);
      else this.#later(turn.afterSeconds * 1000, () => this.#start(turn));
    }
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #start(turn: StoryTurn): void {
    const tell = (text: string): void => appendFileSync(join(this.#folder, TURNS_FILE), `${text}\n`);
    this.#happen(turn).then(
      () => tell(`${turn.node} ${turn.when}`),
      // Whoever waits for it waits in vain; whoever wonders why reads it there.
      (error: unknown) => tell(`${turn.node} ${turn.when}: ${String(error)}`),
    );
  }

  #later(milliseconds: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, milliseconds);
    timer.unref();
    this.#timers.add(timer);
  }

  /** Nothing happens in the middle of a run: whoever asked says that it is over, or is given some time. */
  #toldOf(node: string): boolean {
    if (!served(join(this.#folder, 'hosts', node))) return false;
    this.#servedAt ??= Date.now();
    return existsSync(join(this.#folder, SERVED_FILE)) || Date.now() - this.#servedAt > OVER_MS;
  }

  /** That an answer was proved is known to whoever asked; a node has it in the rank's own record. */
  #watch(): void {
    const nodes = new Set(this.#turns.flatMap(({ when, node }) => (when === 'serving' ? [node] : [])));
    for (const node of nodes) if (this.#toldOf(node)) this.sees('serving', node);
    this.#later(POLL_MS, () => this.#watch());
  }
}

function served(root: string): boolean {
  return entries(join(root, 'home')).some((user) => {
    const kept = join(root, 'home', user, '.firstlight');
    return entries(kept).some((id) =>
      entries(join(kept, id, 'ranks')).some((rank) => existsSync(join(kept, id, 'ranks', rank, 'serving'))),
    );
  });
}

function entries(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Lets a turn happen to its node; resolves when it is over. */
export async function happen(world: LabWorld, turn: StoryTurn): Promise<void> {
  const host = world.host(turn.node);
  if ('startHolder' in turn) host.holders.start(turn.startHolder);
  else if ('endHolder' in turn) host.holders.end(turn.endHolder);
  else if ('reloadSystemd' in turn) host.reloadSystemd();
  else if ('readsGiB' in turn) host.ledger.fill(turn.readsGiB * GIB);
  else if ('slabGiB' in turn) host.ledger.remember(turn.slabGiB * GIB);
  else if ('systemGiB' in turn) host.ledger.takeForSystem(turn.systemGiB * GIB);
  else if ('endedGiB' in turn) host.ledger.owe(turn.endedGiB * GIB);
  else if ('givesBack' in turn) host.ledger.giveBack();
  else if ('endEngines' in turn) host.endEngines();
  else if ('endRanks' in turn) host.endRanks();
  else if ('reboot' in turn) {
    const server = world.ssh.get(turn.node);
    server?.fail('resets-connections');
    host.reboot();
    server?.dropConnections();
    await later(BOOT_MS);
    host.booted();
    server?.fail('none');
  } else {
    const cable = host.interfaces.find(({ address }) => address === fabricOf(world, turn.node));
    if (cable === undefined) throw new Error(`${turn.node} has no cable on the fabric`);
    world.cable(turn.node, cable.name, false);
    world.ssh.get(turn.node)?.dropConnections();
    if (turn.cutSeconds === 'for-ever') return;
    await later(turn.cutSeconds * 1000);
    world.cable(turn.node, cable.name, true);
  }
}

function fabricOf(world: LabWorld, node: string): string | undefined {
  return world.story.hosts.find(({ name }) => name === node)?.fabric.address;
}

function later(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
