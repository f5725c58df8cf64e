import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach } from 'vitest';
import { type Event, type EventType, parseEvent } from '../../src/domain/event.ts';
import { findStory } from '../../src/lab/stories/index.ts';
import type { Story } from '../../src/lab/story.ts';
import { looks } from './processes.ts';

const DIST = resolve(process.env['FIRSTLIGHT_DIST'] ?? 'dist');
const MAIN = join(DIST, 'main.js');
/** The engines' waits are a tenth of what they are otherwise: only how things go on is looked at here. */
export const FAST = { FIRSTLIGHT_LAB_SPEED: '8' } as const;

export type Ended = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly events: readonly Event[];
  readonly seconds: number;
};

/** The compiled firstlight, as a process of its own. */
export class Firstlight {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(words: readonly string[], env: Readonly<Record<string, string>>, cwd: string) {
    const began = Date.now();
    this.#child = spawn(process.execPath, [MAIN, ...words], {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', HOME: cwd, LANG: 'C.UTF-8', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.ended = new Promise((settle, reject) => {
      this.#child.on('error', reject);
      this.#child.on('close', (code, signal) => {
        const seconds = (Date.now() - began) / 1000;
        const { events } = this;
        settle({ code, signal, stdout: this.#stdout, stderr: this.#stderr, events, seconds });
      });
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('firstlight did not start');
    return this.#child.pid;
  }

