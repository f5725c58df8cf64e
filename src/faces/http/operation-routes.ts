import { z } from 'zod';
import { begin } from '../../operations/begin.ts';
import type { Answer, Operation } from '../../operations/operation.ts';
import { recipeBeside } from '../../operations/recipes.ts';
import type { Live } from '../../operations/world.ts';
import { answers } from './answers.ts';
import { type Call, nothing, type Reply, type Route, route, valid } from './call.ts';
import { problemOf, Refusal } from './problem.ts';

/** Operations that open a run, go on by themselves, and are looked at through it. */
const RUNS = new Set(['up', 'down', 'restore', 'adopt']);
/** Reads for a person at the terminal; over the network it makes the model work, or reads files of any name. */
const WRITES = new Set(['bundle', 'chat', 'diagnose']);
/** Held open without end on a terminal; here events and windows of the log do that. */
const FOLLOWS = ['follow', 'watch'];
/** What stands for a value that names a file of this machine, as `--help` shows it. */
const FILES = new Set(['FILE', 'DIR']);

/** One address per operation, its body by the operation's own schema. */
export function operationRoutes(operations: readonly Operation[]): readonly Route[] {
  return operations.map((operation) => {
    const input = inputOf(operation);
    const body = input.safeParse({}).success ? input.optional() : input;
    return route(
      {
        method: 'POST',
        path: `/api/operations/${operation.name}`,
        name: `do${operation.name.charAt(0).toUpperCase()}${operation.name.slice(1)}`,
        summary: operation.summary,
        scope: operation.effect === 'reads' && !WRITES.has(operation.name) ? 'read' : 'write',
        params: nothing,
        query: nothing,
        body,
        answers: {
          200: { about: 'its report, and the exit code it would have in a terminal', schema: answers.report },
          ...(RUNS.has(operation.name)
            ? { 202: { about: 'it goes on in this run', schema: answers.begun } }
            : {}),
        },
      },
      (call, given) => carryOut(call, operation, valid(input, given.body ?? {}, '')),
    );
  });
}

/** The operation's own input, less what only a person at this machine can mean: its files, and following without end. */
function inputOf({ input }: Operation): z.ZodType {
  if (!(input instanceof z.ZodObject)) return input;
  const left = Object.entries(input.shape).filter(([key, field]) => {
    const value = field instanceof z.ZodType ? field.meta()?.['value'] : undefined;
    return !FOLLOWS.includes(key) && !FILES.has(String(value));
  });
  return z.strictObject(Object.fromEntries(left));
}

async function carryOut(call: Call, operation: Operation, raw: unknown): Promise<Reply> {
  const input = valid(operation.input, confined(call, operation, raw), '');
  if (RUNS.has(operation.name)) {
    const begun = await call.desk.jobs.start(call.desk.world(), operation, input, call.world.face ?? '');
    if ('answer' in begun) return { status: 200, body: begun.answer };
    return { status: 202, body: begun, headers: { Location: `/api/runs/${begun.run}` } };
  }
  const streams =
    operation.name === 'chat' && /text\/event-stream/.test(String(call.request.headers.accept ?? ''));
  if (streams) return streamed(call, operation, input);
  return { status: 200, body: await answerOf(call, operation, input) };
}

function answerOf(
  { world }: Call,
  operation: Operation,
  input: z.output<z.ZodType>,
  live: (update: Live) => void = () => {},
): Promise<Answer> {
  // The request's own signal is the World's already.
  return begin(world, operation, input, { signal: world.signal, face: world.face ?? '', live }).done;
}

/** The model's words as they come, then the whole. */
async function streamed(call: Call, operation: Operation, input: z.output<z.ZodType>): Promise<Reply> {
  const { response, desk } = call;
  const write = (event: string, data: unknown): void => {
    if (response.headersSent === false)
      response.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
      });
    response.write(`event: ${event}\ndata: ${desk.scrub(JSON.stringify(data))}\n\n`);
  };
  try {
    const answer = await answerOf(call, operation, input, (update) => {
      if (update.kind === 'text') write('text', { part: update.part, text: update.text });
    });
    write('answer', answer);
  } catch (error) {
    // Before the first word it is an answer of its own; after it, the last event.
    if (!response.headersSent) throw error;
    write('problem', problemOf(error));
  }
  response.end();
  return 'written';
}

/** What names a file of this machine names one beside the cluster file: who asks here need not be its user. */
function confined({ world }: Call, operation: Operation, raw: unknown): unknown {
  const given = z.looseObject({}).parse(raw);
  const { run } = given;
  // On a terminal `diagnose` takes a folder or a file in its place.
  if (typeof run === 'string' && !/^\d{1,15}$/.test(run))
    throw new Refusal(422, 'bad-input', 'run: it must be the number of a run', 'GET /api/runs lists them');
  const logs = z.array(z.string()).optional().catch(undefined).parse(given['log']);
  if ((logs ?? []).some((log) => !/^(?:(?:head|worker\d*|(?:rank)?\d+)=)?[A-Za-z0-9][\w.-]*:/.test(log)))
    throw new Refusal(
      422,
      'bad-input',
      'log: a file of this machine is not read for a client',
      'name NODE:/path',
    );
  const recipe = given['recipe'];
  // `adopt` calls a name what others call a file.
  if (typeof recipe !== 'string' || operation.name === 'adopt') return raw;
  return { ...given, recipe: recipeBeside(world, recipe) };
}
