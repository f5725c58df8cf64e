import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a token may do. `agent` reaches /mcp alone: an agent that holds it cannot answer for a person. */
export type Scope = 'read' | 'write' | 'agent';

/** The tokens of one server, made at its start and kept in memory only. */
export type Keys = {
  /** Undefined where this server gives no such token. */
  token(scope: Scope): string | undefined;
  /** Value of the cookie that a page gets for its token; not the token. */
  cookie(scope: Scope): string | undefined;
  scopeOfToken(token: string): Scope | undefined;
  scopeOfCookie(value: string): Scope | undefined;
  /** All of these values, for taking them out of what is sent. */
  readonly all: readonly string[];
};

/** 256 random bits for each; a server that is read-only has no token that writes. */
export function newKeys(readOnly: boolean): Keys {
  const scopes: readonly Scope[] = readOnly ? ['read', 'agent'] : ['read', 'write', 'agent'];
  const tokens = new Map(scopes.map((scope) => [scope, randomBytes(32).toString('base64url')]));
  const cookies = new Map<Scope, string>();
  for (const scope of scopes)
    if (scope !== 'agent') cookies.set(scope, randomBytes(32).toString('base64url'));
  return {
    token: (scope) => tokens.get(scope),
    cookie: (scope) => cookies.get(scope),
    scopeOfToken: (token) => find(tokens, token),
    scopeOfCookie: (value) => find(cookies, value),
    all: [...tokens.values(), ...cookies.values()],
  };
}

function find(known: ReadonlyMap<Scope, string>, given: string): Scope | undefined {
  let found: Scope | undefined;
  // All of them are compared, in a time that does not tell how much was right.
  for (const [scope, value] of known) if (timingSafeEqual(hash(value), hash(given))) found = scope;
  return found;
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
