import { z } from 'zod';

export const ENGINES = ['sglang', 'vllm', 'vllm-ray'] as const;
export type EngineName = (typeof ENGINES)[number];
export type Software = 'sglang' | 'vllm';

const engine = z.enum(ENGINES);
const positive = z.number().int().min(1);
/** "6GiB", "512 MiB", 6442450944 → bytes. A bare figure of less than 1 MiB is one whose unit was left out. */
export const size = z
  .union([
    z.number().int().min(0),
    z.string().regex(/^\s*\d+(\.\d+)?\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)?\s*$/, 'is not a size such as 6GiB'),
  ])
  .refine((value) => {
    const bare = Number(value);
    return Number.isNaN(bare) || bare === 0 || bare >= 2 ** 20;
  }, 'is less than 1 MiB; write it with its unit, such as 6GiB')
  .transform((value) => (typeof value === 'number' ? value : sizeBytes(value)));

const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

/** "6GiB", "512 MiB" → bytes; NaN for what is no size. */
export function sizeBytes(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(\w*)\s*$/.exec(text);
  return Math.round(Number(match?.[1]) * (UNITS[match?.[2] || 'B'] ?? 1));
}

const parser = z.union([z.literal('auto'), z.literal('none'), z.string().regex(/^[A-Za-z0-9][\w.-]*$/)]);
const envName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not an environment variable name');
const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be letters, digits, ".", "_" and "-"');
const text = z.string().refine((value) => !value.includes('\0'), 'holds a NUL character');

