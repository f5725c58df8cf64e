import { z } from 'zod';
import type { ClusterInfo } from '../../domain/cluster.ts';
import { consent } from '../../operations/answer-consent.ts';
import type { Operation } from '../../operations/operation.ts';
import { knownRecipes } from '../../operations/recipes.ts';
import { answers } from './answers.ts';
import { noBody, nothing, type Route, route } from './call.ts';
import { openApi } from './openapi.ts';
import { operationRoutes } from './operation-routes.ts';
import { metricsText } from './prometheus.ts';
import { runRoutes } from './run-routes.ts';

/** A look that is younger is shown as it is; `fresh` asks for another. */
const LOOK_MILLISECONDS = 30_000;
const FRESH_MILLISECONDS = 1000;

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
        const info: ClusterInfo = {
          cluster: cluster.name,
          clusterFile: world.clusterFile,
          nodes,
          version: world.version,
          readOnly: desk.readOnly,
          scope: scope === 'write' ? 'write' : 'read',
          newestRun: world.journal.latest(),
        };
        return { status: 200, body: info };
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
    ...runRoutes(),
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
