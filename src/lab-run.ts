import { existsSync, mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import type { Event } from './domain/event.ts';
import { quotePlainly } from './domain/quote.ts';
import { UserError } from './domain/user-error.ts';
import { labDown, labUp, untilTurnsAreOver } from './lab/lab.ts';
import { findStory, stories } from './lab/stories/index.ts';
import type { Story } from './lab/story.ts';
import { giveConsent } from './operations/consent.ts';
import { down } from './operations/down.ts';
import type { inputs } from './operations/inputs.ts';
import type { Answer } from './operations/operation.ts';
import { up } from './operations/up.ts';
import type { World } from './operations/world.ts';
import { makeWorld, type OpenWorld, userName } from './world.ts';

/** What `firstlight lab` does; see lab-operation.ts. */
export async function runLab(input: z.output<typeof inputs.lab>, world: World): Promise<Answer> {
  switch (input.action) {
    case 'list':
      return said(listed(stories), undefined, [`${called(process.env)} lab story two-sparks`]);
    case 'down': {
      const folder = input.dir ?? labFolder();
      if (!existsSync(join(folder, 'ssh_config')))
        throw new UserError('bad-input', `there is no lab in ${folder}`, 'firstlight lab up two-sparks');
      await labDown(folder);
      return said(`The lab in ${folder} is down; its journal stays there.`, folder, []);
    }
    case 'up': {
      const story = findStory(input.story ?? 'clean-start');
      const folder = input.dir ?? labFolder();
      makeOwn(folder);
      const handle = await labUp({
        folder,
        story: story.name,
        ...(input.seed === undefined ? {} : { seed: input.seed }),
      });
      return said(
        `${story.title}\n${handle.story.hosts.map((host) => host.name).join(' and ')} run on this machine; ${handle.folder} holds cluster.yaml and recipe.yaml.`,
        handle.folder,
        nextInLab(handle.folder, process.env),
      );
    }
    case 'story': {
      if (input.story === undefined) throw new UserError('bad-input', 'which story?', 'firstlight lab list');
      return tell(findStory(input.story), input, world);
    }
  }
}

/** Stories by name and title, the titles under each other. */
export function listed(all: readonly Pick<Story, 'name' | 'title'>[]): string {
  const names = Math.max(...all.map(({ name }) => name.length));
  return all.map(({ name, title }) => `${name.padEnd(names)}  ${title}`).join('\n');
}

function said(text: string, folder: string | undefined, next: readonly string[]): Answer {
  return { report: { kind: 'lab', text, folder, next }, exit: 0 };
}

/**
 * What to type to play with a lab, from the folder in which one stands: where firstlight was called through npm it
 * is on no PATH, and npx finds it in its own folder only.
 */
export function nextInLab(folder: string, env: NodeJS.ProcessEnv): readonly string[] {
  const at = (name: string): string => quotePlainly(join(folder, name));
  return [
    `export FIRSTLIGHT_CLUSTER=${at('cluster.yaml')}`,
    `export FIRSTLIGHT_HOME=${at('home')}`,
    `export FIRSTLIGHT_SUDO_PASSWORD_FILE=${at('sudo-password')}`,
    `${called(env)} up ${at('recipe.yaml')}`,
    `${called(env)} lab down --dir ${quotePlainly(folder)}`,
  ];
}

/** How firstlight was called: `npx firstlight`, and so it is called again; else by its name. */
function called(env: NodeJS.ProcessEnv): string {
  return env['npm_command'] === undefined ? 'firstlight' : 'npx firstlight';
}

function labFolder(): string {
  return join(tmpdir(), `firstlight-lab-${userName()}`);
}

/** The lab's keys lie in it, and its name in /tmp can be guessed. */
function makeOwn(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (statSync(folder).uid === process.getuid?.()) return;
  throw new UserError('bad-input', `${folder} belongs to somebody else`, 'name another folder with --dir');
}

type StoryInput = {
  readonly dir?: string | undefined;
  readonly seed?: number | undefined;
  readonly keep: boolean;
};

/**
 * Lives through a story: the lab up, the ordinary operations, the lab down. The person of the story answers
 * through the same operation as any face; nothing here tells the product how it should end.
 */
async function tell(named: Story, input: StoryInput, outer: World): Promise<Answer> {
  const folder = input.dir ?? mkdtempSync(join(tmpdir(), `firstlight-${named.name}-`));
  makeOwn(folder);
  const handle = await labUp({
    folder,
    story: named.name,
    ...(input.seed === undefined ? {} : { seed: input.seed }),
  });
  const { story } = handle;
  const events: Event[] = [];
  const world: OpenWorld = makeWorld({
    cluster: join(folder, 'cluster.yaml'),
    home: join(folder, 'home'),
    sudoPasswordFiles: [],
    passwords: story.passwords,
    live: outer.live,
    signal: outer.signal,
    env: {},
    onEvent: (event) => {
      events.push(event);
      outer.told(event);
      if (event.type === 'consent-asked') answer(world, story, event);
    },
  });
  try {
    const recipe = join(folder, 'recipe.yaml');
    const wanted = { recipe, consent: [], plan: undefined, replace: false, wait: true, anew: false };
    const first = await up.run(wanted, world);
    const serves = first.report.kind === 'run' && first.report.ended.outcome === 'serving';
    if (serves) {
      await untilTurnsAreOver(handle);
      await up.run(wanted, world);
    }
    if (story.expect.restored || serves) await down.run({ recipe: undefined, restore: true }, world);
    const missed = missing(story, events);
    const home = join(handle.folder, 'home');
    return {
      report: {
        kind: 'lab',
        text:
          missed.length === 0
            ? `${story.name} ended as it should.`
            : outer.signal.aborted
              ? `${story.name} was ended by you before its end.`
              : `${story.name} did not end as it should: ${missed.join('; ')}.`,
        folder,
        next: [
          `export FIRSTLIGHT_HOME=${quotePlainly(home)}`,
          `${called(process.env)} runs`,
          `${called(process.env)} show 1`,
          `${called(process.env)} lab up two-sparks`,
        ],
      },
      exit: missed.length === 0 ? 0 : 1,
    };
  } finally {
    world.close();
    if (!input.keep) await labDown(folder);
  }
}

function answer(world: World, story: Story, asked: Extract<Event, { type: 'consent-asked' }>): void {
  const allowed = asked.steps
    .filter((step) =>
      story.consents.some((consent) => consent.node === step.node && consent.holder === step.target.name),
    )
    .map((step) => step.id);
  const refused = asked.steps.map((step) => step.id).filter((id) => !allowed.includes(id));
  giveConsent(world, asked.run, { allowed, refused, by: `the person of the story ${story.name}` });
}

/** What the story's file expects and the journal does not show. */
function missing(story: Story, events: readonly Event[]): readonly string[] {
  const ends = events.flatMap((event) => (event.type === 'run-ended' ? [event.outcome] : []));
  return [
    ...story.expect.events
      .filter(
        (wanted) =>
          !events.some((event) =>
            Object.entries(wanted).every(([key, value]) => Reflect.get(event, key) === value),
          ),
      )
      .map((wanted) => `no event ${JSON.stringify(wanted)}`),
    ...(ends[0] === story.expect.outcome ? [] : [`it ended ${ends[0]}, not ${story.expect.outcome}`]),
    ...(story.expect.restored && ends.at(-1) !== 'restored' ? ['nothing was given back'] : []),
  ];
}
