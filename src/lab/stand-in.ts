/**
 * One program behind every stand-in of a lab host: passes what was typed to the lab's world, prints what comes
 * back, and ends as it says. Only node's own modules, since it is started for each call.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readSync, writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

type Reply = {
  readonly ok?: boolean;
  readonly stream?: 'stdout' | 'stderr';
  readonly text?: string;
  readonly readLine?: boolean;
  readonly run?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly code?: number;
};

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

function main(words: readonly string[]): void {
  const [port = '', token = '', host = ''] = (process.env['FIRSTLIGHT_LAB'] ?? '').split(':');
  const holder = words[0] === '--holder';
  const argv = holder ? words.slice(2) : words;
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => end('the lab is gone', 69));
  socket.on('close', () => end('the lab is gone', 69));
  let input = '';
  const send = (message: unknown): void => {
    socket.write(`${JSON.stringify(message)}\n`);
  };
  const ask = (stdinEnded: boolean): void =>
    send({
      op: 'tool',
      tool: argv[0],
      argv: argv.slice(1),
      stdin: input,
      stdinEnded,
      env: process.env,
      cwd: process.cwd(),
    });
  const pid = holder ? Number(words[1]) : process.pid;
  send({
    op: 'hello',
    token,
    host,
    pid,
    ppid: process.ppid,
    uid: process.env['FIRSTLIGHT_LAB_UID'] ?? '',
    argv,
  });
  if (holder) send({ op: 'holder' });
  else ask(false);

  let child: ChildProcess | undefined;
  for (const name of SIGNALS) {
    process.on(name, () => {
      if (child === undefined) send({ op: 'signal', signal: name });
      else child.kill(name);
    });
  }
  let replies = 0;
  eachLine(socket, (reply) => {
    replies += 1;
    if (replies === 1) {
      if (reply.ok !== true) end(reply.text ?? 'the lab does not know this process', 69);
      return;
    }
    if (reply.stream !== undefined) {
      put(reply.stream === 'stdout' ? 1 : 2, reply.text ?? '');
    } else if (reply.readLine === true) {
      put(2, reply.stderr ?? '');
      const line = readLine();
      input += line ?? '';
      ask(line === undefined);
    } else if (reply.run !== undefined) {
      child = run(reply.run, reply.env ?? {});
    } else {
      put(1, reply.stdout ?? '');
      put(2, reply.stderr ?? reply.text ?? '');
      process.exit(reply.ok === true ? (reply.code ?? 0) : 1);
    }
  });
}

/** The command that sudo was asked for, with our own standard streams; we end as it ends. */
function run(argv: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn(argv[0] ?? '', argv.slice(1), { env, stdio: 'inherit' });
  child.on('error', () => end(`sudo: ${argv[0] ?? ''}: command not found`, 1));
  child.on('exit', (code, bySignal) => {
    if (bySignal === null) process.exit(code ?? 1);
    for (const name of SIGNALS) process.removeAllListeners(name);
    process.kill(process.pid, bySignal);
  });
  return child;
}

function eachLine(socket: Socket, take: (reply: Reply) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(JSON.parse(line));
  });
}

/** Byte by byte: what stands behind the line is the next program's. */
function readLine(): string | undefined {
  const byte = Buffer.alloc(1);
  const line: number[] = [];
  while (read(byte) === 1) {
    line.push(byte[0] ?? 0);
    if (byte[0] === 10) return Buffer.from(line).toString('utf8');
  }
  return line.length === 0 ? undefined : `${Buffer.from(line).toString('utf8')}\n`;
}

function read(byte: Buffer): number {
  for (;;) {
    try {
      return readSync(0, byte, 0, 1, null);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') continue;
      return 0;
    }
  }
}

/** Whole, also into a pipe that is full for a moment. */
function put(descriptor: 1 | 2, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') continue;
      process.exit(141);
    }
  }
}

function end(why: string, code: number): void {
  put(2, `${why}\n`);
  process.exit(code);
}

main(process.argv.slice(2));
