import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { arbitraryOf } from './from-schema.ts';
import { type Answer, openRig, type Rig } from './rig.ts';

/** Requests for each address: as its document says, and as it does not. */
const RUNS = Number(process.env['FIRSTLIGHT_FUZZ'] ?? 20);

const parameter = z.looseObject({
  name: z.string(),
  in: z.enum(['path', 'query']),
  required: z.boolean(),
  schema: z.unknown(),
});
const content = z.record(z.string(), z.looseObject({ schema: z.record(z.string(), z.unknown()) }));
const operation = z.looseObject({
  operationId: z.string(),
  parameters: z.array(parameter),
  requestBody: z.looseObject({ content }).optional(),
  responses: z.record(z.string(), z.looseObject({ content: content.optional() })),
});
const document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: z.record(z.string(), z.record(z.string(), z.unknown())) }),
});
type Operation = z.output<typeof operation>;

let rig: Rig;
let paths: z.output<typeof document>['paths'] = {};
let problem: z.ZodType = z.never();
beforeAll(async () => {
  rig = await openRig();
  const read = document.parse((await rig.get('/api/openapi.json')).json());
  paths = read.paths;
  problem = z.fromJSONSchema(read.components.schemas['Problem'] ?? {});
  await rig.post('/api/operations/status', {});
  await rig.post('/api/operations/down', {});
}, 60_000);
afterAll(() => rig.close());

/** What would ask names of other machines, or is more interesting when it exists. */
const HINTS = {
  nodes: fc.constantFrom([], ['spark-a=127.0.0.1,port=1'], ['spark-a'], ['=']),
  sshConfig: fc.constantFrom('/dev/null', '/nowhere', ''),
  recipe: fc.oneof(
    fc.constantFrom('recipe.yaml', 'cluster.yaml', '../recipe.yaml', '/etc/passwd', 'a\0.yaml'),
    fc.string(),
  ),
  run: fc.oneof(fc.constantFrom('1', '2', '999999', '007', '-1', '1e3'), fc.string()),
  with: fc.constantFrom('log', 'ledger,log', 'runs', ',,'),
  // Both would hold the request open by design where they are taken.
  wait: fc.constant(false),
  maxTokens: fc.integer({ min: -2, max: 20 }),
} as const;

function requestOf(path: string, method: string, { parameters, requestBody }: Operation, valid: boolean) {
  const schema = Object.values(requestBody?.content ?? {})[0]?.schema;
  const body =
    schema === undefined ? fc.constant(undefined) : valid ? arbitraryOf(schema, HINTS) : fc.jsonValue();
  const values = fc.record(
    Object.fromEntries(
      parameters.map((one) => [
        `${one.in} ${one.name}`,
        valid || one.in === 'path' ? arbitraryOf(one.schema, HINTS, one.name) : fc.string(),
      ]),
    ),
    { requiredKeys: parameters.filter((one) => one.required).map((one) => `${one.in} ${one.name}`) },
  );
  return fc.tuple(values, body).map(([given, sent]) => {
    let where = path;
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(given)) {
      const [place, name = ''] = key.split(' ');
      if (place === 'path') where = where.replace(`{${name}}`, encodeURIComponent(String(value)));
      else query.set(name, String(value));
    }
    return { method: method.toUpperCase(), path: `${where}?${query}`, body: sent };
  });
}

function checkAnswer({ responses }: Operation, answer: Answer): void {
  const type = String(answer.headers['content-type'] ?? '').split(';')[0] ?? '';
  if (answer.status >= 400) {
    expect(type).toBe('application/problem+json');
    expect(problem.safeParse(answer.json()).error).toBeUndefined();
    // Nothing that is asked makes a mistake of ours; what cannot be had now says so.
    expect([500, 502, 504]).not.toContain(answer.status);
    expect(answer.text).not.toMatch(/\bat \S+ \(|node:internal|root:x:0/);
    return;
  }
  const told = responses[String(answer.status)];
  expect(told, `status ${answer.status} is in the document`).toBeDefined();
  const schema = told?.content?.[type]?.schema;
  if (answer.status === 204) return;
  expect(schema, `${type} is in the document`).toBeDefined();
  if (schema === undefined || type === 'text/plain') return;
  expect(z.fromJSONSchema(schema).safeParse(answer.json()).error).toBeUndefined();
}

it.each([true, false])(
  'whatever is asked (by the document: %s), the answer is one that the document tells',
  async (valid) => {
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, one] of Object.entries(methods)) {
        await fc.assert(
          fc.asyncProperty(
            requestOf(path, method, one, valid),
            async ({ method: verb, path: where, body }) => {
              const headers = {
                Authorization: `Bearer ${rig.addresses.write}`,
                ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
              };
              const answer = await rig.ask({
                method: verb,
                path: where,
                headers,
                ...(body === undefined ? {} : { body: JSON.stringify(body) }),
              });
              checkAnswer(one, answer);
            },
          ),
          { numRuns: RUNS },
        );
      }
    }
  },
  240_000,
);
