import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { World } from '../../operations/world.ts';
import type { Desk } from './desk.ts';
import type { Scope } from './keys.ts';
import { Refusal } from './problem.ts';

/** One request that was let in. */
export type Call = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly scope: Scope;
  /** A World of its own, which ends when the client goes away. */
  readonly world: World;
  readonly desk: Desk;
};

/** A whole answer, or one that the route writes by itself. */
export type Reply =
  | { readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly text: string; readonly type: string }
  | 'written';

/** One of a route's answers, as the OpenAPI document tells it. */
export type Told = { readonly about: string; readonly schema?: z.ZodType; readonly type?: string };

export type Raw = {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
};

type Shape<P, Q, B> = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `{name}` for one part of the path. */
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly scope: 'read' | 'write';
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly answers: Readonly<Record<number, Told>>;
};

export type Route = Shape<z.ZodObject, z.ZodObject, z.ZodType> & {
  handle(call: Call, raw: Raw): Promise<Reply>;
};

/** For routes without parameters, query or body. */
export const nothing = z.strictObject({});
export const noBody = z.undefined();

/** A route whose handler gets what its schemas made of the request; what they refuse is answered with 422. */
export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType>(
  shape: Shape<P, Q, B>,
  handle: (
    call: Call,
    input: { readonly params: z.output<P>; readonly query: z.output<Q>; readonly body: z.output<B> },
  ) => Promise<Reply>,
): Route {
  return {
    ...shape,
    handle: (call, raw) =>
      handle(call, {
        params: valid(shape.params, raw.params, ''),
        query: valid(shape.query, raw.query, '?'),
        body: valid(shape.body, raw.body, ''),
      }),
  };
}

/** What the schema makes of a value; a Refusal that names each place where it does not fit. */
export function valid<S extends z.ZodType>(schema: S, value: unknown, before: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const said = parsed.error.issues
    .slice(0, 10)
    .map(({ path, message }) =>
      path.length === 0 ? message : `${before}${path.map(String).join('.')}: ${message}`,
    );
  throw new Refusal(422, 'bad-input', said.join('; '), 'see /api/openapi.json for what it takes');
}
