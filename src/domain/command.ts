/** One argument: plain text, or the name of a secret whose value only `remote/shell.ts` ever sees. */
export type Word = string | { readonly secret: string };

/** Something to run on a node, as a value. It holds no shell text: `remote/shell.ts` alone quotes. */
export type Command = {
  readonly argv: readonly Word[];
  /** Text given on standard input; scripts go in this way (`argv: ['sh', '-s', '--', …]`). */
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, Word>>;
  /** Run as root: `sudo -n` first, with the run's password where that is refused. */
  readonly sudo?: boolean;
  readonly timeoutSeconds?: number;
};

/** A POSIX sh script with its positional arguments, as a Command. */
export function script(
  text: string,
  args: readonly Word[] = [],
  more: Omit<Command, 'argv' | 'stdin'> = {},
): Command {
  return { argv: ['sh', '-s', '--', ...args], stdin: text, ...more };
}

/** What became of a Command. `lost` is the connection, never the command's own failure. */
export type Ran =
  | {
      readonly kind: 'ran';
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
      readonly milliseconds: number;
    }
  | { readonly kind: 'timeout'; readonly seconds: number; readonly stdout: string; readonly stderr: string }
  | {
      readonly kind: 'refused';
      readonly why: 'sudo-needs-password' | 'sudo-password-wrong' | 'sudo-missing';
      readonly text: string;
    }
  | { readonly kind: 'lost'; readonly failure: Unreachable };

/** Why a host cannot be reached, told apart; `text` is what ssh said. */
export type UnreachableWhy =
  | 'no-route'
  | 'refused'
  | 'timeout-connect'
  | 'timeout-banner'
  | 'key-refused'
  | 'passphrase-needed'
  | 'host-key-unknown'
  | 'host-key-changed'
  | 'jump-may-not-forward'
  | 'jump-unreachable'
  | 'too-many-connections'
  | 'name-unknown'
  | 'closed'
  | 'unknown';

export type Unreachable = {
  readonly kind: 'unreachable';
  readonly why: UnreachableWhy;
  /** One plain sentence that names the node. */
  readonly sentence: string;
  /** What to run, or to look at, to mend it. */
  readonly remedy: string;
  readonly text: string;
  /** For host-key-unknown: `SHA256:…` and the key type, fetched without authenticating. */
  readonly hostKey?: { readonly type: string; readonly fingerprint: string };
};
