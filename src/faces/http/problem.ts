import { z } from 'zod';
import { UserError, type UserErrorCode } from '../../domain/user-error.ts';

/** RFC 9457. `code` is ours: the closed list of user errors, and a few of this face. */
export const problemSchema = z.strictObject({
  type: z.string().describe('urn:firstlight:problem:CODE'),
  title: z.string().describe('what it is, always the same for a code'),
  status: z.number().int(),
  detail: z.string().describe('what happened, and why'),
  code: z.string(),
  hint: z.string().describe('what to do'),
});

export type Problem = z.output<typeof problemSchema>;

/** Refused by this face itself; `hint` says what would do. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: number,
    code: string,
    message: string,
    hint: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.headers = headers;
  }
}

const STATUS: Readonly<Record<UserErrorCode, number>> = {
  'bad-cluster-file': 422,
  'bad-recipe-file': 422,
  'bad-input': 422,
  'host-key-unknown': 409,
  'host-key-changed': 409,
  'unreadable-key': 422,
  'lock-held': 409,
  'consent-needed': 409,
  'bad-password-file': 422,
  'bad-policy-file': 422,
  'plan-changed': 409,
  'does-not-divide': 422,
  'wrong-image': 409,
  'needs-replace': 409,
  'no-such-run': 404,
  'not-serving': 503,
  'api-key-missing': 422,
  'ssh-missing': 503,
  'ranks-run': 409,
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is malformed',
  401: 'No valid token',
  403: 'Not allowed',
  404: 'There is no such thing',
  405: 'Not this method',
  406: 'Not in that form',
  409: 'The state of things stands against it',
  413: 'The body is too large',
  414: 'The address is too long',
  415: 'The body has the wrong type',
  421: 'Not the host that answers here',
  422: 'The input is not valid',
  500: "This is our mistake, not your cluster's",
  503: 'It cannot be answered now',
};

/** What an error is as problem+json; a bug tells nothing of its inside. */
export function problemOf(error: unknown): Problem {
  if (error instanceof UserError) return problem(STATUS[error.code], error.code, error.message, error.hint);
  if (error instanceof Refusal) return problem(error.status, error.code, error.message, error.hint);
  return problem(
    500,
    'bug',
    'the request ran into a mistake of ours',
    'the terminal of firstlight serve shows it',
  );
}

function problem(status: number, code: string, detail: string, hint: string): Problem {
  const title = TITLES[status] ?? 'Refused';
  return { type: `urn:firstlight:problem:${code}`, title, status, detail, code, hint };
}
