import type { Command, Option } from 'commander';

/** The manual page, section 1, made from the same descriptions as --help. Exit codes and files are told here alone. */
export function manPage(program: Command, version: string): string {
  const commands = program.commands.filter((command) => command.name() !== 'help');
  return `${[
    `.TH FIRSTLIGHT 1 "" "firstlight ${plain(version)}" "User Commands"`,
    // Long flags would be torn apart by justified lines.
    '.ad l',
    '.SH NAME',
    `firstlight \\- ${plain(firstLower(program.description()).replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    '.B firstlight',
    '.RI [ options ]',
    '.I command',
    '.RI [ arguments ]',
    '.SH DESCRIPTION',
    plain(program.description()),
    '.SH OPTIONS',
    'They stand before or behind the command.',
    ...program.options.flatMap(optionLines),
    '.SH COMMANDS',
    ...commands.flatMap(commandLines),
    '.SH EXIT STATUS',
    ...term('0', 'done, or answered'),
    ...term('1', 'the cluster is not as wanted'),
    ...term('2', 'you can mend it: a file, a consent, a host key'),
    ...term('3', 'our mistake'),
    '.SH ENVIRONMENT',
    ...term('FIRSTLIGHT_CLUSTER', 'the cluster file, where \\-\\-cluster names none'),
    ...term(
      'FIRSTLIGHT_HOME',
      'folder of the journal; else $XDG_STATE_HOME/firstlight, else ~/.local/state/firstlight',
    ),
    ...term('FIRSTLIGHT_SUDO_PASSWORD_FILE', 'file with sudo\\(aqs password, mode 0600'),
    ...term('NO_COLOR, FORCE_COLOR', 'turn colours off or on'),
    '.SH FILES',
    ...term('cluster.yaml', 'the hosts, and how they are reached'),
    ...term('recipe.yaml', 'the model that is wanted, and how it is to be served'),
    '.SH SEE ALSO',
    '.BR ssh (1),',
    '.BR ssh_config (5)',
  ].join('\n')}\n`;
}

function commandLines(command: Command): readonly string[] {
  const names = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? name : `[${name}]`;
  });
  return [
    `.SS ${plain(['firstlight', command.name(), ...names].join(' '))}`,
    plain(sentence(command.description())),
    ...command.registeredArguments
      .filter((argument) => argument.description !== '')
      .flatMap((argument) => term(plain(argument.name()), plain(argument.description))),
    ...command.options.flatMap(optionLines),
  ];
}

function optionLines(option: Option): readonly string[] {
  const choices = option.argChoices === undefined ? '' : ` (${option.argChoices.join(', ')})`;
  return term(plain(option.flags), plain(`${option.description}${choices}`));
}

function term(name: string, text: string): readonly string[] {
  return ['.TP', `.B ${name}`, text];
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function firstLower(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}

/** Text as roff shows it: hyphens that can be copied, no request at a line's beginning, ASCII throughout. */
function plain(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/['’]/g, '\\(aq')
    .replace(/…/g, '...')
    .replace(/→/g, '\\(->')
    .replace(/^\./, '\\&.');
}
