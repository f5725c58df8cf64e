import { z } from 'zod';
import type { Route, Told } from './call.ts';
import { problemSchema } from './problem.ts';

type Json = Readonly<Record<string, unknown>>;

/** The OpenAPI 3.1 document of these routes, from the very schemas that requests are read with. */
export function openApi(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'firstlight',
      version,
      summary: 'Brings large language models up on several machines over SSH.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'a token that firstlight serve printed' },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: 'firstlight-PORT',
          description: 'set by the first address',
        },
      },
      schemas: { Problem: jsonSchema(problemSchema, 'output') },
    },
  };
}

function operationOf(route: Route): Json {
  const body = jsonSchema(route.body, 'input');
  const takesBody = route.method === 'POST' && (body['type'] !== undefined || body['anyOf'] !== undefined);
  const optional = route.body.safeParse(undefined).success;
  return {
    operationId: route.name,
    summary: route.summary,
    description:
      route.scope === 'write' ? 'Needs a token that may change things.' : 'Any token of a person will do.',
    parameters: [...parametersOf(route.params, 'path'), ...parametersOf(route.query, 'query')],
    ...(takesBody
      ? { requestBody: { required: !optional, content: { 'application/json': { schema: body } } } }
      : {}),
    responses: {
      ...Object.fromEntries(Object.entries(route.answers).map(([status, told]) => [status, answerOf(told)])),
      default: {
        description: 'refused, or it went wrong',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

function answerOf({ about, schema, type = 'application/json' }: Told): Json {
  if (schema === undefined && type === 'application/json') return { description: about };
  const content =
    schema === undefined ? { schema: { type: 'string' } } : { schema: jsonSchema(schema, 'output') };
  return { description: about, content: { [type]: content } };
}

function parametersOf(schema: z.ZodObject, where: 'path' | 'query'): readonly Json[] {
  const described = z
    .looseObject({ properties: z.record(z.string(), z.looseObject({})).default({}) })
    .parse(jsonSchema(schema, 'input'));
  return Object.entries(described.properties).map(([name, value]) => {
    const { description, ...rest } = value;
    return {
      name,
      in: where,
      required: where === 'path' || !(schema.shape[name]?.safeParse(undefined).success ?? true),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

/** JSON Schema of the dialect that OpenAPI 3.1 takes; what belongs to the command line alone is left out. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const made = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema: one }) => {
      for (const key of ['positional', 'example', 'value', 'without', 'short']) delete one[key];
    },
  });
  const { $schema, ...rest } = made;
  return rest;
}
