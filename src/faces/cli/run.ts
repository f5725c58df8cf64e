import { type Command, CommanderError } from 'commander';
import { UserError } from '../../domain/user-error.ts';
import { safeJson } from './clean.ts';
import { buildProgram } from './program.ts';
import { renderBug, renderUserError } from './render-error.ts';
import { type CliParts, carryOut, type Output } from './session.ts';
import { styleOf } from './style.ts';

/** argv (without node and script) → exit code: 0 done, 1 not as wanted, 2 the user can mend it, 3 our bug. */
export async function runCli(argv: readonly string[], parts: CliParts): Promise<number> {
  const json = argv.includes('--json');
  const verbose = argv.includes('--verbose');
  const write = (stream: Output) => (text: string) => void stream.write(text);
  const stdout = write(parts.stdout);
  const stderr = write(parts.stderr);
  let unwritten: NodeJS.ErrnoException | undefined;
  for (const stream of [parts.stdout, parts.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // `firstlight runs | head` closes our output early; that is no mistake of anybody.
      if (error.code !== 'EPIPE') unwritten ??= error;
    });
  const told = { changed: false, ended: false };
  let exit = 0;
  const program = buildProgram({
    operations: parts.operations,
    version: parts.version,
    print: stdout,
    columns: styleOf(parts.stdout, parts.env, Date.now(), verbose).columns,
    run: async (operation, input, globals) => {
      exit = await carryOut(operation, input, globals, parts, told);
    },
  });
  quietly(program, { stdout, stderr: json ? () => {} : stderr });
  try {
    await program.parseAsync([...argv], { from: 'user' });
    await flushed(parts.stdout);
    if (unwritten === undefined) return exit;
    stderr(`${unwritten.message}: the result could not be written\n`);
    return Math.max(exit, 2);
  } catch (error) {
    const style = styleOf(parts.stderr, parts.env, Date.now(), verbose);
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) stdout(jsonError('bad-input', error.message.replace(/^error: /, ''), 'firstlight --help'));
      return 2;
    }
    if (error instanceof UserError) {
      const code = error.code === 'not-serving' ? 1 : 2;
      // A run that was told as events has its reason in run-ended, which stays the last line.
      if (json && !told.ended) stdout(jsonError(error.code, error.message, error.hint));
      else if (json) return code;
      else stderr(renderUserError(error, told.changed, style));
      return code;
    }
    const message = error instanceof Error ? error.message : String(error);
    if (json) stdout(jsonError('bug', message, "This is our mistake, not your cluster's."));
    stderr(renderBug(error, told.changed, parts.version, style));
    return 3;
  }
}

function quietly(
  program: Command,
  out: { readonly stdout: (text: string) => void; readonly stderr: (text: string) => void },
): void {
  for (const command of [program, ...program.commands]) {
    command.configureOutput({ writeOut: out.stdout, writeErr: out.stderr });
  }
}

function jsonError(code: string, message: string, hint: string): string {
  return `${safeJson({ error: { code, message, hint } })}\n`;
}

/** Until everything written so far is out, or was refused. */
function flushed(stream: Output): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}
