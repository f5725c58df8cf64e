import type { Command, Word } from '../domain/command.ts';
import { quote } from '../domain/quote.ts';

/** How root is to be had: not at all, without a password or not at all, by trying alone, or with the password. */
export type SudoMode = 'none' | 'free' | 'try' | { readonly password: string };

/** What goes to ssh: a command string that every login shell reads alike, and everything else over stdin. */
export type Rendered = { readonly remote: string; readonly stdin: string };

/**
 * `sh` reads a byte count, exactly so many bytes of script, and runs them; what is left of stdin belongs to the
 * command. No quote, backslash or newline of ours passes through the login shell (sh, bash, zsh, fish, csh),
 * and nothing of ours is in argv.
 */
export const BOOT = `IFS= read -r n; s=$(dd bs=1 count=$n 2>/dev/null; echo x); case $s in *"#whole"x) eval "\${s%x}";; esac`;

/** A script for BOOT on stdin, with what follows it. A connection that breaks halfway runs nothing of it. */
export function boot(script: string, rest = ''): string {
  const whole = `${script}\n#whole`;
  return `${Buffer.byteLength(whole)}\n${whole}${rest}`;
}

/**
 * Renders a command between marker lines on stdout and stderr. The end line is `<marker>:<code>`, or
 * `<marker>:-missing`, `-password` or `-wrong` where sudo was refused. Secrets are resolved here and nowhere else.
 */
export function render(
  command: Command,
  {
    marker,
    sudo,
    secret,
  }: { readonly marker: string; readonly sudo: SudoMode; readonly secret: (name: string) => string },
): Rendered {
  const root = command.sudo === true && sudo !== 'none';
  const whole = wholeScript(command);
  const inner = root ? withSecretsOverStdin(whole, secret) : whole;
  const script = [
    `fl_m=${marker}`,
    `fl_begin() { printf '%s\\n' "$fl_m"; printf '%s\\n' "$fl_m" >&2; }`,
    `fl_end() { printf '%s:%s\\n' "$fl_m" "$1"; printf '%s:%s\\n' "$fl_m" "$1" >&2; exit 0; }`,
    ...exports(root ? {} : (inner.env ?? {}), secret),
    `set -- ${words(inner.argv)}`,
    ...(root ? sudoLines(inner, sudo) : timeoutLines(command.timeoutSeconds)),
    'fl_begin',
    runLine(inner.stdin, root && typeof sudo === 'object'),
    'fl_end $?',
    '',
  ].join('\n');
  const rest = root && typeof sudo === 'object' ? `${sudo.password}\n` : (inner.stdin ?? '');
  return { remote: `exec sh -c '${BOOT}'`, stdin: boot(script, rest) };
}

