import { z } from 'zod';
import { STAGES } from '../../domain/finding.ts';
import { nowLine } from '../../domain/now-line.ts';
import type { RunState } from '../../domain/run-state.ts';
import { consent } from '../../operations/answer-consent.ts';
import { logWindow } from '../../operations/log-window.ts';
import type { Operation } from '../../operations/operation.ts';
import { knownRecipes } from '../../operations/recipes.ts';
import { answers } from './answers.ts';
import { type Call, noBody, nothing, type Route, route } from './call.ts';
import { CHANNELS, channelsOf } from './channels.ts';
import { streamEvents } from './event-stream.ts';
import { openApi } from './openapi.ts';
import { operationRoutes } from './operation-routes.ts';
import { Refusal } from './problem.ts';
import { metricsText } from './prometheus.ts';

const MOST_EVENTS = 200_000;
const MOST_ROWS = 5000;
/** A look that is younger is shown as it is; `fresh` asks for another. */
const LOOK_MILLISECONDS = 30_000;
const FRESH_MILLISECONDS = 1000;

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
const seq = whole.optional().describe('events after this one');

/** Every address of the API, less the page and /mcp. */
export function allRoutes(operations: readonly Operation[], version: string): readonly Route[] {
  const routes: Route[] = [
    route(
      {
        method: 'GET',
        path: '/api/cluster',
        name: 'getCluster',
        summary: 'the cluster file, and what this client may do',
        scope: 'read',
        params: nothing,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'the cluster', schema: answers.cluster } },
      },
      async ({ world, desk, scope }) => {
        const { cluster } = world;
        const nodes = cluster.nodes.map(({ name, ssh, jump, fabric }) => ({ name, ssh, jump, fabric }));
        return {
          status: 200,
          body: {
            cluster: cluster.name,
            clusterFile: world.clusterFile,
            nodes,
            version: world.version,
            readOnly: desk.readOnly,
            scope,
            newestRun: world.journal.latest(),
          },
        };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/recipes',
        name: 'getRecipes',
        summary: 'the recipes beside the cluster file',
        scope: 'read',
        params: nothing,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'the recipes', schema: answers.recipes } },
      },
      async ({ world }) => ({ status: 200, body: { recipes: knownRecipes(world) } }),
    ),
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
          around: z
            .string()
            .regex(/^\d{1,4}-\d{1,4}-\d{1,9}$/, 'must be ATTEMPT-RANK-LINE')
            .optional()
            .describe('ATTEMPT-RANK-LINE: the window begins with that row'),
          ranks: z
            .string()
            .regex(/^\d{1,4}(,\d{1,4})*$/, 'must be ranks')
            .optional()
            .describe('such as 0,1'),
          attempt: whole.optional().describe('one attempt; all if left out'),
          stage: z.enum(STAGES).optional().describe('one stage only'),
          level: z.enum(['error', 'warning']).optional().describe('lines of this level only'),
          q: z.string().max(200).optional().describe('text that the line holds'),
        }),
        body: noBody,
        answers: { 200: { about: 'the window', schema: answers.logs } },
      },
      async (call, { params, query }) => {
        const state = await stateOf(call, params.run);
        const window = await logWindow(call.world, state, {
          from: query.from,
          count: Math.min(query.count ?? 500, MOST_ROWS),
          around: placeOf(query.around),
          ranks: query.ranks?.split(',').map(Number) ?? [],
          attempt: query.attempt,
          stage: query.stage,
          level: query.level,
          q: query.q ?? '',
        });
        return { status: 200, body: window };
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
    route(
      {
        method: 'GET',
        path: '/api/look',
        name: 'getLook',
        summary: 'what the nodes hold, as seen last',
        scope: 'read',
        params: nothing,
        query: z.strictObject({ fresh: z.enum(['0', '1']).optional().describe('1 looks again') }),
        body: noBody,
        answers: { 200: { about: 'one look', schema: answers.look } },
      },
      async ({ desk }, { query }) => {
        const { at, facts } = await desk.looks.fresh(
          query.fresh === '1' ? FRESH_MILLISECONDS : LOOK_MILLISECONDS,
        );
        return { status: 200, body: { at: new Date(at).toISOString(), facts } };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/api/metrics-of-engine',
        name: 'getEngineMetrics',
        summary: "the engine's own numbers of the last hour",
        scope: 'read',
        params: nothing,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'samples, newest last; why there are none', schema: answers.engine } },
      },
      async ({ desk }) => {
        await desk.engine.fresh(1000);
        return { status: 200, body: { samples: desk.engine.all(), why: desk.engine.why() } };
      },
    ),
    route(
      {
        method: 'POST',
        path: '/api/consent',
        name: 'answerConsent',
        summary: 'a person’s answer to a run that waits for it, wherever that run works',
        scope: 'write',
        params: nothing,
        query: nothing,
        body: z.strictObject({
          run: z.string().max(20).describe('number of the run'),
          allowed: z
            .array(z.string().max(64))
            .max(1000)
            .default([])
            .describe('ids of the steps that are allowed'),
          refused: z.array(z.string().max(64)).max(1000).default([]).describe('ids of those that are not'),
          plan: z.string().max(64).optional().describe('digest of the plan that was looked at'),
        }),
        answers: { 200: { about: 'what was answered', schema: answers.said } },
      },
      async ({ world }, { body }) => {
        const answer = await consent.run(
          { run: body.run, allow: body.allowed, refuse: body.refused.length > 0, plan: body.plan },
          world,
        );
        return { status: 200, body: { text: answer.report.kind === 'said' ? answer.report.text : '' } };
      },
    ),
    ...operationRoutes(operations),
    route(
      {
        method: 'GET',
        path: '/metrics',
        name: 'getMetrics',
        summary: 'numbers of firstlight and of what it sees on the nodes, for Prometheus',
        scope: 'read',
        params: nothing,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'text exposition format 0.0.4', type: 'text/plain' } },
      },
      async ({ desk, world }) => ({
        status: 200,
        type: 'text/plain; version=0.0.4; charset=utf-8',
        text: await metricsText(desk, world),
      }),
    ),
    route(
      {
        method: 'GET',
        path: '/api/openapi.json',
        name: 'getOpenApi',
        summary: 'this document',
        scope: 'read',
        params: nothing,
        query: nothing,
        body: noBody,
        answers: { 200: { about: 'OpenAPI 3.1', schema: z.looseObject({ openapi: z.literal('3.1.0') }) } },
      },
      async () => ({ status: 200, body: openApi(routes, version) }),
    ),
  ];
  return routes;
}

function placeOf(text: string | undefined) {
  const [attempt, rank, line] = (text ?? '').split('-').map(Number);
  return attempt === undefined || rank === undefined || line === undefined
    ? undefined
    : { attempt, rank, line };
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
