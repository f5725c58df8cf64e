import { z } from 'zod';
import { STAGES } from '../../domain/finding.ts';
import { type LogFilter, placesOf } from '../../domain/log-rows.ts';
import { nowLine } from '../../domain/now-line.ts';
import type { RunState } from '../../domain/run-state.ts';
import { logStrip } from '../../operations/logs/log-strip.ts';
import { logWindow } from '../../operations/logs/log-window.ts';
import { answers } from './answers.ts';
import { type Call, noBody, nothing, type Route, route } from './call.ts';
import { CHANNELS, channelsOf } from './channels.ts';
import { streamEvents } from './event-stream.ts';
import { Refusal } from './problem.ts';

const MOST_EVENTS = 200_000;
const MOST_ROWS = 5000;
const MOST_PIECES = 1000;

const runParam = z.strictObject({
  run: z
    .string()
    .regex(/^\d{1,15}$/, 'is no run')
    .describe('number of a run'),
});
const whole = z
  .string()
  .regex(/^\d{1,9}$/, 'must be a whole number')
  .transform(Number);
const place = z.string().regex(/^\d{1,4}-\d{1,4}-\d{1,9}$/, 'must be ATTEMPT-RANK-LINE');
const places = z
  .string()
  .regex(
    /^\d{1,4}-\d{1,4}-\d{1,9}(,\d{1,4}-\d{1,4}-\d{1,9}){0,199}$/,
    'must be ATTEMPT-RANK-LINE, 200 at most',
  );
const seq = whole.optional().describe('events after this one');

/** Which lines of a log are rows. */
const lineFilter = {
  ranks: z
    .string()
    .regex(/^\d{1,4}(,\d{1,4})*$/, 'must be ranks')
    .optional()
    .describe('such as 0,1'),
  attempt: whole.optional().describe('one attempt; all if left out'),
  stage: z.enum(STAGES).optional().describe('one stage only'),
  level: z.enum(['error', 'warning']).optional().describe('lines of this level only'),
  q: z.string().max(200).optional().describe('text that the line holds'),
  fold: z
    .enum(['yes', 'no'])
    .optional()
    .describe('yes: lines of one shape are one row, the latest; nothing that is searched for is folded'),
  open: places.optional().describe('ATTEMPT-RANK-LINE, with commas: folds that lie open, by a line in each'),
};

