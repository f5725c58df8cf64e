import { PassThrough, type Writable } from 'node:stream';
import { runCli } from '../../src/faces/cli/run.ts';
import type { CliWorldOptions } from '../../src/faces/cli/session.ts';
import { inputs } from '../../src/operations/inputs.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

/** A stream that says it is a terminal and can be put in raw mode. */
export class Terminal extends PassThrough {
  readonly isTTY = true;
  readonly columns: number;
  readonly rows: number;
  isRaw = false;
  readonly rawModes: boolean[] = [];
  constructor(columns = 80, rows = 24) {
    super();
    this.columns = columns;
    this.rows = rows;
  }
  setRawMode(raw: boolean): this {
    this.isRaw = raw;
    this.rawModes.push(raw);
    return this;
  }
}

export type Ran = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly options: CliWorldOptions | undefined;
  /** "NODE FINGERPRINT" of every host key that was accepted. */
  readonly accepted: readonly string[];
  /** Codes with which the process was to end at once. */
  readonly left: readonly number[];
};

/** Runs the face with these operations; pipes unless terminals are given. */
export async function run(
  argv: readonly string[],
  operations: readonly Operation[],
  more: {
    readonly stdin?: PassThrough;
    readonly stderr?: Terminal;
    readonly stdout?: Writable;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Ran> {
  let options: CliWorldOptions | undefined;
  const accepted: string[] = [];
  const left: number[] = [];
  const stdout = more.stdout ?? new PassThrough();
  const stderr = more.stderr ?? new PassThrough();
  const texts = { stdout: '', stderr: '' };
  stdout.on('data', (chunk: Buffer) => {
    texts.stdout += chunk.toString();
  });
  stderr.on('data', (chunk: Buffer) => {
    texts.stderr += chunk.toString();
  });
  const code = await runCli(argv, {
    operations,
    makeWorld: (given) => {
      options = given;
      return pretendWorld(given, (key) => accepted.push(key));
    },
    version: '0.1.0',
    stdin: more.stdin ?? new PassThrough(),
    stdout,
    stderr,
    env: { LANG: 'C.UTF-8', ...more.env },
    exit: (status) => left.push(status),
  });
  await new Promise((resolve) => setImmediate(resolve));
  return { code, ...texts, options, accepted, left };
}

/** An operation of the real input schemas whose work the test gives. */
export function operation<Name extends keyof typeof inputs>(
  name: Name,
  work: Operation['run'],
  effect: Operation['effect'] = 'reads',
): Operation {
  return { name, summary: `does ${name}`, effect, input: inputs[name], run: work };
}
