/** The closed list of things a user can mend; faces show them without a stack and exit with 2. */
export type UserErrorCode =
  | 'bad-cluster-file'
  | 'bad-recipe-file'
  | 'bad-input'
  | 'host-key-unknown'
  | 'host-key-changed'
  | 'unreadable-key'
  | 'lock-held'
  | 'consent-needed'
  | 'bad-password-file'
  | 'bad-policy-file'
  | 'plan-changed'
  | 'does-not-divide'
  | 'wrong-image'
  | 'needs-replace'
  | 'no-such-run'
  | 'not-serving'
  | 'api-key-missing'
  | 'ssh-missing'
  | 'ranks-run';

/** What, why, and how to mend it: `message` is the what and why, `hint` the way out. */
export class UserError extends Error {
  readonly code: UserErrorCode;
  readonly hint: string;
  constructor(code: UserErrorCode, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'UserError';
    this.code = code;
    this.hint = hint;
  }
}