/** The runs: their list, states, events and logs, and how one is ended. */
export function runRoutes(): readonly Route[] {
  return [
    route(
      {
        method: 'GET',
        path: '/api/runs',
        name: 'getRuns',
        summary: 'past runs and the one that goes on, newest first',
        scope: 'read',
        params: nothing,
        query: z.strictObject({ limit: whole.optional().describe('how many; 20 if left out') }),
        body: noBody,
        answers: { 200: { about: 'the runs', schema: answers.runs } },
      },
      async ({ world, desk }, { query }) => {
        const newest = world.journal.runs().toSorted((a, b) => b.number - a.number);
        const rows = [];
        for (const summary of newest.slice(0, Math.min(query.limit ?? 20, 1000)))
          rows.push(await desk.states.row(summary));
        return { status: 200, body: { runs: rows } };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/runs/{run}',
        name: 'getRun',
        summary: 'the state of a run: the fold over its events',
        scope: 'read',
        params: runParam,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'the state', schema: answers.run } },
      },
      async (call, { params }) => {
        const state = await stateOf(call, params.run);
        const now = nowLine(state, call.world.clock.now());
        return { status: 200, body: { ...state, now, worksHere: call.desk.jobs.works(params.run) } };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/runs/{run}/events',
        name: 'getEvents',
        summary: 'events of a run: a list, or a stream that goes on as they come',
        scope: 'read',
        params: runParam,
        query: z.strictObject({
          after: seq,
          limit: whole.optional().describe('how many, for a list'),
          with: z
            .string()
            .optional()
            .describe(`other channels on the same stream: ${CHANNELS.join(', ')}`),
        }),
        body: noBody,
        answers: {
          200: {
            about: 'a list; or with Accept: text/event-stream one message per event, whose id is its number',
            schema: answers.events,
          },
          204: { about: 'a resumed stream of a run that has ended: there is nothing more' },
        },
      },
      async (call, { params, query }) => {
        const { request, response, desk, world } = call;
        if (world.journal.lastSeq(params.run) === 0) throw noRun(params.run);
        if (!/text\/event-stream/.test(String(request.headers.accept ?? ''))) {
          const limit = Math.min(query.limit ?? MOST_EVENTS, MOST_EVENTS);
          return { status: 200, body: world.journal.read(params.run, query.after ?? 0, limit) };
        }
        const resumed = resumeAt(request.headers['last-event-id']);
        const channels = channelsOf(query.with, params.run, call);
        const state =
          channels.length === 0 && resumed !== undefined ? await stateOf(call, params.run) : undefined;
        if (state?.ended !== undefined && resumed !== undefined && resumed >= state.lastSeq) {
          // This alone stops a browser from coming back.
          response.writeHead(204).end();
          return 'written';
        }
        streamEvents(response, desk, { run: params.run, afterSeq: resumed ?? query.after ?? 0, channels });
        return 'written';
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/runs/{run}/logs',
        name: 'getLogs',
        summary: 'a window of the merged log of all ranks, under a filter',
        scope: 'read',
        params: runParam,
        query: z.strictObject({
          from: whole.optional().describe('first row; the tail if left out'),
          count: whole.optional().describe('how many rows; 500 if left out, 5000 at most'),
          around: place
            .optional()
            .describe(
              'ATTEMPT-RANK-LINE: the window begins with that line, and a fold that it is in is opened',
            ),
          ...lineFilter,
        }),
        body: noBody,
        answers: { 200: { about: 'the window', schema: answers.logs } },
      },
      async (call, { params, query }) => {
        const state = await stateOf(call, params.run);
        const window = await logWindow(call.world, state, {
          from: query.from,
          count: Math.min(query.count ?? 500, MOST_ROWS),
          around: placesOf(query.around ?? '')[0],
          ...filterOf(query),
        });
        return { status: 200, body: window };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/runs/{run}/logs/strip',
        name: 'getLogStrip',
        summary:
          'the merged log from end to end, in pieces of as many rows: how fast it came, and what went wrong',
        scope: 'read',
        params: runParam,
        query: z.strictObject({
          pieces: whole.optional().describe('how many; 200 if left out, 1000 at most'),
          ...lineFilter,
        }),
        body: noBody,
        answers: { 200: { about: 'the pieces', schema: answers.strip } },
      },
      async (call, { params, query }) => {
        const state = await stateOf(call, params.run);
        const pieces = Math.min(query.pieces ?? 200, MOST_PIECES);
        return { status: 200, body: await logStrip(call.world, state, filterOf(query), pieces) };
      },
    ),
    route(
      {
        method: 'POST',
        path: '/api/runs/{run}/end',
        name: 'endRun',
        summary: 'end a run that this server works on, as Ctrl-C would',
        scope: 'write',
        params: runParam,
        query: nothing,
        body: z.strictObject({}).optional(),
        answers: { 202: { about: 'it ends where that is safe', schema: answers.begun } },
      },
      async (call, { params }) => {
        const state = await stateOf(call, params.run);
        if (!call.desk.jobs.end(params.run))
          throw new Refusal(
            409,
            'works-elsewhere',
            state.ended ? `run ${params.run} has ended` : `run ${params.run} works in another process`,
            state.ended ? 'nothing is to be ended' : 'end it there, with Ctrl-C',
          );
        return { status: 202, body: { run: params.run } };
      },
    ),
  ];
}

function filterOf(query: z.output<z.ZodObject<typeof lineFilter>>): LogFilter {
  return {
    ranks: query.ranks?.split(',').map(Number) ?? [],
    attempt: query.attempt,
    stage: query.stage,
    level: query.level,
    q: query.q ?? '',
    fold: query.fold === 'yes',
    open: placesOf(query.open ?? ''),
  };
}

async function stateOf({ desk }: Call, run: string): Promise<RunState> {
  const state = await desk.states.of(run);
  if (state === undefined) throw noRun(run);
  return state;
}

function noRun(run: string): Refusal {
  return new Refusal(404, 'no-such-run', `there is no run ${run}`, 'GET /api/runs lists them');
}

function resumeAt(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,12}$/.test(header) ? Number(header) : undefined;
}