/** What is wanted. Unknown keys are refused; every default is written here and nowhere else. */
export const recipeSchema = z.strictObject({
  recipe: name.describe('name of the recipe'),
  model: text
    .min(1)
    .refine((value) => !value.startsWith('-'), 'looks like an option')
    .describe('name of the model, as its publisher calls it'),
  path: text.regex(/^\//, 'must be an absolute path').describe("the model's folder, the same on every node"),
  nodes: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("names of nodes, the head first; the cluster file's first ones if left out"),
  engines: z
    .array(engine)
    .min(1)
    .refine((list) => new Set(list).size === list.length, 'names an engine twice')
    .describe('engines in order of preference; the next one is tried where the first is out of remedies'),
  layout: z.strictObject({
    nodes: positive.describe('how many nodes'),
    tensor: positive
      .default(1)
      .describe('tensor parallel size; tensor x pipeline x data must be a multiple of nodes'),
    pipeline: positive.default(1).describe('pipeline parallel size'),
    expert: positive.default(1).describe('expert parallel size'),
    data: positive.default(1).describe('data parallel size'),
  }),
  context: positive.optional().describe("tokens of the longest request; the engine's own limit if left out"),
  sequences: positive.optional().describe('requests at once'),
  memory: z
    .strictObject({
      fraction: z
        .union([z.literal('auto'), z.number().gt(0).lt(1)])
        .default('auto')
        .describe('share of the memory that the engine may take, 0 to 1'),
      reserve: size.default(6 * 2 ** 30).describe('left free on every node, such as 6GiB'),
      guard: z
        .union([z.literal('off'), size])
        .optional()
        .describe(
          'a rank is stopped on its node before less than this is available there; half the reserve if left out, off for no guard',
        ),
    })
    .prefault({}),
  run: z.discriminatedUnion('in', [
    z.strictObject({
      in: z.enum(['docker', 'podman']),
      image: z.partialRecord(engine, z.string().regex(/^[A-Za-z0-9][\w./:@-]*$/, 'is not an image name')),
      volumes: z
        .array(text.regex(/^\/[^:]*:\/[^:]*(:[a-zA-Z,]+)?$/, 'must be /host/path:/container/path[:ro]'))
        .default([])
        .describe('/host/path:/container/path[:ro]'),
    }),
    z.strictObject({
      in: z.literal('process'),
      command: z
        .partialRecord(engine, z.union([text.min(1), z.array(text).min(1)]))
        .default({})
        .describe(
          "the engine's program and leading arguments; its own name on PATH (or in venv) if left out",
        ),
      venv: text
        .regex(/^\//, 'must be an absolute path')
        .optional()
        .describe('a Python environment that holds the engine'),
    }),
  ]),
  network: z
    .enum(['auto', 'engine'])
    .default('auto')
    .describe("auto: each rank gets its own node's addresses and interfaces; engine: left to the engine"),
  serve: z
    .strictObject({
      port: z.number().int().min(1).max(65535).default(30000).describe('port of the API on the head'),
      listen: z
        .enum(['loopback', 'fabric', 'all'])
        .default('loopback')
        .describe("which of the head's addresses the API listens on"),
      name: name.optional().describe("the model's name in the API; the recipe's if left out"),
      reasoning: parser.default('auto').describe('reasoning parser of the engine: auto, none or its name'),
      tools: parser.default('auto').describe('tool call parser of the engine: auto, none or its name'),
      apiKey: z
        .strictObject({ env: envName })
        .optional()
        .describe('the key is taken from that variable, and written nowhere'),
    })
    .prefault({}),
  rendezvousPort: z
    .number()
    .int()
    .min(1)
    .max(65500)
    .default(20000)
    .describe('port of the head where the ranks meet'),
  args: z
    .partialRecord(engine, z.array(text))
    .default({})
    .describe('arguments per engine, passed through in order'),
  env: z
    .record(envName, z.union([text, z.number(), z.boolean()]).transform(String))
    .default({})
    .describe('variables for every rank'),
  check: z
    .strictObject({ prompt: text.min(1), expect: text.min(1) })
    .default({ prompt: 'What is 12 times 17? Answer with the number.', expect: '204' })
    .describe('what the model is asked at the end, and what its answer must hold'),
});

export type Recipe = z.output<typeof recipeSchema>;
/** A recipe as read: with the file's path and the digest of its meaning (defaults folded in). */
export type RecipeFile = { readonly file: string; readonly recipe: Recipe; readonly digest: string };

/** One change to what is wanted, made by a remedy; `path` is dotted. The file itself is never changed. */
export type RecipeEdit = { readonly path: string; readonly from: unknown; readonly to: unknown };

/** The software behind an engine, whose flags, messages and memory model it has: vLLM over Ray is vLLM. */
export function softwareOf(engine: EngineName): Software {
  return engine === 'sglang' ? 'sglang' : 'vllm';
}

/** The engine's image; vLLM's own serves over Ray too where no other is named. Undefined for plain processes. */
export function imageOf({ run }: Recipe, engine: EngineName): string | undefined {
  return run.in === 'process' ? undefined : (run.image[engine] ?? run.image[softwareOf(engine)]);
}

/** The engine's additional arguments: its own, else those of its software. */
export function argsOf({ args }: Recipe, engine: EngineName): readonly string[] {
  return args[engine] ?? args[softwareOf(engine)] ?? [];
}

/** The name the model is served under. */
export function servedName(recipe: Recipe): string {
  return recipe.serve.name ?? recipe.recipe;
}

/** The recipe with edits folded in; throws a plain Error when the result is no recipe (our bug). */
export function editRecipe(recipe: Recipe, edits: readonly RecipeEdit[]): Recipe {
  const copy: unknown = structuredClone(recipe);
  for (const edit of edits) setPath(copy, edit.path.split('.'), edit.to);
  return recipeSchema.parse(copy);
}

function setPath(target: unknown, path: readonly string[], value: unknown): void {
  const [head, ...rest] = path;
  if (head === undefined || typeof target !== 'object' || target === null)
    throw new Error('a recipe edit has no such path');
  if (rest.length === 0) {
    if (value === undefined) Reflect.deleteProperty(target, head);
    else Reflect.set(target, head, value);
    return;
  }
  if (Reflect.get(target, head) === undefined) Reflect.set(target, head, {});
  setPath(Reflect.get(target, head), rest, value);
}