  /** Both of its outputs so far. */
  get told(): string {
    return `${this.#stdout}${this.#stderr}`;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What it printed so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** What it told so far, where it tells events; a line that is half written waits. */
  get events(): readonly Event[] {
    const lines = this.#stdout.split('\n').slice(0, -1);
    return lines.filter((line) => line.startsWith('{"v":1,')).map(parseEvent);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The first such event; fails where it ends without one. */
  async until<Type extends EventType>(
    type: Type,
    fits: (event: Extract<Event, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<Event, { type: Type }>> {
    for (;;) {
      const { running } = this;
      const found = of(this.events, type).find(fits);
      if (found !== undefined) return found;
      if (!running) throw new Error(`it ended without ${type}:\n${this.#stdout}\n${this.#stderr}`);
      await wait(10);
    }
  }
}

/** Events of one type. */
export function of<Type extends EventType>(
  events: readonly Event[],
  type: Type,
): readonly Extract<Event, { type: Type }>[] {
  return events.filter((event): event is Extract<Event, { type: Type }> => event.type === type);
}

/** How the last run among these ended. */
export function endOf(events: readonly Event[]): Extract<Event, { type: 'run-ended' }> {
  const end = of(events, 'run-ended').at(-1);
  if (end === undefined) throw new Error('no run ended');
  return end;
}

/** One lab in a folder of its own, and the firstlight that a person in that folder would run. */
export type Lab = {
  readonly folder: string;
  readonly story: Story;
  file(name: string): string;
  start(words: readonly string[], env?: Readonly<Record<string, string>>): Firstlight;
  run(words: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** Ids of the steps that stop foreign work, by the holder's name. */
  holderSteps(): Promise<ReadonlyMap<string, string>>;
  /** Runs a shell line on a host through OpenSSH's own client, the jump too. */
  on(host: string, line: string, input?: string): Promise<Ended>;
  down(): Promise<void>;
};

const open = new Set<Lab>();

/** Takes every lab down that a test left up. */
export function downAfterEach(): void {
  afterEach(async () => {
    await Promise.all([...open].map((lab) => lab.down()));
  }, 60_000);
}

/** A fresh lab; a story of its own as data, or the name of one that the product has. */
export async function openLab(
  story: Story | string,
  more: { readonly seed?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Lab> {
  const folder = mkdtempSync(join(tmpdir(), 'fl-story-'));
  const { seed = 1, env: labEnv = FAST } = more;
  const told = typeof story === 'string' ? findStory(story, seed) : story;
  const home = { FIRSTLIGHT_HOME: join(folder, 'home') };
  const password = join(folder, 'sudo-password');
  const lab: Lab = {
    folder,
    story: told,
    file: (name) => join(folder, name),
    start(words, env = {}) {
      const known: Readonly<Record<string, string>> = existsSync(password)
        ? { FIRSTLIGHT_SUDO_PASSWORD_FILE: password }
        : {};
      return new Firstlight(words, { ...home, ...known, ...env }, folder);
    },
    run: (words, env) => lab.start(words, env).ended,
    async holderSteps() {
      const { stdout } = await lab.run(['plan', 'recipe.yaml', '--json']);
      return stepsByHolder(JSON.parse(stdout));
    },
    on(host, line, input = '') {
      const head = told.hosts[0]?.name ?? '';
      const base = ['-F', join(folder, 'ssh_config'), '-o', 'BatchMode=yes'];
      const jump = `ssh ${base.join(' ')} -W [%h]:%p ${head}`;
      const through = host === head ? [] : ['-o', `ProxyCommand=${jump}`];
      return ssh([...base, ...through, host, line], input);
    },
    async down() {
      open.delete(lab);
      await new Firstlight(['lab', 'down', '--dir', folder], {}, folder).ended;
      const left = looks(folder).flatMap((host) => host.processes.map((one) => one.command));
      if (left.length > 0) throw new Error(`the lab left processes behind:\n${left.join('\n')}`);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  open.add(lab);
  if (typeof story === 'string') {
    const up = ['lab', 'up', story, '--dir', folder, '--seed', String(seed)];
    const { code, stderr } = await new Firstlight(up, labEnv, folder).ended;
    if (code !== 0) throw new Error(`the lab did not come up: ${stderr}`);
  } else await startTold(folder, story, labEnv);
  return lab;
}

/** Lives through a story of the product: `firstlight lab story NAME`. */
export async function liveThrough(
  name: string,
  more: { readonly seed?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'fl-story-'));
  const seed = more.seed === undefined ? [] : ['--seed', String(more.seed)];
  const words = ['lab', 'story', name, '--dir', folder, '--json', ...seed];
  try {
    return await new Firstlight(words, more.env ?? {}, folder).ended;
  } finally {
    await new Firstlight(['lab', 'down', '--dir', folder], {}, folder).ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The product's own lab process, with a story that is none of the product's. */
async function startTold(folder: string, story: Story, env: Readonly<Record<string, string>>): Promise<void> {
  const program = `
    const { startDaemon } = await import(${JSON.stringify(join(DIST, 'lab/daemon.js'))});
    const { readFileSync } = await import('node:fs');
    const [, folder] = process.argv;
    const lab = await startDaemon(folder, JSON.parse(readFileSync(folder + '/story.json', 'utf8')), 1);
    process.on('SIGTERM', () => lab.close().finally(() => process.exit(0)));`;
  writeFileSync(join(folder, 'story.json'), JSON.stringify(story));
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', ...env },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  child.unref();
  while (!existsSync(join(folder, 'lab.json'))) {
    if (child.exitCode !== null) throw new Error(`the lab did not come up: ${said}`);
    await wait(20);
  }
}

/** Undo records on a host that are still to be given back: their titles. */
export function owedOn({ folder }: Pick<Lab, 'folder'>, host: string): readonly string[] {
  const homes = join(folder, 'hosts', host, 'home');
  return entries(homes).flatMap((user) => {
    const nodes = join(homes, user, '.firstlight');
    return entries(nodes).flatMap((node) =>
      entries(join(nodes, node, 'undo')).flatMap((id) => {
        const record = join(nodes, node, 'undo', id);
        if (text(join(record, 'state')).trim() !== 'pending') return [];
        if (text(join(record, 'undo.sh')) === '') return [];
        const { title }: { title: string } = JSON.parse(text(join(record, 'record.json')));
        return [title];
      }),
    );
  });
}

function stepsByHolder(report: {
  readonly plan: {
    readonly phases: readonly {
      readonly steps: readonly {
        readonly id: string;
        readonly needsConsent: boolean;
        readonly target?: { readonly name: string };
      }[];
    }[];
  };
}): ReadonlyMap<string, string> {
  const steps = report.plan.phases.flatMap((phase) => phase.steps).filter((step) => step.needsConsent);
  return new Map(steps.map((step) => [step.target?.name ?? '', step.id]));
}

function ssh(words: readonly string[], input: string): Promise<Ended> {
  return new Promise((settle, reject) => {
    const began = Date.now();
    const child = spawn('ssh', [...words], { stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code, signal) =>
      settle({ code, signal, stdout, stderr, events: [], seconds: (Date.now() - began) / 1000 }),
    );
    child.stdin.end(input);
  });
}

function entries(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function text(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
