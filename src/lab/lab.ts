import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { UserError } from '../domain/user-error.ts';
import { endAllOf } from './daemon.ts';
import { runs, signal, startTicks } from './real-process.ts';
import { findStory } from './stories/index.ts';
import type { Story } from './story.ts';
import { compiled } from './stubs.ts';
import { SERVED_FILE, TURNS_FILE } from './timeline.ts';

export type LabHandle = {
  readonly folder: string;
  readonly story: Story;
  readonly seed: number;
  /** The background process that is the lab. */
  readonly pid: number;
};

const state = z.object({
  pid: z.number().int(),
  startTicks: z.string(),
  story: z.string(),
  seed: z.number().int(),
});

const START_SECONDS = 30;
const TURNS_SECONDS = 60;

/**
 * Starts a lab in the background and waits until its hosts answer. Throws UserError for an unknown story, or where
 * a lab runs in that folder already.
 */
export async function labUp(options: {
  readonly folder: string;
  readonly story: string;
  readonly seed?: number;
}): Promise<LabHandle> {
  const seed = options.seed ?? 1;
  const story = findStory(options.story, seed);
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const folder = realpathSync(options.folder);
  const old = findLab(folder);
  if (old !== undefined) {
    throw new UserError(
      'bad-input',
      `A lab (${old.story.name}) runs in ${folder} already.`,
      `firstlight lab down --dir ${folder}`,
    );
  }
  if (process.platform !== 'linux') {
    throw new UserError(
      'bad-input',
      'The embedded lab needs Linux: it reads /proc.',
      'Run it on a Linux machine, or in a Linux container.',
    );
  }
  rmSync(join(folder, 'lab.json'), { force: true });
  const log = join(folder, 'daemon.log');
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, [compiled('daemon-main.js'), folder, story.name, String(seed)], {
    detached: true,
    stdio: ['ignore', output, output],
    cwd: '/',
  });
  closeSync(output);
  child.unref();
  const until = Date.now() + START_SECONDS * 1000;
  while (Date.now() < until && child.exitCode === null && child.signalCode === null) {
    const found = findLab(folder);
    if (found !== undefined) return found;
    await wait(20);
  }
  const said = readFileSync(log, 'utf8').trim();
  if (child.pid !== undefined && child.exitCode === null) signal(child.pid, 'SIGKILL');
  throw new Error(`the lab did not start: ${said === '' ? `nothing in ${log}` : said}`);
}

/** The lab that runs in that folder, if one does. */
export function findLab(folder: string): LabHandle | undefined {
  const file = join(folder, 'lab.json');
  if (!existsSync(file)) return undefined;
  const parsed = state.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!parsed.success) return undefined;
  const { pid, story, seed, startTicks: ticks } = parsed.data;
  if (!runs(pid, ticks)) return undefined;
  return { folder: realpathSync(folder), story: findStory(story, seed), seed, pid };
}

/** Tells the lab that the run that serves is over, and waits for everything that the story has coming then. */
export async function untilTurnsAreOver(lab: LabHandle): Promise<void> {
  writeFileSync(join(lab.folder, SERVED_FILE), '');
  const coming = lab.story.timeline.filter(({ when }) => when === 'serving').length;
  const file = join(lab.folder, TURNS_FILE);
  const over = (): number =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line.endsWith(' serving')).length
      : 0;
  const until = Date.now() + TURNS_SECONDS * 1000;
  while (over() < coming && Date.now() < until) await wait(50);
}

/** Ends the lab of that folder with every process of its hosts. What it wrote stays. Nothing there is fine too. */
export async function labDown(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const lab = findLab(folder);
  const real = realpathSync(folder);
  if (lab !== undefined) {
    const ticks = startTicks(lab.pid) ?? '';
    signal(lab.pid, 'SIGTERM');
    const until = Date.now() + 10_000;
    while (runs(lab.pid, ticks) && Date.now() < until) await wait(20);
    if (runs(lab.pid, ticks)) signal(lab.pid, 'SIGKILL');
  }
  await endAllOf(real);
  rmSync(join(real, 'lab.json'), { force: true });
}
