import type { Evidence } from '../../domain/evidence.ts';
import { type EngineName, type Software, softwareOf } from '../../domain/recipe.ts';
import { hasFlag, meantFlag, SOFTWARE } from './engine-flags.ts';
import { type Found, type Match, pattern, type Signature } from './signature.ts';

const unrecognized = pattern(
  'error: unrecognized arguments: ',
  /error: unrecognized arguments: (?<words>.+)$/,
);
const invalidChoice = pattern(
  ': invalid choice: ',
  /error: argument (?<flag>[^:]+): invalid choice: (?<value>'[^']*'|"[^"]*"|\S+)/,
);
const invalidValue = pattern(
  ['error: argument '],
  /error: argument (?<flag>[^:]+): (?:invalid \S+ value: (?<value>'[^']*'|"[^"]*"|\S+)|expected (?<wanted>.+))$/,
);
const ambiguous = pattern(
  'error: ambiguous option: ',
  /error: ambiguous option: (?<flag>\S+) could match (?<options>.+)$/,
);

/** argparse refuses the command line; the engine ends at once. */
export const flagRefused: Signature = {
  name: 'flag-refused',
  causes: ['flag-unknown-to-this-version', 'flag-of-other-engine', 'flag-misspelled'],
  seenOn: 'vLLM 0.2x and SGLang 0.4, argparse of Python 3.10 to 3.13',
  source: "Python's argparse; vLLM cli, SGLang launch_server.py",
  patterns: [unrecognized, invalidChoice, invalidValue, ambiguous],
  match({ evidence, find }) {
    const words = find(unrecognized)[0];
    const choice = find(invalidChoice)[0] ?? find(invalidValue)[0];
    const several = find(ambiguous)[0];
    if (words) return unknownFlag(evidence.engine, words);
    if (choice) return badValue(evidence, choice);
    return several ? tooShort(several) : undefined;
  },
};

function unknownFlag(engine: EngineName, found: Found): Match {
  const own = softwareOf(engine);
  const words = (found.groups['words'] ?? '').split(/\s+/);
  const written = words.find((word) => /^--?[A-Za-z]/.test(word)) ?? words[0] ?? '';
  const flag = written.split('=')[0] ?? written;
  const other = SOFTWARE.find((name) => name !== own && hasFlag(name, flag));
  const meant = meantFlag(own, flag);
  const foreign = other !== undefined && !hasFlag(own, flag) && meant === undefined;
  const cause = foreign
    ? 'flag-of-other-engine'
    : meant !== undefined
      ? 'flag-misspelled'
      : 'flag-unknown-to-this-version';
  const why = foreign
    ? `That is a flag of ${NAMES[other]}, which ${NAMES[softwareOf(engine)]} does not have.`
    : meant !== undefined
      ? `The flag is written ${meant}.`
      : `The ${NAMES[softwareOf(engine)]} installed there is older or newer than the flag.`;
  return {
    cause,
    node: found.node,
    shown: [found],
    title: `${NAMES[softwareOf(engine)]} on ${found.node} does not know the flag ${flag}`,
    why,
    advice: [
      meant === undefined
        ? `Take ${flag} out of args.${engine} in the recipe, or use an image that knows it.`
        : `Write ${meant} in args.${engine} of the recipe.`,
    ],
    values: { flag, words: words.join(' '), ...(meant ? { meant } : {}) },
    confidence: 0.96,
    specificity: 3,
  };
}

/** Keys of a recipe from which a flag comes, where it does not stand in args. */
const KEYS: Readonly<Record<string, string>> = {
  '--reasoning-parser': 'serve.reasoning',
  '--tool-call-parser': 'serve.tools',
  '--context-length': 'context',
  '--max-model-len': 'context',
};

function badValue({ engine, recipe }: Evidence, found: Found): Match {
  // argparse names all spellings: "--tp-size/--tensor-parallel-size" or "-tp, --tensor-parallel-size".
  const flag = (found.groups['flag'] ?? '').split(/[/,]\s*/).at(-1) ?? '';
  const own = (recipe.args[engine] ?? []).some((word) => word.split('=')[0] === flag);
  const key = own ? undefined : KEYS[flag];
  const value = found.groups['value']?.replace(/^['"]|['"]$/g, '');
  return {
    cause: found.groups['wanted'] ? 'flag-misspelled' : 'flag-unknown-to-this-version',
    node: found.node,
    shown: [found],
    title:
      value === undefined
        ? `${NAMES[softwareOf(engine)]} on ${found.node} wants a value for ${flag}`
        : `${NAMES[softwareOf(engine)]} on ${found.node} does not know ${value} as a value of ${flag}`,
    why: 'The engine ended before it began, while it read its command line.',
    advice: [
      key === undefined
        ? `Correct ${flag} in args.${engine} of the recipe; the line above names what it takes.`
        : `Correct ${key} in the recipe, which gives ${flag}; the line above names what it takes.`,
    ],
    values: { flag, ...(value === undefined ? {} : { value }) },
    confidence: 0.9,
    specificity: 3,
  };
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
    confidence: 0.95,
    specificity: 3,
  };
}

const NAMES: Readonly<Record<Software, string>> = { sglang: 'SGLang', vllm: 'vLLM' };
