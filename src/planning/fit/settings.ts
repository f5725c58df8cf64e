import { sizeBytes } from '../../domain/recipe.ts';
import { UserError } from '../../domain/user-error.ts';
import type { FitSettings } from './input.ts';

type Read = { readonly settings: FitSettings; readonly data: number | undefined };

const NUMBERS = ['batchedTokens', 'blockSize', 'dcp', 'dp'] as const;
const SIZES = [
  'kvCacheBytes',
  'draftBytes',
  'cpuOffloadBytes',
  'swapBytes',
  'weightsBytes',
  'availableKvBytes',
] as const;
/** As many as the layout's own flags take. */
const MOST_RANKS = 4096;
const FLAGS = ['eager', 'prefixCaching', 'languageOnly'] as const;
/** Every key of `--set`. */
export const SETTING_KEYS: readonly string[] = [
  'fraction',
  'kvCacheDtype',
  'speculative',
  ...NUMBERS,
  ...SIZES,
  ...FLAGS,
];

/** `KEY=VALUE` pairs → settings; the last of a key holds. Throws a UserError `bad-input` for what is no setting. */
export function readSettings(pairs: readonly string[]): Read {
  const settings: { -readonly [Key in keyof FitSettings]: FitSettings[Key] } = {};
  let data: number | undefined;
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const key = at === -1 ? pair.trim() : pair.slice(0, at).trim();
    const value = at === -1 ? 'true' : pair.slice(at + 1).trim();
    const number = NUMBERS.find((one) => one === key);
    const size = SIZES.find((one) => one === key);
    const flag = FLAGS.find((one) => one === key);
    if (key === 'fraction') settings.fraction = fraction(value);
    else if (key === 'kvCacheDtype' && at !== -1) settings.kvCacheDtype = value;
    else if (key === 'speculative' && at !== -1) settings.speculative = speculative(value);
    else if (number === 'dp') data = whole(key, value, MOST_RANKS);
    else if (number === 'dcp') settings.dcp = whole(key, value, MOST_RANKS);
    else if (number !== undefined) settings[number] = whole(key, value);
    else if (size !== undefined) settings[size] = bytes(key, value);
    else if (flag !== undefined) settings[flag] = truth(key, value);
    else throw bad(`--set ${pair} is no setting`, `Keys are: ${SETTING_KEYS.join(', ')}.`);
  }
  return { settings, data };
}

function fraction(value: string): number {
  const number = Number(value);
  if (value === '' || !(number > 0 && number <= 1))
    throw bad(
      `fraction ${value} is no share of the memory`,
      'Write a number above 0 and up to 1, such as 0.85.',
    );
  return number;
}

function whole(key: string, value: string, most = 2 ** 30): number {
  if (!/^\d{1,12}$/.test(value) || Number(value) < 1 || Number(value) > most)
    throw bad(`${key} ${value} is no whole number from 1 to ${most}`, `Write ${key}=N.`);
  return Number(value);
}

function bytes(key: string, value: string): number {
  const plain = /^\d+(?:\.\d+)?(?:e\d{1,2})?$/i.test(value);
  const sized = /^\d+(?:\.\d+)?\s*(?:B|[KMGT]i?B)$/.test(value);
  const number = plain ? Math.round(Number(value)) : sized ? sizeBytes(value) : Number.NaN;
  if (!(number >= 0 && number <= 2 ** 50))
    throw bad(`${key} ${value} is no size`, `Write bytes, or a size such as ${key}=4GiB.`);
  return number;
}

function truth(key: string, value: string): boolean {
  if (/^(?:true|yes|on|1)$/i.test(value)) return true;
  if (/^(?:false|no|off|0)$/i.test(value)) return false;
  throw bad(`${key} ${value} is neither true nor false`, `Write ${key}=true or ${key}=false.`);
}

/** METHOD:N; any method's name is taken, and one token where no number is given. */
function speculative(value: string): { readonly method: string; readonly tokens: number } {
  const found = /^(.+?)(?::(\d{1,4}))?$/.exec(value);
  if (found?.[1] === undefined)
    throw bad(`speculative ${value} names no method`, 'Write METHOD:N, such as mtp:3.');
  return { method: found[1], tokens: Number(found[2] ?? 1) };
}

function bad(message: string, hint: string): UserError {
  return new UserError('bad-input', message, hint);
}
