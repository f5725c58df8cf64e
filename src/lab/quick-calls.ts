import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { quote } from '../domain/quote.ts';
import { parseLabVariable } from './engine/lab-world.ts';
import { tools } from './tools/index.ts';
import type { LabWorld } from './world.ts';

const FOLDER = 'quick';
const CALLS = 'calls';

/** Calls that read no input, print once and end: by tool, the words that they begin with, as patterns of sh. */
const QUICK: Readonly<Record<string, string>> = {
  docker: '"ps "* | "inspect "* | "image inspect "*',
  'nvidia-smi': '"--query"*',
  ss: '"-"*',
  ip: '"-j "*',
  dmesg: '""',
};

/**
 * The first part of a stand-in's stub: such a call is put into a folder of its own and told through a pipe with a name.
 * A process of node's takes twenty times as long to start as all of this, and a look has some thirty of them. Empty for
 * a tool that has none; without the lab's process, or with a second call under the same number, it goes on.
 */
export function quickStub(folder: string, tool: string): string {
  const words = QUICK[tool];
  if (words === undefined) return '';
  const at = join(folder, FOLDER);
  return `case "$*" in ${words})
  call=${quote(at)}/$$
  if kill -0 ${process.pid} 2>/dev/null && mkdir "$call" 2>/dev/null; then
    mkfifo "$call/code" && exec 3<>"$call/code" || exit 69
    printf '%s\\0' "$FIRSTLIGHT_LAB" "$FIRSTLIGHT_LAB_UID" $$ $PPID "$PWD" ${tool} "$@" >"$call/words"
    echo $$ 1<>${quote(join(at, CALLS))}
    read -r code <&3
    cat "$call/out"
    [ ! -s "$call/err" ] || cat "$call/err" >&2
    rm -rf "$call"
    exit "$code"
  fi ;;
esac
`;
}

/** Answers such calls until it is closed. Needs the command mkfifo. */
export function answerQuickCalls(
  folder: string,
  token: string,
  world: () => LabWorld,
): { readonly close: () => void } {
  const at = join(folder, FOLDER);
  rmSync(at, { recursive: true, force: true });
  mkdirSync(at, { recursive: true });
  const path = join(at, CALLS);
  const { status, error } = spawnSync('mkfifo', [path]);
  if (status !== 0) throw new Error('the lab needs the command mkfifo', { cause: error });
  // Both ends, so that it never comes to its end between two calls.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const calls = new Socket({ fd, readable: true, writable: false });
  let rest = '';
  calls.setEncoding('utf8').on('data', (text: string | Buffer) => {
    const lines = (rest + String(text)).split('\n');
    rest = lines.pop() ?? '';
    for (const number of lines)
      answer(join(at, number), token, world).catch(() => {
        // Whoever asked is gone, and its folder with it.
      });
  });
  return {
    close() {
      calls.destroy();
      rmSync(at, { recursive: true, force: true });
    },
  };
}

async function answer(call: string, token: string, world: () => LabWorld): Promise<void> {
  const words = readFileSync(join(call, 'words'), 'utf8').split('\0').slice(0, -1);
  const [lab = '', uid = '', pid, ppid, cwd = '', name = '', ...argv] = words;
  const known = parseLabVariable(lab);
  const tool = tools[name];
  const host =
    known?.token === token ? world().hosts.find((candidate) => candidate.name === known.host) : undefined;
  if (host === undefined || tool === undefined)
    return say(call, { stdout: '', stderr: 'the lab does not know this process\n', code: 69 });
  const print = { stdout: '', stderr: '' };
  try {
    const said = await tool({
      host,
      argv,
      env: {},
      uid: uid === '' ? 1000 : Number(uid),
      pid: Number(pid),
      ppid: Number(ppid),
      cwd,
      input: '',
      inputEnded: true,
      print: (stream, text) => {
        print[stream] += text;
      },
      onSignal: () => undefined,
      gone: new AbortController().signal,
    });
    if (!('code' in said)) throw new Error('this call is none that is answered at once');
    say(call, { ...said, stdout: print.stdout + said.stdout, stderr: print.stderr + said.stderr });
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    say(call, { stdout: '', stderr: `${name}: firstlight lab stand-in: ${text}\n`, code: 70 });
  }
}

/** The stub waits for the code: its output lies there before. One that was ended meanwhile waits no more. */
function say(
  call: string,
  { stdout, stderr, code }: { readonly stdout: string; readonly stderr: string; readonly code: number },
): void {
  if (!existsSync(call)) return;
  writeFileSync(join(call, 'out'), stdout);
  writeFileSync(join(call, 'err'), stderr);
  try {
    const fd = openSync(join(call, 'code'), constants.O_WRONLY | constants.O_NONBLOCK);
    writeSync(fd, `${code}\n`);
    closeSync(fd);
  } catch {
    // Nobody reads it any more.
    rmSync(call, { recursive: true, force: true });
  }
}
