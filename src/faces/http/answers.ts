import { z } from 'zod';
import { STAGES } from '../../domain/finding.ts';
import type { Report } from '../../domain/report.ts';

/** Schemas of what this face answers: for the OpenAPI document, and for tests that hold the answers against it. */

const owed = z.array(z.strictObject({ node: z.string(), id: z.string(), title: z.string() }));
const nodeFacts = z.looseObject({ node: z.string(), at: z.string(), reached: z.boolean() });
const plan = z.looseObject({
  digest: z.string(),
  engine: z.string(),
  state: z.enum(['empty', 'work', 'blocked']),
  ranks: z.array(z.string()),
  phases: z.array(z.looseObject({ kind: z.string(), steps: z.array(z.looseObject({ id: z.string() })) })),
});
const quote = z.strictObject({ rank: z.number(), node: z.string(), line: z.number(), text: z.string() });
const finding = z.looseObject({
  cause: z.string(),
  node: z.string().optional(),
  final: z.boolean(),
  title: z.string(),
  why: z.string(),
  quotes: z.array(quote),
  advice: z.array(z.string()),
});

/** One event of a run; its type says what else it holds. */
const eventSchema = z.looseObject({
  v: z.literal(1),
  seq: z.number().int(),
  run: z.string(),
  at: z.string(),
  type: z.string(),
});

const logLine = {
  rank: z.number().int(),
  node: z.string(),
  line: z.number().int(),
  at: z.number(),
  stage: z.enum(STAGES),
  text: z.string(),
};

const logPlace = z.strictObject({
  attempt: z.number().int(),
  rank: z.number().int(),
  line: z.number().int(),
});

const runRow = z.strictObject({
  run: z.string(),
  operation: z.string(),
  recipe: z.string().optional(),
  startedAt: z.string(),
  seconds: z.number().optional(),
  outcome: z.string(),
});

/** By the report's kind, which each has; complete, or it does not compile. What else stands in it may grow. */
const REPORTS = {
  check: {
    cluster: z.string(),
    facts: z.array(nodeFacts),
    items: z.array(
      z.looseObject({
        level: z.enum(['blocks', 'warning', 'unknown', 'fine']),
        topic: z.string(),
        node: z.string(),
        title: z.string(),
        remedy: z.string().optional(),
      }),
    ),
  },
  memory: { cluster: z.string(), nodes: z.array(z.looseObject({ node: z.string() })) },
  fit: { title: z.string(), fit: z.looseObject({}) },
  plan: { plan, facts: z.array(nodeFacts) },
  run: { run: z.string(), ended: eventSchema },
  status: {
    cluster: z.string(),
    services: z.array(
      z.looseObject({ recipe: z.string(), serving: z.boolean(), ranks: z.array(z.unknown()) }),
    ),
    unreached: z.array(z.strictObject({ node: z.string(), why: z.string() })),
    owed,
  },
  logs: { run: z.string(), attempt: z.number().int(), lines: z.array(z.strictObject(logLine)) },
  runs: { runs: z.array(runRow) },
  show: { run: z.string(), events: z.array(eventSchema) },
  diagnose: { run: z.string(), findings: z.array(finding) },
  bundle: {},
  chat: { answer: z.string(), reasoning: z.string(), finish: z.string() },
  init: { file: z.string(), nodes: z.number().int() },
  adopt: { ranks: z.array(z.unknown()) },
  said: { text: z.string() },
  lab: { text: z.string() },
} satisfies Readonly<Record<Report['kind'], z.ZodRawShape>>;

const reports = z.union(
  Object.entries(REPORTS).map(([kind, shape]) => z.looseObject({ kind: z.literal(kind), ...shape })),
);

export const answers = {
  cluster: z.strictObject({
    cluster: z.string(),
    clusterFile: z.string(),
    nodes: z.array(
      z.strictObject({
        name: z.string(),
        ssh: z.string(),
        jump: z.string().optional(),
        fabric: z.string().optional(),
      }),
    ),
    version: z.string(),
    readOnly: z.boolean(),
    scope: z.enum(['read', 'write']),
    newestRun: z.string().optional(),
  }),
  recipes: z.strictObject({
    recipes: z.array(z.strictObject({ file: z.string(), recipe: z.string(), model: z.string() })),
  }),
  runs: z.strictObject({ runs: z.array(runRow) }),
  run: z.looseObject({
    run: z.string(),
    phase: z.string(),
    lastSeq: z.number().int(),
    now: z.strictObject({ glyph: z.string(), sentence: z.string(), next: z.string() }),
    worksHere: z.boolean(),
  }),
  events: z.array(eventSchema),
  logs: z.strictObject({
    total: z.number().int().describe('rows under the filter'),
    lines: z.number().int().describe('lines under the filter: more than rows where some are folded away'),
    from: z.number().int(),
    rows: z.array(
      z.strictObject({
        ...logLine,
        attempt: z.number().int(),
        level: z.enum(['error', 'warning', '']),
        prefix: z.number().int().describe('characters of the text that are the stamp and rank of the engine'),
        marks: z.array(z.string()).optional().describe('what ranks moved on to just before it'),
        fold: z
          .strictObject({
            place: logPlace,
            kind: z.enum(['bar', 'line', 'frames']),
            count: z.number().int().describe('earlier lines, or frames of a traceback'),
            open: z.boolean(),
          })
          .optional(),
      }),
    ),
    opened: logPlace.optional().describe('the fold that was opened for the line that was asked for'),
    warnings: z.number().int(),
    errors: z.number().int(),
  }),
  strip: z.strictObject({
    total: z.number().int().describe('rows under the filter; the lists have a number for each piece'),
    lines: z.array(z.number().int()),
    milliseconds: z.array(z.number()),
    warnings: z.array(z.number().int()),
    errors: z.array(z.number().int()),
    quotes: z.array(z.number().int()).describe('lines that a finding quotes'),
    marks: z.array(z.number().int()).describe('how often a rank entered a stage or ended'),
    stops: z
      .array(logPlace.extend({ row: z.number().int() }))
      .describe('quoted lines and those at which ranks moved on, with their rows'),
  }),
  look: z.strictObject({ at: z.string(), facts: z.array(nodeFacts) }),
  engine: z.strictObject({
    samples: z.array(
      z.strictObject({
        at: z.number(),
        running: z.number().optional(),
        waiting: z.number().optional(),
        kvUsed: z.number().optional(),
        firstToken: z.number().optional(),
        firstTokenHigh: z.number().optional(),
        betweenTokens: z.number().optional(),
        betweenTokensHigh: z.number().optional(),
        tokensPerSecond: z.number().optional(),
      }),
    ),
    why: z.string().optional(),
  }),
  said: z.strictObject({ text: z.string() }),
  begun: z.strictObject({ run: z.string() }),
  report: z.strictObject({ report: reports, exit: z.number().int() }),
} as const;
