import { resolve } from 'node:path';
import type { Event } from '../domain/event.ts';
import type { ReachedFacts } from '../domain/facts.ts';
import { valueIf } from '../domain/facts.ts';
import { type AttemptState, foldAll } from '../domain/run-state.ts';
import { UserError } from '../domain/user-error.ts';
import { writeBundle } from '../files/bundle-file.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { findRun, hasLooked } from './past-run.ts';
import { scrubber, type ToHide } from './scrub-text.ts';
import type { World } from './world.ts';

/** What bundle.json says of an archive, beside its logs: `diagnose` reads it elsewhere. */
export type BundleAbout = {
  readonly v: 1;
  readonly run: string;
  readonly attempt: number;
  readonly engine: string;
  readonly ranks: readonly { readonly rank: number; readonly log: string; readonly exit?: number }[];
};

/** `firstlight bundle [RUN]`: logs, facts, plan and journal of a run as one archive to hand on. */
export const bundle: Operation<typeof inputs.bundle> = {
  name: 'bundle',
  summary: 'write logs, facts, plan and journal of a run as one archive, without secrets and names of people',
  effect: 'reads',
  input: inputs.bundle,
  async run(input, world) {
    const found = findRun(world.journal, input.run, hasLooked);
    const attempt = attemptOf(found.events);
    if (attempt === undefined)
      throw new UserError(
        'no-such-run',
        `run ${found.run} started no rank`,
        'firstlight show tells what it did',
      );
    const scrub = scrubber(toHide(world, found.events, input.hideHosts));
    const stem = `firstlight-run-${found.run}`;
    const path = resolve(input.output ?? `${stem}.tar.gz`);
    const files = new Map(
      [...filesOf(world, found.run, found.events, attempt, scrub)].map(([name, text]) => [
        `${stem}/${name}`,
        Buffer.from(scrub(text), 'utf8'),
      ]),
    );
    writeBundle(path, files);
    return { report: { kind: 'bundle', run: found.run, file: path, files: [...files.keys()] }, exit: 0 };
  },
};

/** The attempt that tells most: the last with a final finding, else the last. */
function attemptOf(events: readonly Event[]): AttemptState | undefined {
  const { attempts } = foldAll(events);
  return attempts.findLast(({ finding }) => finding?.final === true) ?? attempts.at(-1);
}

function filesOf(
  world: World,
  run: string,
  events: readonly Event[],
  chosen: AttemptState,
  scrub: (text: string) => string,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const looked = events.findLast((event) => event.type === 'looked');
  const planned = events.findLast((event) => event.type === 'planned' && event.plan.phases.length > 0);
  const about: BundleAbout = {
    v: 1,
    run,
    attempt: chosen.attempt,
    engine: chosen.engine,
    ranks: chosen.ranks.map(({ rank, node, ended }) => ({
      rank,
      log: scrub(node),
      ...(ended?.code === undefined ? {} : { exit: ended.code }),
    })),
  };
  files.set('README.txt', README);
  files.set('bundle.json', `${JSON.stringify(about, null, 2)}\n`);
  for (const { attempt, ranks } of foldAll(events).attempts) {
    const folder = attempt === chosen.attempt ? 'logs' : `attempts/${attempt}`;
    for (const { rank, node } of ranks)
      files.set(
        `${folder}/${scrub(node)}.log`,
        world.journal
          .readLog(run, attempt, rank)
          .map(({ text }) => `${text}\n`)
          .join(''),
      );
  }
  if (looked?.type === 'looked') files.set('facts.json', `${JSON.stringify(looked.facts, null, 1)}\n`);
  if (planned?.type === 'planned') files.set('plan.json', `${JSON.stringify(planned.plan, null, 1)}\n`);
  files.set('journal.jsonl', events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  return files;
}

function toHide(world: World, events: readonly Event[], hosts: boolean): ToHide {
  const facts = events.flatMap((event) =>
    event.type === 'looked' ? event.facts.filter((one): one is ReachedFacts => one.reached) : [],
  );
  const first = events[0];
  const controller = first?.type === 'run-started' ? [first.controller] : [];
  const users = [
    ...controller.map(({ user }) => user),
    ...facts.flatMap((one) => valueIf(one.host)?.user ?? []),
  ];
  return {
    secrets: world.secrets.all(),
    users,
    ...(hosts
      ? {
          hosts: [
            ...facts.flatMap((one) => [one.node, valueIf(one.host)?.hostname ?? '']),
            ...controller.map(({ host }) => host),
          ],
        }
      : {}),
  };
}

const README = `What firstlight kept of one run. Secrets and names of people were taken out.

  firstlight diagnose THIS-ARCHIVE    say why it failed, anywhere
  logs/        each rank's log of the attempt that tells most; attempts/ the others
  facts.json   what the last look saw of every host
  plan.json    what was planned last
  journal.jsonl  every event of the run, one a line
`;
