import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Words = { readonly name: string; readonly about: string; readonly flags: readonly Flag[] };
type Flag = { readonly long: string; readonly about: string; readonly takesValue: boolean };

/** A completion script made from the program itself; undefined for a shell that is not known. */
export function completion(program: Command, shell: string): string | undefined {
  const commands = program.commands.map((command) => ({
    name: command.name(),
    about: command.description(),
    flags: [...flagsOf(command), ...flagsOf(program)],
  }));
  if (shell === 'bash') return bash(commands);
  if (shell === 'zsh') return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
  return shell === 'fish' ? fish(commands) : undefined;
}

function flagsOf(command: Command): readonly Flag[] {
  return command.options.map((option) => ({
    long: option.long ?? '',
    about: option.description,
    takesValue: option.required || option.optional,
  }));
}

function bash(commands: readonly Words[]): string {
  const cases = commands.map(
    ({ name, flags }) => `    ${name}) words="${flags.map((flag) => flag.long).join(' ')}" ;;`,
  );
  const valued = [
    ...new Set(
      commands.flatMap(({ flags }) => flags.filter((flag) => flag.takesValue)).map((flag) => flag.long),
    ),
  ];
  return `_firstlight() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words
  case "$before" in
    ${valued.join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')}" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _firstlight firstlight
`;
}

function fish(commands: readonly Words[]): string {
  const lines = commands.flatMap(({ name, about, flags }) => [
    `complete -c firstlight -n __fish_use_subcommand -f -a ${name} -d ${quote(about)}`,
    ...flags.map(
      (flag) =>
        `complete -c firstlight -n ${quote(`__fish_seen_subcommand_from ${name}`)} -l ${flag.long.replace(/^--/, '')}${flag.takesValue ? ' -r' : ''} -d ${quote(flag.about)}`,
    ),
  ]);
  return `${lines.join('\n')}\n`;
}

/** Text in single quotes, as fish reads it. */
function quote(text: string): string {
  return `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;
}
