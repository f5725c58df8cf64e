import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { fileLines } from '../../src/diagnosis/file-lines.ts';
import { evidenceOfTexts } from '../../src/diagnosis/offline.ts';
import { type Verdict, verdictOf } from '../../src/diagnosis/verdict.ts';
import type { LogLine } from '../../src/domain/evidence.ts';

const CORPUS = new URL('../samples/corpus/', import.meta.url);

const schema = z.strictObject({
  cause: z.string(),
  atFault: z.string(),
  engine: z.string(),
  origin: z.string(),
  misleading: z.array(z.string()),
  logs: z.array(z.string()),
  noise: z.record(z.string(), z.array(z.string())),
  version: z.string().optional(),
});

/** One failure of the corpus: its answer, its logs by name, and the lines in them that mean nothing. */
export type CorpusCase = z.output<typeof schema> & {
  readonly name: string;
  readonly texts: Readonly<Record<string, Buffer>>;
};

/** The cases of a folder of test/samples/corpus, or those in sight where none is named. */
export function readCorpus(folder = ''): readonly CorpusCase[] {
  const root = new URL(folder === '' ? './' : `${folder}/`, CORPUS);
  return readdirSync(root)
    .filter((name) => existsSync(new URL(`${name}/case.yaml`, root)))
    .map((name) => {
      const here = new URL(`${name}/`, root);
      const about = schema.parse(parse(readFileSync(new URL('case.yaml', here), 'utf8')));
      const texts = about.logs.map((log) => [log, readFileSync(new URL(`${log}.log`, here))] as const);
      return { ...about, name, texts: Object.fromEntries(texts) };
    });
}

/** The lines of a log as `diagnose --log` reads them. */
export function linesOf(bytes: Uint8Array): readonly LogLine[] {
  const file = fileLines();
  return [...file.take(bytes, 0), ...file.end(0)];
}

/** What is answered to logs by name. */
export function answerTo(texts: Readonly<Record<string, Uint8Array | string>>): Verdict {
  return verdictOf(
    evidenceOfTexts(
      Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)])),
    ),
  );
}

const HEALTHY = new URL('../samples/healthy/', import.meta.url);

/** Logs of jobs with nothing wrong in them, by name: all logs of each. */
export function readHealthy(): readonly (readonly [string, Readonly<Record<string, Buffer>>])[] {
  return readdirSync(HEALTHY).map((name) => {
    const here = new URL(`${name}/`, HEALTHY);
    const files = readdirSync(here).filter((file) => file.endsWith('.log'));
    return [
      name,
      Object.fromEntries(files.map((file) => [file.replace('.log', ''), readFileSync(new URL(file, here))])),
    ];
  });
}
