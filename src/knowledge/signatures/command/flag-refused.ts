import type { Evidence } from '../../../domain/evidence.ts';
import { argsOf, type EngineName, type Software, softwareOf } from '../../../domain/recipe.ts';
import { list } from '../../../domain/units.ts';
import { inOrder, whoSaid } from '../line-signature.ts';
import { nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';
import { hasFlag, hyphened, isForeign, meantFlag, nearest, SOFTWARE } from './engine-flags.ts';
import { isBareJson } from './reparsed-arguments.ts';

const unrecognized = pattern(
  [
    'error: unrecognized arguments: ',
    'No such option: ',
    'unknown flag: ',
    'unexpected keyword argument',
    'unexpected argument',
  ],
  /error: unrecognized arguments: (?<words>.+)$|No such option: (?<click>-\S{1,300})|unknown flag: (?<go>-\S{1,300})|(?:ServerArgs|EngineArgs|AsyncEngineArgs)\S{0,300} got an unexpected keyword argument '(?<keyword>\w{1,80})'|error: unexpected argument '(?<clap>-\S{1,300})' found/,
);
const invalidChoice = pattern(
  [': invalid choice: ', '(chose from {', 'Available parsers: ', "arser '"],
  /error: argument (?<flag>[^:]{1,400}): invalid choice: (?<value>'[^']{0,400}'|"[^"]{0,400}"|\S{1,300})(?: \((?:maybe you meant .{0,600}; )?choose from (?<choices>.+)\)?)?|invalid (?<kind>tool call|reasoning) parser: (?<parser>\S{1,300}) \(chose from \{ ?(?<parsers>[^}]{1,400})|(?<kind2>Reasoning|Tool) parser '(?<parser2>[^']{1,400})' not found\.?(?: Available parsers: (?<parsers2>.+))?/,
);
const invalidValue = pattern(
  'error: argument ',
  /error: argument (?<flag>[^:]{1,400}): (?:invalid \S{1,300} value: (?<value>'[^']{0,400}'|"[^"]{0,400}"|\S{1,300})|expected (?<wanted>.+))$/,
);
const ambiguous = pattern(
  'error: ambiguous option: ',
  /error: ambiguous option: (?<flag>\S{1,300}) could match (?<options>.+)$/,
);

/** The command line is refused; the engine ends at once. */
export const flagRefused: Signature = {
  name: 'flag-refused',
  causes: ['flag-unknown-to-this-version', 'flag-of-other-engine', 'flag-misspelled'],
  seenOn: 'vLLM 0.3 to 0.32 and SGLang 0.4 to 0.5.23, argparse of Python 3.10 to 3.13',
  source: "Python's argparse, click, Go's pflag; vLLM cli, SGLang launch_server.py",
  patterns: [unrecognized, invalidChoice, invalidValue, ambiguous],
  looks: ['launch_server.py: error: unrecognized arguments: --enable_metrics'],
  match(view) {
    const { evidence, find } = view;
    const unknown = inOrder([unrecognized], view).filter(
      ({ groups }) => groups['words'] === undefined || !isBareJson(groups['words']),
    );
    const choice = inOrder([invalidChoice, invalidValue], view).filter(
      ({ groups }) => !isBareJson(groups['value'] ?? '') && !/\\r/.test(groups['value'] ?? ''),
    );
    const several = find(ambiguous);
    const [words, value, short] = [unknown[0], choice[0], several[0]];
    if (words)
      return { ...unknownFlag(engineOf(words, evidence.engine), words), ...seat(words, unknown, view) };
    if (value) return { ...badValue(evidence, value), ...seat(value, choice, view) };
    return short ? { ...tooShort(short), ...seat(short, several, view) } : undefined;
  },
};

function seat(first: Found, all: readonly Found[], view: View): Pick<Match, 'node' | 'atFault' | 'shown'> {
  const place = whoSaid(first, all, view);
  const shown =
    place.atFault === 'both'
      ? nodesOf(view.evidence).flatMap((node) => all.find((found) => found.node === node) ?? [])
      : [first];
  return { ...place, shown };
}

/** The line often says itself which program refused. */
function engineOf({ message }: Found, given: EngineName): EngineName {
  if (/^(?:usage: )?(?:\S*vllm|api_server\.py)\b/.test(message)) return given === 'vllm-ray' ? given : 'vllm';
  if (/\b(?:Async)?EngineArgs\b/.test(message)) return given === 'vllm-ray' ? given : 'vllm';
  return /^(?:\S*sglang|launch_server\.py)\b|\bServerArgs\b/.test(message) ? 'sglang' : given;
}

function unknownFlag(engine: EngineName, found: Found): Match {
  const own = softwareOf(engine);
  const { words: text = '', click, go, keyword, clap } = found.groups;
  const words = text.split(/\s+/).filter((word) => word !== '');
  const written =
    click ??
    go ??
    clap ??
    (keyword === undefined ? undefined : `--${keyword.replace(/_/g, '-')}`) ??
    words.find((word) => /^--?[A-Za-z]/.test(word)) ??
    words[0] ??
    '';
  const flag = written.split('=')[0] ?? written;
  const notEngine = click !== undefined || go !== undefined || clap !== undefined;
  const cause = notEngine ? ({ cause: 'flag-unknown-to-this-version' } as const) : judge(own, flag);
  const meant = 'meant' in cause ? cause.meant : undefined;
  const other = 'other' in cause ? cause.other : undefined;
  const name = notEngine ? 'The program' : NAMES[own];
  return {
    cause: cause.cause,
    node: found.node,
    shown: [found],
    title: `${name} on ${found.node} does not know the flag ${flag}`,
    why:
      other !== undefined
        ? `That is a flag of ${other}, which ${NAMES[own]} does not have.`
        : meant !== undefined
          ? `The flag is written ${meant}.`
          : `The version installed there is older or newer than the flag.`,
    advice: [
      meant === undefined
        ? `Take ${flag} out of args.${engine} in the recipe, or use an image that knows it.`
        : `Write ${meant} in args.${engine} of the recipe.`,
    ],
    values: { flag, words: words.length > 0 ? words.join(' ') : flag, ...(meant ? { meant } : {}) },
    confidence: notEngine ? 0.7 : 0.95,
    specificity: 3,
  };
}

type Judged =
  | { readonly cause: 'flag-of-other-engine'; readonly other: string }
  | { readonly cause: 'flag-misspelled'; readonly meant: string }
  | { readonly cause: 'flag-unknown-to-this-version' };

/** A flag that some version has is unknown to this one; else the other engine's, else a slip of the pen. */
function judge(own: Software, flag: string): Judged {
  if (hasFlag(own, flag)) return { cause: 'flag-unknown-to-this-version' };
  const meant = meantFlag(own, flag);
  if (meant !== undefined && meant === hyphened(flag)) return { cause: 'flag-misspelled', meant };
  const other = SOFTWARE.find((name) => name !== own && hasFlag(name, hyphened(flag)));
  if (other !== undefined) return { cause: 'flag-of-other-engine', other: NAMES[other] };
  if (meant !== undefined) return { cause: 'flag-misspelled', meant };
  if (isForeign(flag)) return { cause: 'flag-of-other-engine', other: 'another server' };
  return { cause: 'flag-unknown-to-this-version' };
}

/** Keys of a recipe from which a flag comes, where it does not stand in args. */
const KEYS: Readonly<Record<string, string>> = {
  '--reasoning-parser': 'serve.reasoning',
  '--tool-call-parser': 'serve.tools',
  '--context-length': 'context',
  '--max-model-len': 'context',
};

function badValue({ engine, recipe }: Evidence, found: Found): Match {
  const { groups } = found;
  // argparse names all spellings: "--tp-size/--tensor-parallel-size" or "-tp, --tensor-parallel-size".
  const kind = (groups['kind'] ?? groups['kind2'])?.toLowerCase();
  const flag =
    kind === undefined
      ? ((groups['flag'] ?? '').split(/[/,]\s*/).find((word) => word.startsWith('--')) ??
        groups['flag'] ??
        '')
      : kind === 'reasoning'
        ? '--reasoning-parser'
        : '--tool-call-parser';
  const own = argsOf(recipe, engine).some((word) => word.split('=')[0] === flag);
  const key = own ? undefined : KEYS[flag];
  const value = (groups['value'] ?? groups['parser'] ?? groups['parser2'])?.replace(/^['"]|['"]$/g, '');
  const choices = (groups['choices'] ?? groups['parsers'] ?? groups['parsers2'] ?? '')
    .split(/[\s,]+/)
    .map((word) => word.replace(/^['"(]+|['")]+$/g, ''))
    .filter((word) => word !== '');
  const meant = value === undefined ? undefined : closest(value, choices);
  const misspelled = meant !== undefined || groups['wanted'] !== undefined || choices.length === 0;
  return {
    cause: misspelled ? 'flag-misspelled' : 'flag-unknown-to-this-version',
    node: found.node,
    shown: [found],
    title:
      value === undefined
        ? `${NAMES[softwareOf(engine)]} on ${found.node} wants a value for ${flag}`
        : `${NAMES[softwareOf(engine)]} on ${found.node} does not know ${value} as a value of ${flag}`,
    why:
      meant === undefined
        ? `The engine ended before it began, while it read its command line${choices.length > 0 && choices.length < 8 ? `; it takes ${list(choices)}` : ''}.`
        : `It is written ${meant}.`,
    advice: [
      key === undefined
        ? `Correct ${flag} in args.${engine} of the recipe; the line above names what it takes.`
        : `Correct ${key} in the recipe, which gives ${flag}; the line above names what it takes.`,
    ],
    values: {
      flag,
      ...(value === undefined ? {} : { value }),
      ...(meant === undefined ? {} : { meantValue: meant }),
    },
    confidence: choices.length > 0 ? 0.88 : 0.7,
    specificity: 3,
  };
}

function closest(value: string, choices: readonly string[]): string | undefined {
  const plain = (word: string): string => word.toLowerCase().replace(/[-_]/g, '');
  return (
    choices.find((choice) => choice !== value && plain(choice) === plain(value)) ??
    nearest(value, choices, value.length <= 4 ? 1 : 2)
  );
}

function tooShort(found: Found): Match {
  const { flag = '', options = '' } = found.groups;
  return {
    cause: 'flag-misspelled',
    node: found.node,
    shown: [found],
    title: `The flag ${flag} could mean several on ${found.node}`,
    why: `It could be any of ${options}.`,
    advice: ['Write the flag in full in the recipe.'],
    values: { flag, options },
    confidence: 0.93,
    specificity: 3,
  };
}

const NAMES: Readonly<Record<Software, string>> = { sglang: 'SGLang', vllm: 'vLLM' };