/** A command as the text of a script that can be kept on a node and run later. It must not name secrets. */
export function scriptOf(command: Command): string {
  const none = (name: string): string => {
    throw new Error(`the secret ${name} may not be written into a script`);
  };
  return [
    ...exports(command.env ?? {}, none),
    `set -- ${words(command.argv)}`,
    runLine(command.stdin, command.stdin !== undefined),
    '',
  ].join('\n');
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function exports(env: Readonly<Record<string, Word>>, secret: (name: string) => string): readonly string[] {
  return Object.entries(env).map(([name, word]) => {
    if (!NAME.test(name)) throw new Error(`${name} cannot be a variable's name`);
    return `${name}=${quote(typeof word === 'string' ? word : secret(word.secret))}; export ${name}`;
  });
}

function words(argv: readonly Word[]): string {
  if (argv.length === 0) throw new Error('a command needs a program');
  return argv
    .map((word) => {
      if (typeof word !== 'string')
        throw new Error('a secret may not be an argument: pass it in the environment');
      return quote(word);
    })
    .join(' ');
}

/** `sh -s` runs line by line as they come: in braces it runs when all of them are there, or not at all. */
function wholeScript(command: Command): Command {
  return command.argv[0] === 'sh' && command.argv[1] === '-s' && command.stdin !== undefined
    ? { ...command, stdin: `{ :\n${command.stdin}\n}\n` }
    : command;
}

/** Nothing of stdin left for it: /dev/null; the password is in the way: a here-document; else what is left. */
function runLine(stdin: string | undefined, inlined: boolean): string {
  if (stdin === undefined) return '"$@" </dev/null';
  if (!inlined) return '"$@"';
  let end = 'FIRSTLIGHT_END';
  while (stdin.includes(end)) end += '_';
  return stdin.endsWith('\n') || stdin === ''
    ? `"$@" <<'${end}'\n${stdin}${end}`
    : // A here-document ends in a newline that the text has not.
      `dd bs=1 count=${byteLength(stdin)} 2>/dev/null <<'${end}' | "$@"\n${stdin}\n${end}`;
}

/** Where `timeout` is missing, the channel's end on our side is all there is. */
function timeoutLines(seconds: number | undefined): readonly string[] {
  if (seconds === undefined) return [];
  return [`if command -v timeout >/dev/null 2>&1; then set -- timeout -k 2 ${seconds} "$@"; fi`];
}

/**
 * A ticket of sudo belongs to the parent process where there is no terminal: so the check and the command run
 * from this very shell, and `timeout` comes after sudo.
 */
function sudoLines(command: Command, sudo: SudoMode): readonly string[] {
  const env = Object.entries(command.env ?? {}).map(([name, word]) => {
    if (typeof word !== 'string' || !NAME.test(name)) throw new Error('not a plain variable');
    return quote(`${name}=${word}`);
  });
  const elevated = [
    // Where only some commands are free, sudoers names them as they are.
    ...(sudo === 'try' ? [] : timeoutLines(command.timeoutSeconds)),
    ...(env.length > 0 ? [`set -- env ${env.join(' ')} "$@"`] : []),
    // The root prefix and its tools outlive sudo's cleaning.
    'if [ -n "$FIRSTLIGHT_ROOT" ]; then',
    '  set -- env "FIRSTLIGHT_ROOT=$FIRSTLIGHT_ROOT" "PATH=$PATH" "$@"',
    'fi',
    'set -- sudo -n "$@"',
  ];
  const check =
    typeof sudo === 'object'
      ? [`sudo -S -p '' -v || { fl_begin; fl_end -wrong; }`]
      : sudo === 'free'
        ? [`sudo -n true </dev/null || { fl_begin; fl_end -password; }`]
        : [];
  return [
    'if [ "$(id -u)" = 0 ]; then',
    '  :',
    ...(env.length > 0 ? [`  set -- env ${env.join(' ')} "$@"`] : []),
    ...timeoutLines(command.timeoutSeconds).map((line) => `  ${line}`),
    'else',
    '  command -v sudo >/dev/null 2>&1 || { fl_begin; fl_end -missing; }',
    ...check.map((line) => `  ${line}`),
    ...elevated.map((line) => `  ${line}`),
    'fi',
  ];
}

/** Root's argv and environment must not show secrets: they go through the boot script's stdin instead. */
function withSecretsOverStdin(command: Command, secret: (name: string) => string): Command {
  const env = Object.entries(command.env ?? {});
  const secrets = Object.fromEntries(env.filter(([, word]) => typeof word !== 'string'));
  if (Object.keys(secrets).length === 0) return command;
  const script = `${exports(secrets, secret).join('\n')}\n"$@"${command.stdin === undefined ? ' </dev/null' : ''}\n`;
  return {
    ...command,
    argv: ['sh', '-c', BOOT, 'sh', ...command.argv],
    env: Object.fromEntries(env.filter(([, word]) => typeof word === 'string')),
    stdin: boot(script, command.stdin),
  };
}

function byteLength(text: string): number {
  return Buffer.byteLength(text);
}
