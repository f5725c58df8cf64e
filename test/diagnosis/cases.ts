import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { newTracker, splitLog, trackLine } from '../../src/diagnosis/stages.ts';
import type { Evidence, LogLine, RankEvidence } from '../../src/domain/evidence.ts';
import type { NodeFacts } from '../../src/domain/facts.ts';
import { type EngineName, type Recipe, recipeSchema } from '../../src/domain/recipe.ts';
import { engines } from '../../src/knowledge/engines/index.ts';

const LOGS = new URL('../samples/logs/', import.meta.url);
const HOUR = 3_600_000;

const caseSchema = z.strictObject({
  cause: z.string(),
  atFault: z.enum(['head', 'worker', 'both', 'launcher', 'network', 'none']),
  engine: z.enum(['sglang', 'vllm']),
  origin: z.string(),
  /** Left for a later rule: the answer must then be `unknown`, or the right one. */
  unrecognised: z.literal(true).optional(),
  /** Both nodes say in their logs that they advertise loopback; whoever recorded it named one. */
  bothAdvertise: z.literal(true).optional(),
});

/** One recorded attempt: its answer, and each rank's log by file name (head, worker, worker2 …). */
export type Case = z.output<typeof caseSchema> & {
  readonly name: string;
  readonly logs: Readonly<Record<string, Buffer>>;
};

export function readCases(): readonly Case[] {
  return readdirSync(LOGS)
    .filter((name) => existsSync(new URL(`${name}/case.yaml`, LOGS)))
    .map((name) => {
      const folder = new URL(`${name}/`, LOGS);
      const about = caseSchema.parse(parse(readFileSync(new URL('case.yaml', folder), 'utf8')));
      const files = readdirSync(folder).filter((file) => file.endsWith('.log'));
      return {
        ...about,
        name,
        logs: Object.fromEntries(
          files.map((file) => [file.replace('.log', ''), readFileSync(new URL(file, folder))]),
        ),
      };
    });
}

export function readCase(name: string): Case {
  const found = readCases().find((one) => one.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found;
}

/** The node of a role in `evidenceOf`: spark-a is the head, spark-b the worker, spark-c the next. */
export function nodeOf(role: string): string {
  return `spark-${'abcdefgh'[role === 'head' ? 0 : Number(role.replace('worker', '') || 1)]}`;
}

function recipeOf(engine: EngineName, nodes: number, more: object = {}): Recipe {
  return recipeSchema.parse({
    recipe: 'model-x',
    model: 'org/model-x',
    path: '/models/model-x',
    engines: [engine],
    layout: { nodes, tensor: nodes },
    run: { in: 'docker', image: { [engine]: 'engine:latest' } },
    ...more,
  });
}

export type EvidenceInput = {
  readonly engine: EngineName;
  /** Per role, the log as bytes or lines. */
  readonly logs: Readonly<Record<string, Uint8Array | string | readonly string[]>>;
  readonly recipe?: object;
  readonly before?: readonly NodeFacts[];
  readonly after?: readonly NodeFacts[];
  /** Roles whose rank ended, with its exit code. */
  readonly ended?: Readonly<Record<string, number>>;
  /** Milliseconds of silence after the last line; an hour unless said. */
  readonly silence?: number;
};

/** Reads logs as the follower does: the stage of each rank comes from its lines. */
export function evidenceOf(input: EvidenceInput): Evidence {
  const roles = ['head', ...Object.keys(input.logs).filter((role) => role !== 'head')];
  const engine = engines[input.engine];
  const ranks = roles.map((role, rank): RankEvidence => {
    const log = input.logs[role] ?? '';
    const bytes = typeof log === 'string' || log instanceof Uint8Array ? log : `${log.join('\n')}\n`;
    const lines = timed(splitLog('', bytes).lines);
    const tracker = newTracker(engine, [{ rank }], lines[0]?.at ?? 0);
    for (const line of lines) trackLine(tracker, rank, line);
    const code = input.ended?.[role];
    return {
      rank,
      role: rank === 0 ? 'head' : 'worker',
      node: nodeOf(role),
      lines,
      ...tracker.of(rank),
      ended: code === undefined ? undefined : { code, requested: false, at: lines.at(-1)?.at ?? 0 },
    };
  });
  const last = Math.max(0, ...ranks.flatMap((rank) => rank.lines.at(-1)?.at ?? 0));
  return {
    engine: input.engine,
    recipe: recipeOf(input.engine, roles.length, input.recipe),
    services: [],
    ranks,
    before: input.before ?? [],
    after: input.after ?? [],
    now: last + (input.silence ?? HOUR),
  };
}

/** The time of day that a line names, else the one before it: sample logs carry no time of arrival. */
function timed(texts: readonly string[]): readonly LogLine[] {
  const times = texts.map(timeOf);
  let at = times.find((time) => time !== undefined) ?? 0;
  return texts.map((text, index) => {
    at = times[index] ?? at;
    return { line: index + 1, at, text };
  });
}

function timeOf(text: string): number | undefined {
  const match = /(?:^|[ T])(\d\d):(\d\d):(\d\d)/.exec(text.slice(0, 90));
  return match ? ((Number(match[1]) * 60 + Number(match[2])) * 60 + Number(match[3])) * 1000 : undefined;
}
