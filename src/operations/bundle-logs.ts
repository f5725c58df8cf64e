import { z } from 'zod';
import { NOTHING_TOLD } from '../diagnosis/offline.ts';
import type { Told } from '../domain/evidence.ts';
import { ENGINES } from '../domain/recipe.ts';
import { UserError } from '../domain/user-error.ts';
import { type Archive, readBundle } from '../files/bundle-file.ts';
import { readFacts } from '../files/facts-file.ts';
import type { LogsInput } from './diagnose-logs.ts';
import { sourceOf } from './logs/log-sources.ts';

const aboutSchema = z.object({
  engine: z.enum(ENGINES).optional(),
  ranks: z.array(z.object({ rank: z.number(), log: z.string(), exit: z.number().optional() })).default([]),
});

/** Logs, facts and what else is told in an archive: ours, or one that somebody made of log files. */
export function inBundle(
  path: string,
  told: Told | undefined,
): Pick<LogsInput, 'sources' | 'contents' | 'told'> {
  const archive = readBundle(path);
  const whole = archive.get('');
  if (whole !== undefined)
    return { sources: [{ ...sourceOf('head', path), rank: 0 }], contents: new Map([[path, whole]]), told };
  const logs = logsIn(archive);
  if (logs.length === 0)
    throw new UserError(
      'bad-input',
      `there is no log in ${path}`,
      'a bundle is what firstlight bundle RUN writes; an archive of .log files will do too',
    );
  const about = aboutSchema.safeParse(jsonIn(archive, /(?:^|\/)bundle\.json$/)).data;
  const facts = [...archive].find(([name]) => /(?:^|\/)facts\.(?:json|ya?ml)$/.test(name));
  const seen = facts === undefined ? NOTHING_TOLD : readFacts(textOf(facts[1]), `${path}: ${facts[0]}`);
  const exits = (about?.ranks ?? []).flatMap(({ log, exit }) =>
    exit === undefined ? [] : [[log, exit] as const],
  );
  return {
    sources: logs.map(({ name, path: file }) => {
      const known = about?.ranks.find(({ log }) => log === name)?.rank;
      const source = sourceOf(name, file);
      return known === undefined ? source : { ...source, rank: known };
    }),
    contents: new Map(logs.map(({ path: file, bytes }) => [file, bytes])),
    told: told ?? {
      ...seen,
      engine: about?.engine ?? seen.engine,
      exits: { ...seen.exits, ...Object.fromEntries(exits) },
    },
  };
}

type PackedLog = { readonly name: string; readonly path: string; readonly bytes: Uint8Array };

/** What lies in `logs/`; without such a folder every file that is called a log, earlier attempts aside. */
function logsIn(archive: Archive): readonly PackedLog[] {
  const named = [...archive].flatMap(([path, bytes]): readonly PackedLog[] => {
    const name = /(?:^|\/)([^/]+)\.(?:log|txt|out|err)$/.exec(path)?.[1];
    return name === undefined || /(?:^|\/)(?:README\.txt$|attempts\/)/.test(path)
      ? []
      : [{ name, path, bytes }];
  });
  const inLogs = named.filter(({ path }) => /(?:^|\/)logs\/[^/]+$/.test(path));
  return inLogs.length > 0 ? inLogs : named;
}

function jsonIn(archive: Archive, form: RegExp): unknown {
  const found = [...archive].find(([name]) => form.test(name));
  if (found === undefined) return undefined;
  try {
    return JSON.parse(textOf(found[1]));
  } catch {
    return undefined; // the logs speak for themselves
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
