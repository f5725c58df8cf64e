import { z } from 'zod';
import { ENGINES, size } from '../domain/recipe.ts';

const recipeFile = z.string().describe('recipe file').meta({ positional: true, file: true });
/** Ids of steps, one by one or several in one word with commas between them. */
const stepIds = z
  .array(z.string())
  .default([])
  .refine(
    (words) => words.length === 0 || words.some((word) => /[^\s,]/.test(word)),
    'names no step; write ids as they are shown, such as 7f3a',
  )
  .transform((words) => words.flatMap((word) => word.split(/[\s,]+/).filter((id) => id !== '')));
const ids = stepIds
  .describe('steps you allow, by the ids that plan shows; comma-separated or repeated')
  .meta({ value: 'ID,…' });
const runId = z.string().optional().describe('run number; the latest if left out').meta({ positional: true });

/** What a GPU has, which is not nothing. */
const amount = size.refine(
  (bytes) => bytes >= 2 ** 20,
  'is less than 1 MiB; write it with its unit, such as 121.69GiB',
);

/** Input of every operation: the CLI's flags, and later the HTTP and MCP schemas, come from these. */
export const inputs = {
  init: z.strictObject({
    nodes: z
      .array(z.string())
      .default([])
      .describe(
        'NAME=DESTINATION, behind it ,jump=… ,port=… ,user=… ,fabric=… ,key=… as needed; asked for when left out',
      )
      .meta({ positional: true, example: 'spark-a=aurora@10.1.230.180 spark-b=192.168.200.13,jump=spark-a' }),
    name: z.string().default('sparks').describe('name of the cluster'),
    user: z.string().optional().describe('user on every node'),
    sshConfig: z.string().optional().describe('an ssh_config file to include').meta({ value: 'FILE' }),
    force: z.boolean().default(false).describe('write over an existing file'),
    probe: z
      .boolean()
      .default(true)
      .describe('look at the hosts before writing')
      .meta({ without: 'write it without looking at the hosts' }),
  }),
  check: z.strictObject({
    recipe: recipeFile.optional().meta({ positional: true, example: 'recipe.yaml' }),
  }),
  memory: z.strictObject({
    node: z
      .array(z.string())
      .default([])
      .describe('this node alone; repeatable; all of the cluster if left out')
      .meta({ example: '--need 90GiB' }),
    need: size
      .optional()
      .describe('say what would have to go for so much, such as 90GiB')
      .meta({ value: 'SIZE' }),
    watch: z.boolean().default(false).describe('look again every two seconds until Ctrl-C'),
  }),
  fit: z.strictObject({
    recipe: recipeFile.optional().meta({ positional: true, example: 'recipe.yaml' }),
    model: z
      .string()
      .optional()
      .describe('without a cluster: a model folder, its config.json, or a file that describes it')
      .meta({ value: 'DIR' }),
    index: z.string().optional().describe('its model.safetensors.index.json').meta({ value: 'FILE' }),
    engine: z.enum(['vllm', 'sglang']).optional().describe('engine; needed with --model'),
    nodes: z.coerce.number().int().min(1).max(4096).optional().describe('how many nodes; 1 if left out'),
    tensor: z.coerce.number().int().min(1).max(4096).optional().describe('tensor parallel size'),
    pipeline: z.coerce.number().int().min(1).max(4096).optional().describe('pipeline parallel size'),
    expert: z.coerce.number().int().min(1).max(4096).optional().describe('expert parallel size'),
    memory: amount
      .optional()
      .describe('memory of each GPU, of each node where it is unified')
      .meta({ value: 'SIZE' }),
    unified: z.boolean().default(false).describe('CPU and GPU share their memory, as on a DGX Spark'),
    available: size.optional().describe('what of it is free before the start').meta({ value: 'SIZE' }),
    context: z.coerce
      .number()
      .int()
      .min(1)
      .max(2 ** 40)
      .optional()
      .describe("tokens of the longest request; the model's own limit if left out"),
    sequences: z.coerce
      .number()
      .int()
      .min(1)
      .max(2 ** 30)
      .optional()
      .describe("requests at once; the engine's default if left out"),
    set: z
      .array(z.string())
      .default([])
      .describe('a setting: fraction, kvCacheDtype, speculative=METHOD:N … (docs/fit.md); repeatable')
      .meta({ value: 'KEY=VALUE' }),
  }),
  plan: z.strictObject({
    recipe: recipeFile.meta({ positional: true, example: 'recipe.yaml' }),
    why: z.boolean().default(false).describe('where each number comes from'),
    replace: z.boolean().default(false).describe('plan as if ranks that serve another recipe may be stopped'),
    anew: z.boolean().default(false).describe('leave out what earlier runs proved or saw fail'),
  }),
  up: z.strictObject({
    recipe: recipeFile.meta({ positional: true, example: 'recipe.yaml' }),
    consent: ids,
    plan: z
      .string()
      .optional()
      .describe('go on only while the plan has this digest')
      .meta({ value: 'DIGEST' }),
    replace: z.boolean().default(false).describe('stop ranks of ours that serve another recipe'),
    wait: z.boolean().default(false).describe('wait for consent that is given elsewhere'),
    anew: z.boolean().default(false).describe('leave out what earlier runs proved or saw fail'),
  }),
  status: z.strictObject({}),
  logs: z.strictObject({
    run: runId.meta({ positional: true, example: '14 --rank 1 --stage weights' }),
    attempt: z.coerce.number().int().min(1).optional().describe('attempt; the last if left out'),
    rank: z.coerce.number().int().min(0).optional().describe('one rank only'),
    stage: z
      .string()
      .optional()
      .describe('one stage only: start, rendezvous, weights, kv, graphs, warmup, serving'),
    line: z.coerce.number().int().min(1).optional().describe('around this line of the rank (needs --rank)'),
    tail: z.coerce.number().int().min(1).optional().describe('the last N lines only'),
    follow: z.boolean().default(false).describe('go on as lines come'),
  }),
  runs: z.strictObject({
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .default(20)
      .describe('how many, newest first')
      .meta({ example: '--limit 5' }),
    remedies: z
      .boolean()
      .default(false)
      .describe('list the remedies that runs proved, which the next up begins with'),
  }),
  show: z.strictObject({ run: runId.meta({ positional: true, example: '14' }) }),
  adopt: z.strictObject({
    rank: z
      .array(z.string())
      .default([])
      .describe('RANK=NODE:PID or RANK=NODE:CONTAINER, then ,log=PATH; one per rank; looked for if left out')
      .meta({ example: '--rank 0=spark-a:4711 --rank 1=spark-b:sglang-worker --engine sglang' }),
    engine: z.enum(ENGINES).optional().describe('engine that they run'),
    port: z.coerce.number().int().min(1).max(65535).optional().describe("port of the head's API"),
    recipe: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be letters, digits, ".", "_" and "-"')
      .default('by-hand')
      .describe('what to call it'),
  }),
  diagnose: z.strictObject({
    run: z
      .string()
      .optional()
      .describe(
        'run number, folder of logs, bundle, one log, or - for standard input; the latest run if left out',
      )
      .meta({
        positional: true,
        file: true,
        example: '--log head=spark-a:/home/aurora/head.log --log worker=worker.log',
      }),
    log: z
      .array(z.string())
      .default([])
      .describe(
        'log of a job launched by hand: head=FILE, worker=NODE:/path, client=FILE, worker-dmesg=FILE …; repeatable',
      ),
    engine: z.enum(ENGINES).optional().describe('engine that wrote the logs; recognised if left out'),
    facts: z
      .string()
      .optional()
      .describe('what is known beside the logs: commands, environment, versions, memory (docs/files.md)')
      .meta({ value: 'FILE' }),
    follow: z.boolean().default(false).describe('read on until it failed or serves (needs --log)'),
  }),
  bundle: z.strictObject({
    run: runId.meta({ positional: true, example: '14 --output trouble.tar.gz' }),
    output: z
      .string()
      .optional()
      .describe('file to write; firstlight-run-RUN.tar.gz here if left out')
      .meta({ value: 'FILE' }),
    hideHosts: z.boolean().default(false).describe('hide names and addresses of hosts too'),
  }),
  chat: z.strictObject({
    prompt: z
      .string()
      .refine((text) => /\S/.test(text), 'it asks nothing; put the question in quotes')
      .describe('what to ask')
      .meta({ positional: true, example: '"What is 12 times 17?"' }),
    maxTokens: z.coerce.number().int().min(1).default(1024).describe('longest answer, in tokens'),
    system: z.string().optional().describe('system prompt'),
  }),
  down: z.strictObject({
    recipe: recipeFile
      .optional()
      .describe('stop this recipe only; all of ours if left out')
      .meta({ positional: true, example: '--restore' }),
    restore: z.boolean().default(false).describe('then give back what was stopped for it'),
  }),
  restore: z.strictObject({
    ids: stepIds
      .describe('ids of what to give back, also with commas between them; everything if left out')
      .meta({ positional: true, example: '7f3a' }),
  }),
  consent: z.strictObject({
    run: z.string().describe('run that waits').meta({ positional: true, example: '14 7f3a c21e' }),
    allow: stepIds
      .describe('ids of the steps you allow, also with commas between them; what is not named stays asked')
      .meta({ positional: true }),
    refuse: z.boolean().default(false).describe('refuse what is not named; the run then ends'),
    plan: z
      .string()
      .optional()
      .describe('answer only while the question is about the plan with this digest')
      .meta({ value: 'DIGEST' }),
  }),
  serve: z.strictObject({
    listen: z
      .string()
      .default('127.0.0.1')
      .describe('address to listen on; any but loopback is open to the network')
      .meta({ example: '--port 7071', value: 'ADDR' }),
    port: z.coerce.number().int().min(0).max(65535).default(7070).describe('port; 0 takes a free one'),
    readOnly: z
      .boolean()
      .default(false)
      .describe('show everything; change nothing, and ask the model nothing'),
    tlsCert: z.string().optional().describe('certificate for https, PEM').meta({ value: 'FILE' }),
    tlsKey: z.string().optional().describe('its private key, PEM').meta({ value: 'FILE' }),
    open: z
      .boolean()
      .default(true)
      .describe('open the page in a browser')
      .meta({ without: 'open no browser' }),
  }),
  mcp: z.strictObject({}),
  lab: z.strictObject({
    action: z
      .enum(['up', 'down', 'story', 'list'])
      .describe('up, down, story or list')
      .meta({ positional: true, example: 'story two-sparks' }),
    story: z.string().optional().describe('name of the story').meta({ positional: true }),
    dir: z.string().optional().describe('folder of the lab'),
    seed: z.coerce
      .number()
      .int()
      .min(0)
      .optional()
      .describe('changes names, users, ports, addresses and sizes'),
    keep: z.boolean().default(false).describe('leave the lab running after the story'),
  }),
} as const;
