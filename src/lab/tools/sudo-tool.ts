import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

type Wish = {
  nonInteractive: boolean;
  fromStdin: boolean;
  validate: boolean;
  forget: boolean;
  list: boolean;
  prompt: string | undefined;
  preserve: boolean;
  user: string;
  command: string[];
  env: Record<string, string>;
};

/** sudo: asks the host's own rules, and lets the stand-in run the command as root. */
export function sudo(call: ToolCall): ToolAnswer {
  const wish = read(call.argv);
  if (typeof wish === 'string') return bad(wish);
  if (wish.list && wish.command[0] === '--version') {
    return out('Sudo version 1.9.15p5 (firstlight lab stand-in)\n');
  }
  if (wish.forget && wish.command.length === 0 && !wish.validate) {
    call.host.sudo.forget(call.ppid);
    return out('');
  }
  if (call.uid !== 0 && !call.host.sudo.free(call.ppid)) {
    if (wish.nonInteractive) return bad('sudo: a password is required');
    if (!wish.fromStdin) {
      return bad(
        'sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper\nsudo: a password is required',
      );
    }
    const refused = offer(call, wish);
    if (refused !== undefined) return refused;
  }
  if (wish.validate || wish.command.length === 0) return out('');
  call.host.enterSudo(call.gone);
  return { run: wish.command, env: rootEnvironment(call, wish) };
}

/** One line at a time, three at most: what stands behind them in the input is not sudo's. */
function offer(call: ToolCall, wish: Wish): ToolAnswer | undefined {
  const lines = call.input.split('\n').slice(0, -1);
  if (lines.length > 0 && call.host.sudo.offer(call.ppid, lines.at(-1) ?? '')) return undefined;
  const again = lines.length === 0 ? '' : 'Sorry, try again.\n';
  if (lines.length >= 3) return bad('sudo: 3 incorrect password attempts');
  if (!call.inputEnded) {
    return { readLine: true, stderr: `${again}${wish.prompt ?? `[sudo] password for ${call.host.user}: `}` };
  }
  return bad(
    lines.length === 0
      ? '\nsudo: no password was provided\nsudo: a password is required'
      : `\nsudo: no password was provided\nsudo: ${lines.length} incorrect password attempt${lines.length === 1 ? '' : 's'}`,
  );
}

/** env_reset: only what sudo sets itself, what it is told to set, and the lab's own variables. */
function rootEnvironment(call: ToolCall, wish: Wish): Readonly<Record<string, string>> {
  const kept = ['PATH', 'TERM', 'LANG', 'LC_ALL', 'FIRSTLIGHT_ROOT', 'FIRSTLIGHT_LAB', 'FIRSTLIGHT_LAB_BIN'];
  const base = wish.preserve
    ? call.env
    : Object.fromEntries(Object.entries(call.env).filter(([key]) => kept.includes(key)));
  const root = wish.user === 'root';
  const login = call.host.login(wish.user);
  return {
    ...base,
    HOME: login.home,
    USER: wish.user,
    LOGNAME: wish.user,
    SHELL: '/bin/sh',
    SUDO_USER: call.host.user,
    SUDO_UID: '1000',
    SUDO_GID: '1000',
    SUDO_COMMAND: wish.command.join(' '),
    ...wish.env,
    FIRSTLIGHT_LAB_UID: root ? '0' : String(login.uid),
  };
}

const TAKES = new Set(['-u', '--user', '-g', '--group', '-p', '--prompt', '-C', '-D', '--chdir', '-h', '-T']);

function read(argv: readonly string[]): Wish | string {
  const wish: Wish = {
    nonInteractive: false,
    fromStdin: false,
    validate: false,
    forget: false,
    list: false,
    prompt: undefined,
    preserve: false,
    user: 'root',
    command: [],
    env: {},
  };
  let at = 0;
  for (; at < argv.length; at += 1) {
    const word = argv[at] ?? '';
    if (word === '--') {
      at += 1;
      break;
    }
    if (!word.startsWith('-')) break;
    if (word === '-V' || word === '--version') return { ...wish, list: true, command: ['--version'] };
    const [long = '', inline] = word.split(/=(.*)/s);
    if (TAKES.has(long)) {
      if (inline === undefined) at += 1;
      const value = inline ?? argv[at] ?? '';
      if (long === '-u' || long === '--user') wish.user = value;
      if (long === '-p' || long === '--prompt') wish.prompt = value;
      continue;
    }
    const letters = long.startsWith('--') ? [LONG[long] ?? ''] : [...word.slice(1)];
    for (const letter of letters) {
      if (letter === 'n') wish.nonInteractive = true;
      else if (letter === 'S') wish.fromStdin = true;
      else if (letter === 'v') wish.validate = true;
      else if (letter === 'k' || letter === 'K') wish.forget = true;
      else if (letter === 'E') wish.preserve = true;
      else if (letter === 'l') wish.list = true;
      else if (letter === 'p' && letters.length > 1) {
        // -Sp '': the prompt is the next word.
        at += 1;
        wish.prompt = argv[at] ?? '';
      } else if (!'HbAisPB'.includes(letter) || letter === '') return `sudo: invalid option -- '${letter}'`;
    }
  }
  for (; at < argv.length; at += 1) {
    const pair = /^([A-Za-z_]\w*)=(.*)$/s.exec(argv[at] ?? '');
    if (pair === null) break;
    wish.env[pair[1] ?? ''] = pair[2] ?? '';
  }
  wish.command = argv.slice(at);
  return wish;
}

const LONG: Readonly<Record<string, string>> = {
  '--non-interactive': 'n',
  '--stdin': 'S',
  '--validate': 'v',
  '--reset-timestamp': 'k',
  '--remove-timestamp': 'K',
  '--preserve-env': 'E',
  '--list': 'l',
  '--set-home': 'H',
  '--login': 'i',
};
