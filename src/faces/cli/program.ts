import { Command } from 'commander';
import { UserError } from '../../domain/user-error.ts';
import type { Operation } from '../../operations/operation.ts';
import { completion, Place, SHELLS } from './completion.ts';
import { addField, fieldsOf, inputOf } from './flags.ts';
import { commandLines, layOut } from './help.ts';
import { wrap } from './width.ts';

/** What every command takes. */
export type Globals = {
  readonly cluster: string | undefined;
  readonly json: boolean;
  readonly plain: boolean;
  readonly verbose: boolean;
  readonly sudoPasswordFiles: readonly string[];
  readonly acceptHostKeys: readonly string[];
};

export type Run = (
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
  globals: Globals,
) => Promise<void>;

/** The commander program: one command per operation, its flags from the operation's schema. */
export function buildProgram(parts: {
  readonly operations: readonly Operation[];
  readonly run: Run;
  readonly version: string;
  readonly print: (text: string) => void;
  /** Of the terminal that help is printed on; 80 if left out. */
  readonly columns?: number;
}): Command {
  const { columns = COLUMNS } = parts;
  const program = new Command('firstlight')
    .description('Brings large language models up on several machines over SSH, and looks whether it worked.')
    .version(parts.version, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(firstlight --help lists what there is)')
    .option('--cluster <FILE>', 'cluster file (or FIRSTLIGHT_CLUSTER; ./cluster.yaml if left out)')
    .option('--json', 'print events or the result as JSON')
    .option('--plain', 'print lines, draw nothing over')
    .option('--verbose', 'print more: whole commands, every line')
    .option('--sudo-password-file <[NODE=]FILE>', "file with sudo's password, mode 0600; repeatable", collect)
    .option('--accept-host-key <NODE=FINGERPRINT>', 'accept the host key that was shown; repeatable', collect)
    .addHelpText('after', firstSteps(columns))
    .exitOverride();
  for (const operation of parts.operations) addOperation(program, operation, parts.run, columns);
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Place('<shell>', SHELLS.join(', '), SHELLS))
    .addHelpText('after', '\nExample:\n  source <(firstlight completion bash)\n')
    .action((shell: string) => {
      const script = completion(program, shell);
      if (script === undefined) {
        throw new UserError(
          'bad-input',
          `There is no completion for "${shell}".`,
          `Use one of ${SHELLS.join(', ')}.`,
        );
      }
      parts.print(script);
    });
  layOut(program, columns);
  return program;
}

/** What a terminal has that does not say. */
const COLUMNS = 80;

const FIRST_STEPS = [
  'firstlight init spark-a=aurora@10.1.230.180 spark-b=192.168.200.13,jump=spark-a',
  'firstlight check recipe.yaml',
  'firstlight up recipe.yaml',
];
const EXIT_CODES =
  'Exit codes: 0 done or answered, 1 the cluster is not as wanted, 2 you can mend it, 3 our mistake.';

function firstSteps(columns: number): string {
  return [
    '',
    'First steps:',
    ...FIRST_STEPS.map((command) => commandLines(command, columns)),
    'Without any host:',
    commandLines('firstlight lab story two-sparks', columns),
    '',
    ...wrap(EXIT_CODES, columns),
    '',
  ].join('\n');
}

function addOperation(program: Command, operation: Operation, run: Run, columns: number): void {
  const fields = fieldsOf(operation.input);
  const command = program.command(operation.name).description(operation.summary);
  for (const field of fields) addField(command, field);
  const example = fields.find((field) => field.example !== undefined)?.example;
  const line = ['firstlight', operation.name, example].filter((part) => part !== undefined).join(' ');
  command.addHelpText('after', `\nExample:\n${commandLines(line, columns)}\n`);
  command.action(async () => {
    const globals = globalsOf(program.opts());
    await run(operation, inputOf(fields, command.processedArgs, command.opts()), globals);
  });
}

function globalsOf(options: Readonly<Record<string, unknown>>): Globals {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const texts = (value: unknown): readonly string[] =>
    Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  return {
    cluster: text(options['cluster']),
    json: options['json'] === true,
    plain: options['plain'] === true,
    verbose: options['verbose'] === true,
    sudoPasswordFiles: texts(options['sudoPasswordFile']),
    acceptHostKeys: texts(options['acceptHostKey']),
  };
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}
