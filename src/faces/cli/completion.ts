import { Argument, type Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What may stand in one place of a command line: one of these words, a file, or what no shell can know. */
export type Completes = readonly string[] | 'files' | 'nothing';

/** An argument of a command that also says what a shell may offer in its place. */
export class Place extends Argument {
  readonly completes: Completes;
  constructor(name: string, description: string, completes: Completes) {
    super(name, description);
    this.completes = completes;
  }
}

type Words = {
  readonly name: string;
  readonly about: string;
  readonly flags: readonly Flag[];
  /** By their order; the last one again where it may be repeated. */
  readonly places: readonly Completes[];
  readonly repeats: boolean;
};
type Flag = {
  readonly long: string;
  readonly about: string;
  /** Undefined for a flag without a value. */
  readonly value: Completes | undefined;
};

/** A completion script made from the program itself; undefined for a shell that is not known. */
export function completion(program: Command, shell: string): string | undefined {
  const names = program.commands.map((command) => command.name());
  const commands = [
    ...program.commands.map((command) => ({
      name: command.name(),
      about: command.description(),
      flags: flagsOf(command),
      places: command.registeredArguments.map((one) => (one instanceof Place ? one.completes : 'nothing')),
      repeats: command.registeredArguments.at(-1)?.variadic === true,
    })),
    { name: 'help', about: 'print the help of a command', flags: [], places: [names], repeats: false },
  ];
  const everywhere = flagsOf(program);
  if (shell === 'fish') return fish(commands, everywhere);
  const script = bash(commands, everywhere);
  if (shell === 'zsh') return `autoload -U +X bashcompinit && bashcompinit\n${script}`;
  return shell === 'bash' ? script : undefined;
}

function flagsOf(command: Command): readonly Flag[] {
  return command.options.map((option) => ({
    long: option.long ?? '',
    about: option.description,
    value:
      option.required || option.optional
        ? (option.argChoices ?? (/FILE|DIR|LOG/.test(option.flags) ? 'files' : 'nothing'))
        : undefined,
  }));
}

/** The flags that take a value, wherever. */
function valued(commands: readonly Words[], everywhere: readonly Flag[]): readonly string[] {
  const flags = [...everywhere, ...commands.flatMap((command) => command.flags)];
  return [...new Set(flags.filter(({ value }) => value !== undefined).map(({ long }) => long))];
}

/** What the shell does to offer it; `words` are offered behind it, where there are any. */
function offer(completes: Completes): string {
  if (completes === 'files') return 'files=1';
  return completes === 'nothing' ? ':' : `words="${completes.join(' ')}"`;
}

/** By command and by the number of the word behind it. */
function placesOf({ name, places, repeats }: Words): readonly string[] {
  return places.map((completes, at) => {
    const last = repeats && at === places.length - 1;
    return `    ${last ? `"${name} "*` : `"${name} ${at}"`}) ${offer(completes)} ;;`;
  });
}

/** By command and flag; the flags of every command hold without one too. */
function valuesOf(command: string, flags: readonly Flag[]): readonly string[] {
  return flags.flatMap(({ long, value }) =>
    value === undefined ? [] : [`    ${command}" ${long}") ${offer(value)} ;;`],
  );
}

function bash(commands: readonly Words[], everywhere: readonly Flag[]): string {
  const longs = (flags: readonly Flag[]): string => flags.map((flag) => flag.long).join(' ');
  const flags = commands.map(
    ({ name, flags: own }) => `    ${name}) words="${longs([...own, ...everywhere])}" ;;`,
  );
  return `_firstlight() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  local words= files= command= place=0 at=1 flag=
  # --flag=value comes as three words
  if [ "$current" = '=' ]; then current=
  elif [ "$before" = '=' ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  while [ "$at" -lt "$COMP_CWORD" ]; do
    case "\${COMP_WORDS[at]}" in
      ${valued(commands, everywhere).join('|')}) flag=1 ;;
      '=') ;;
      -*) flag= ;;
      *) if [ -n "$flag" ]; then flag=
        elif [ -z "$command" ]; then command="\${COMP_WORDS[at]}"
        else place=$((place + 1)); fi ;;
    esac
    at=$((at + 1))
  done
  case "$command $before" in
${[...valuesOf('*', everywhere), ...commands.flatMap(({ name, flags: own }) => valuesOf(name, own))].join('\n')}
    *) case "$current" in
    -*) case "$command" in
${flags.join('\n')}
    *) words="${longs(everywhere)}" ;;
    esac ;;
    *) case "$command $place" in
    " 0") words="${commands.map(({ name }) => name).join(' ')}" ;;
${commands.flatMap(placesOf).join('\n')}
    esac ;;
    esac ;;
  esac
  COMPREPLY=()
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi
  if [ -n "$files" ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _firstlight firstlight
`;
}

function fish(commands: readonly Words[], everywhere: readonly Flag[]): string {
  const offered = (completes: Completes): string => {
    if (completes === 'files') return '-F';
    return completes === 'nothing' ? '-f' : `-f -a ${quote(completes.join(' '))}`;
  };
  const flagged = ({ long, about, value }: Flag, where: string): string => {
    const takes = value === undefined ? '' : ` -r ${offered(value)}`;
    return `complete -c firstlight${where} -l ${long.replace(/^--/, '')}${takes} -d ${quote(about)}`;
  };
  const lines = commands.flatMap(({ name, about, flags, places, repeats }) => [
    `complete -c firstlight -n __firstlight_first -f -a ${name} -d ${quote(about)}`,
    ...places.map((completes, at) => {
      const more = repeats && at === places.length - 1 ? ' more' : '';
      return `complete -c firstlight -n ${quote(`__firstlight_at ${name} ${at}${more}`)} ${offered(completes)}`;
    }),
    ...flags.map((flag) => flagged(flag, ` -n ${quote(`__firstlight_at ${name}`)}`)),
  ]);
  return `function __firstlight_words
  set -l flag 0
  for word in (commandline -opc)[2..-1]
    if test $flag = 1
      set flag 0
    else if contains -- $word ${valued(commands, everywhere).join(' ')}
      set flag 1
    else if not string match -q -- '-*' $word
      echo $word
    end
  end
end
function __firstlight_first
  test (count (__firstlight_words)) = 0
end
# COMMAND, or COMMAND and the number of the word behind it, or of the first of several
function __firstlight_at
  set -l words (__firstlight_words)
  test "$words[1]" = $argv[1]; or return 1
  set -l place (math (count $words) - 1)
  switch (count $argv)
    case 1
      return 0
    case 2
      test $place = $argv[2]
    case '*'
      test $place -ge $argv[2]
  end
end
complete -c firstlight -f
${everywhere.map((flag) => flagged(flag, '')).join('\n')}
${lines.join('\n')}
`;
}

/** Text in single quotes, as fish reads it. */
function quote(text: string): string {
  return `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;
}
