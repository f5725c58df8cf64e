import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { Place } from './completion.ts';

/** One input of an operation as the command line sees it. */
export type Field = {
  readonly key: string;
  readonly flag: string;
  readonly short: string | undefined;
  readonly kind: 'boolean' | 'number' | 'list' | 'text';
  readonly required: boolean;
  readonly positional: boolean;
  /** It names a file of this machine. */
  readonly file: boolean;
  readonly description: string;
  readonly example: string | undefined;
  /** What stands for the value in the help: FILE, DIGEST; the flag's own name if left out. */
  readonly value: string | undefined;
  /** What it means to leave out a flag that holds by itself, for `--no-…`. */
  readonly without: string | undefined;
  readonly choices: readonly string[] | undefined;
  readonly fallback: unknown;
};

/** One key of the JSON Schema that zod makes of an input; `.meta()` values stand beside the standard ones. */
const property = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  default: z.unknown().optional(),
  enum: z.array(z.string()).optional(),
  positional: z.boolean().optional(),
  file: z.boolean().optional(),
  example: z.string().optional(),
  value: z.string().optional(),
  without: z.string().optional(),
  short: z.string().optional(),
});
const objectSchema = z.looseObject({
  properties: z.record(z.string(), property).default({}),
  required: z.array(z.string()).default([]),
});

/** The fields of an operation's input schema, in its order. A schema that is no object has none. */
export function fieldsOf(schema: z.ZodType): readonly Field[] {
  const described = objectSchema.parse(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  return Object.entries(described.properties).map(([key, value]) => ({
    key,
    flag: key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    short: value.short,
    kind: kindOf(value.type),
    required: described.required.includes(key),
    positional: value.positional ?? false,
    file: value.file ?? false,
    description: value.description ?? '',
    example: value.example,
    value: value.value,
    without: value.without,
    choices: value.enum,
    fallback: value.default,
  }));
}

function kindOf(type: string | readonly string[] | undefined): Field['kind'] {
  const first = Array.isArray(type) ? type[0] : type;
  if (first === 'boolean') return 'boolean';
  if (first === 'number' || first === 'integer') return 'number';
  return first === 'array' ? 'list' : 'text';
}

/** Adds the field to a command, as a positional argument or as a flag. */
export function addField(command: Command, field: Field): void {
  if (field.positional) {
    const name = field.kind === 'list' ? `${field.flag}...` : field.flag;
    const completes = field.choices ?? (field.file ? 'files' : 'nothing');
    command.addArgument(new Place(field.required ? `<${name}>` : `[${name}]`, field.description, completes));
    return;
  }
  command.addOption(optionOf(field));
}

function optionOf(field: Field): Option {
  const short = field.short ? `-${field.short}, ` : '';
  const needed = field.required ? ' (needed)' : '';
  const text = `${field.description}${needed}`;
  if (field.kind === 'boolean') {
    if (field.fallback !== true) return new Option(`${short}--${field.flag}`, text);
    return new Option(`${short}--no-${field.flag}`, field.without ?? `do not ${text}`);
  }
  const value = field.value ?? (field.kind === 'number' ? 'N' : field.flag.toUpperCase());
  const option = new Option(`${short}--${field.flag} <${value}>`, text);
  if (field.choices) option.choices([...field.choices]);
  if (field.kind === 'number') option.argParser(numberOf);
  if (field.kind === 'list') option.argParser(listOf);
  return option;
}

function numberOf(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number)) throw new InvalidArgumentError('It must be a number.');
  return number;
}

function listOf(text: string, before: unknown): readonly unknown[] {
  const more = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  return Array.isArray(before) ? [...before, ...more] : more;
}

/** Values given on the command line, by key; what was left out is absent, so that the schema's defaults hold. */
export function inputOf(
  fields: readonly Field[],
  args: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = {};
  let at = 0;
  for (const field of fields) {
    const given = field.positional ? args[at++] : options[field.key];
    if (given === undefined || (Array.isArray(given) && given.length === 0)) continue;
    input[field.key] = field.positional && field.kind === 'number' ? Number(given) : given;
  }
  return input;
}
