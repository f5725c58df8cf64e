import { execFileSync } from 'node:child_process';
import { PassThrough, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import type { EventBody } from '../../src/domain/event.ts';
import { UserError } from '../../src/domain/user-error.ts';
import type { inputs } from '../../src/operations/inputs.ts';
import type { Answer, Operation } from '../../src/operations/operation.ts';
import type { World } from '../../src/operations/world.ts';
import { storyEvents, storyUntil } from '../pretend/story-events.ts';
import './golden.ts';
import { width } from '../../src/faces/cli/width.ts';
import { operation, run, Terminal } from './run-cli.ts';

const RUNS: Answer = { report: { kind: 'runs', runs: [] }, exit: 0 };
const NAMES = [
  'init',
  'check',
  'plan',
  'up',
  'status',
  'logs',
  'runs',
  'show',
  'diagnose',
  'chat',
  'down',
  'restore',
  'lab',
] as const;
const all: readonly Operation[] = NAMES.map((name) => operation(name, async () => RUNS));

function body(event: (typeof storyEvents)[number]): EventBody {
  const { v: _v, seq: _seq, run: _run, at: _at, ...rest } = event;
  return rest;
}

/** `up` that tells the whole story in no time. */
const up = operation(
  'up',
  async (_input, world) => {
    const id = world.journal.newRun();
    for (const event of storyEvents) world.journal.append(id, body(event));
    const ended = world.journal.read(id).at(-1);
    if (ended?.type !== 'run-ended') throw new Error('the story has no end');
    return { report: { kind: 'run', run: id, ended }, exit: 0 };
  },
  'changes',
);

test('every command has a help with its flags, their meaning and an example', async () => {
  for (const { name } of all) {
    const { code, stdout } = await run([name, '--help'], all);
    expect(code).toBe(0);
    expect(stdout).toContain(`Example:\n  firstlight ${name}`);
    expect(stdout).toContain('--json');
  }
  const logs = await run(['logs', '--help'], all);
  expect(logs.stdout).toContain('--rank <N>');
  expect(logs.stdout).toContain('one rank only');
  const init = await run(['init', '--help'], all);
  expect(init.stdout).toContain('--ssh-config <FILE>');
  expect(init.stdout).toMatch(/--no-probe +write it without looking at the hosts/);
});

test('the version is printed with exit 0', async () => {
  expect(await run(['--version'], all)).toMatchObject({ code: 0, stdout: '0.1.0\n' });
});

test('a command that is not there is refused with a suggestion and exit 2', async () => {
  const { code, stderr } = await run(['statsu'], all);
  expect(code).toBe(2);
  expect(stderr).toContain('Did you mean status?');
});

test('a flag that is not there is refused with a suggestion and exit 2', async () => {
  const { code, stderr } = await run(['logs', '--folow'], all);
  expect(code).toBe(2);
  expect(stderr).toContain('Did you mean --follow?');
});

test('a missing argument is refused with exit 2, as JSON where JSON was asked for', async () => {
  const { code, stdout, stderr } = await run(['up', '--json'], all);
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'bad-input' } });
  expect(stderr).toBe('');
});

test('no command at all shows the help and exits with 2', async () => {
  const { code, stderr } = await run([], all);
  expect(code).toBe(2);
  expect(stderr).toContain('First steps');
});

test('flags become the input that the schema describes', async () => {
  let seen: unknown;
  const record = (name: keyof typeof inputs): Operation =>
    operation(name, async (input) => {
      seen = input;
      return RUNS;
    });
  await run(['up', 'r.yaml', '--consent', '7f3a,c21e', '--consent', '90b4', '--replace'], [record('up')]);
  expect(seen).toMatchObject({
    recipe: 'r.yaml',
    consent: ['7f3a', 'c21e', '90b4'],
    replace: true,
    wait: false,
  });
  await run(['logs', '14', '--rank', '1', '--follow'], [record('logs')]);
  expect(seen).toMatchObject({ run: '14', rank: 1, follow: true });
  await run(['init', 'a=1.2.3.4', 'b=1.2.3.5,jump=a', '--no-probe'], [record('init')]);
  expect(seen).toMatchObject({ nodes: ['a=1.2.3.4', 'b=1.2.3.5,jump=a'], probe: false });
  await run(['restore', '7f3a'], [record('restore')]);
  expect(seen).toMatchObject({ ids: ['7f3a'] });
  for (const words of [['7f3a,c21e'], ['7f3a,', 'c21e'], ['7f3a', ',c21e,'], ['7f3a, c21e']]) {
    await run(['restore', ...words], [record('restore')]);
    expect(seen).toMatchObject({ ids: ['7f3a', 'c21e'] });
    await run(['consent', '14', ...words, '--refuse'], [record('consent')]);
    expect(seen).toMatchObject({ run: '14', allow: ['7f3a', 'c21e'], refuse: true });
  }
  await run(['chat', '-x', '--max-tokens', '7'], [record('chat')]);
});

test('a value of the wrong kind is refused with exit 2 and names the flag', async () => {
  const { code, stderr } = await run(['logs', '--rank', 'first'], all);
  expect(code).toBe(2);
  expect(stderr).toContain('--rank');
});

test('the cluster file comes from the flag, else the environment, else ./cluster.yaml', async () => {
  const file = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    (await run([...argv], all, { env })).options?.cluster;
  expect(await file(['status'])).toBe('cluster.yaml');
  expect(await file(['status'], { FIRSTLIGHT_CLUSTER: '/e.yaml' })).toBe('/e.yaml');
  expect(await file(['status', '--cluster', '/f.yaml'], { FIRSTLIGHT_CLUSTER: '/e.yaml' })).toBe('/f.yaml');
  expect(await file(['--cluster', '/f.yaml', 'status'])).toBe('/f.yaml');
});

test('in a pipe progress goes to stderr as lines and the end to stdout', async () => {
  const { code, stdout, stderr } = await run(['up', 'r.yaml'], [up]);
  expect(code).toBe(0);
  expect(stdout).toContain('✓ Serving qwen3.5-122b since');
  expect(stdout).toContain('firstlight down --restore');
  expect(stderr.split('\n').length).toBeGreaterThan(40);
  expect(stderr).not.toContain('\x1b');
  expect(stdout).not.toContain('\x1b');
});

test('with --json up prints every event as one line and nothing else', async () => {
  const { stdout, stderr } = await run(['up', 'r.yaml', '--json'], [up]);
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(lines).toHaveLength(storyEvents.length);
  expect(lines.at(-1)).toMatchObject({ type: 'run-ended', outcome: 'serving' });
  expect(stderr).toBe('');
});

test('with --json what only reads prints its report as one value', async () => {
  const { stdout } = await run(['runs', '--json'], all);
  expect(JSON.parse(stdout)).toEqual({ kind: 'runs', runs: [] });
});

test('a user error exits with 2 and says that nothing was changed', async () => {
  const failing = operation('status', async () => {
    throw new UserError('bad-cluster-file', 'cluster.yaml is not there', 'firstlight init writes one');
  });
  const text = await run(['status'], [failing]);
  expect(text.code).toBe(2);
  expect(text.stderr).toContain('do: firstlight init writes one');
  expect(text.stderr).toContain('Nothing was changed on any host.');
  const json = await run(['status', '--json'], [failing]);
  expect(JSON.parse(json.stdout)).toEqual({
    error: {
      code: 'bad-cluster-file',
      message: 'cluster.yaml is not there',
      hint: 'firstlight init writes one',
    },
  });
});

test('a bug exits with 3, with a stack', async () => {
  const failing = operation('status', async () => {
    throw new Error('impossible');
  });
  const { code, stderr } = await run(['status'], [failing]);
  expect(code).toBe(3);
  expect(stderr).toContain("This is our mistake, not your cluster's.");
  expect(stderr).toContain('impossible');
});

test('control characters of an engine never reach the terminal', async () => {
  const evil = operation('logs', async () => ({
    report: {
      kind: 'logs',
      run: '1\x1b]0;title\x07',
      attempt: 1,
      lines: [
        {
          rank: 0,
          node: 'a',
          line: 1,
          at: 0,
          stage: 'start',
          text: '\x1b[31mred\x1b[0m \x1b[2J\x9b5m\x07\u202eevil\r\x08',
        },
      ],
    },
    exit: 0,
  }));
  const { stdout } = await run(['logs'], [evil], { env: { FORCE_COLOR: '1' } });
  expect(stdout).toContain('red');
  expect(stdout.replace(/\x1b\[\d+m/g, '')).toMatch(/^[^\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]*$/);
  expect(stdout).not.toContain('\x1b[31m');
});

/** `up` that asks, and waits in the journal for the answer as the real one does. */
function asking(heard: (answer: EventBody) => void): Operation {
  return operation(
    'up',
    async (_input, world: World) => {
      const id = world.journal.newRun();
      for (const event of storyUntil(8)) world.journal.append(id, body(event));
      for (;;) {
        const answer = world.journal.read(id).find((event) => event.type === 'consent-given');
        if (answer) {
          heard(answer);
          break;
        }
        await world.clock.wait(5, world.signal);
      }
      return RUNS;
    },
    'changes',
  );
}

/** Types the next answer whenever a question stands. */
function answering(stdin: Terminal, stderr: Terminal, answers: string[]): void {
  stderr.on('data', (chunk: Buffer) => {
    if (chunk.toString().trimEnd().endsWith('>')) stdin.write(answers.shift() ?? '\n');
  });
}

test('on a terminal the question is asked on stderr, nonsense is asked again, and the answer is an event', async () => {
  const stdin = new Terminal();
  const stderr = new Terminal();
  answering(stdin, stderr, ['7\n', '1,2\n']);
  let answer: EventBody | undefined;
  const { code, stdout } = await run(
    ['up', 'r.yaml', '--plain'],
    [
      asking((heard) => {
        answer = heard;
      }),
    ],
    { stdin, stderr },
  );
  expect(code).toBe(0);
  expect(answer).toMatchObject({
    steps: ['7f3a', 'c21e'],
    refused: ['90b4'],
    by: 'aurora in the terminal on laptop',
  });
  expect(stdout).not.toContain('Allow which');
});

test('an answer that comes from the journal and again from the run that takes it is told once', async () => {
  const twice = operation(
    'up',
    async (_input, world) => {
      const id = world.journal.newRun();
      for (const event of storyUntil(17)) world.journal.append(id, body(event));
      for (const event of world.journal.read(id)) if (event.type === 'consent-given') world.told(event);
      return RUNS;
    },
    'changes',
  );
  const { stderr } = await run(['up', 'r.yaml'], [twice]);
  expect(stderr.match(/consent-given/g)).toHaveLength(1);
});

test('an empty answer allows nothing', async () => {
  const stdin = new Terminal();
  const stderr = new Terminal();
  answering(stdin, stderr, ['\n']);
  let answer: EventBody | undefined;
  await run(
    ['up', 'r.yaml', '--plain'],
    [
      asking((heard) => {
        answer = heard;
      }),
    ],
    { stdin, stderr },
  );
  expect(answer).toMatchObject({ steps: [], refused: ['7f3a', 'c21e', '90b4'] });
});

test.each([40, 60, 72, 80, 120])(
  'every question fits %i columns, with room for its answer',
  async (columns) => {
    const stdin = new Terminal(columns);
    const stderr = new Terminal(columns);
    const [asks, ...others] = [
      asking(() => {}),
      operation('init', async () => RUNS),
      operation('status', async () => {
        throw new UserError(
          'host-key-unknown',
          'The host key of spark-b is not known here (ED25519 SHA256:abcdefghijklmnopqrstuvw+/xyz0123456789ABCDE).',
          'Compare the fingerprint with what ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints there.',
        );
      }),
    ];
    answering(stdin, stderr, [
      '7\n',
      'd\n',
      'none\n',
      'spark-a\n',
      'aurora@10.1.230.180\n',
      '\n',
      '\n',
      'no\n',
    ]);
    const said: string[] = [];
    said.push((await run(['up', 'r.yaml', '--plain'], [asks], { stdin, stderr })).stderr);
    for (const [at, name] of ['init', 'status'].entries())
      said.push((await run([name], [others[at] ?? asks], { stdin, stderr })).stderr);
    for (const line of said.join('\n').split(/\n|(?<= >) /)) // what is typed ends the line, and is not in here
      if (/\S\s+\S/.test(line) && !/^\d\d:/.test(line))
        expect(width(line), line).toBeLessThanOrEqual(columns);
  },
);

test('what was typed before the question stood is no answer to it', async () => {
  const stdin = new Terminal();
  const stderr = new Terminal();
  stdin.write('1,2,3\n1');
  answering(stdin, stderr, ['2\n']);
  let answer: EventBody | undefined;
  await run(
    ['up', 'r.yaml', '--plain'],
    [
      asking((heard) => {
        answer = heard;
      }),
    ],
    { stdin, stderr },
  );
  expect(answer).toMatchObject({ steps: ['c21e'], refused: ['7f3a', '90b4'] });
});

test('an answer given elsewhere takes the question off the table', async () => {
  const stdin = new Terminal();
  const elsewhere = operation('up', async (_input, world) => {
    const id = world.journal.newRun();
    for (const event of storyUntil(8)) world.journal.append(id, body(event));
    await world.clock.wait(20, world.signal);
    world.journal.append(id, { type: 'consent-given', steps: ['7f3a'], refused: [], by: 'the page' });
    await world.clock.wait(20, world.signal);
    const answers = world.journal.read(id).filter((event) => event.type === 'consent-given');
    expect(answers).toHaveLength(1);
    return RUNS;
  });
  expect((await run(['up', 'r.yaml', '--plain'], [elsewhere], { stdin, stderr: new Terminal() })).code).toBe(
    0,
  );
});

test('in a pipe nobody is asked, and up is told not to wait', async () => {
  let wait: unknown;
  const noted = operation('up', async (input) => {
    wait = Reflect.get(Object(input), 'wait');
    return RUNS;
  });
  const { options } = await run(['up', 'r.yaml'], [noted]);
  expect(wait).toBe(false);
  expect(options?.askPassword).toBeUndefined();
});

test('where a person sits at the terminal a password can be asked for', async () => {
  const { options } = await run(['up', 'r.yaml', '--plain'], [operation('up', async () => RUNS)], {
    stdin: new Terminal(),
    stderr: new Terminal(),
  });
  expect(options?.askPassword).toBeDefined();
});

test('an unknown host key is asked about on a terminal, and only yes trusts it', async () => {
  const failing = operation('status', async () => {
    throw new UserError(
      'host-key-unknown',
      'spark-b shows a host key that is not known (ED25519 SHA256:abc+/d=)',
      'Compare the fingerprint with its own.',
    );
  });
  const stdin = new Terminal();
  const stderr = new Terminal();
  stdin.write('y\n');
  const asked = await run(['status'], [failing], { stdin, stderr });
  expect(asked.code).toBe(2);
  expect(asked.stderr).toContain('Trust SHA256:abc+/d= for spark-b?');
  const trusted = new Terminal();
  trusted.write('yes\n');
  let runs = 0;
  const once = operation('status', async (input, world) => {
    runs += 1;
    return runs === 1 ? failing.run(input, world) : RUNS;
  });
  const { code, accepted } = await run(['status'], [once], { stdin: trusted, stderr: new Terminal() });
  expect({ code, runs, accepted }).toEqual({ code: 0, runs: 2, accepted: ['spark-b SHA256:abc+/d='] });
});

test('without a terminal an unknown host key is exit 2 with the flag that accepts it', async () => {
  const failing = operation('status', async () => {
    throw new UserError('host-key-unknown', 'spark-b shows SHA256:abc', 'compare it');
  });
  const refused = await run(['status'], [failing]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('--accept-host-key NODE=SHA256:abc');
  const given = await run(['status', '--accept-host-key', 'spark-b=SHA256:abc'], all);
  expect(given.accepted).toEqual(['spark-b SHA256:abc']);
  expect((await run(['status', '--accept-host-key', 'elsewhere=SHA256:abc'], all)).code).toBe(2);
});

test('init asks about the keys of the hosts that it was given, which stand in no file yet', async () => {
  let runs = 0;
  const once = operation('init', async () => {
    runs += 1;
    if (runs > 1) return RUNS;
    throw new UserError('host-key-unknown', 'The host key of new-1 is not known here (SHA256:abc).', '');
  });
  const stdin = new Terminal();
  stdin.write('yes\n');
  const asked = await run(['init', 'new-1=10.0.0.1'], [once], { stdin, stderr: new Terminal() });
  expect({ code: asked.code, runs, accepted: asked.accepted }).toEqual({
    code: 0,
    runs: 2,
    accepted: ['new-1 SHA256:abc'],
  });
  const given = await run(['init', 'new-1=10.0.0.1', '--accept-host-key', 'new-1=SHA256:abc'], [once]);
  expect(given.accepted).toEqual(['new-1 SHA256:abc']);
});

test('init asks for its hosts on a terminal when none are given', async () => {
  const stdin = new Terminal();
  const answers = [
    'spark-a\n',
    'aurora@10.1.230.180\n',
    '\n',
    'spark-b\n',
    '192.168.200.13\n',
    'spark-a\n',
    '\n',
  ];
  const stderr = new Terminal();
  answering(stdin, stderr, answers);
  let nodes: unknown;
  const init = operation('init', async (input) => {
    nodes = Reflect.get(Object(input), 'nodes');
    return RUNS;
  });
  await run(['init'], [init], { stdin, stderr });
  expect(nodes).toEqual(['spark-a=aurora@10.1.230.180', 'spark-b=192.168.200.13,jump=spark-a']);
});

test('Ctrl-C stops the work where it is safe, a second one leaves at once', async () => {
  const waiting = operation('status', async (_input, world) => {
    setTimeout(() => process.emit('SIGINT'), 5);
    await world.clock.wait(5000, world.signal);
    return RUNS;
  });
  const { code, stderr } = await run(['status'], [waiting]);
  expect(code).toBe(2);
  expect(stderr).toContain('Ctrl-C again leaves at once');
  const stubborn = operation('status', async () => {
    process.emit('SIGINT');
    process.emit('SIGINT');
    return RUNS;
  });
  expect((await run(['status'], [stubborn])).left).toEqual([130]);
});

test('completion scripts are made from the program', async () => {
  const bash = await run(['completion', 'bash'], all);
  expect(bash.stdout).toContain('--max-tokens');
  expect(() => execFileSync('bash', ['-n'], { input: bash.stdout })).not.toThrow();
  const answer = execFileSync('bash', [
    '-c',
    `${bash.stdout}\nCOMP_WORDS=(firstlight lo); COMP_CWORD=1; _firstlight; echo "\${COMPREPLY[@]}"`,
  ]);
  expect(answer.toString().trim()).toBe('logs');
  for (const shell of ['zsh', 'fish']) {
    const { code, stdout } = await run(['completion', shell], all);
    expect(code).toBe(0);
    expect(stdout).toContain('logs');
  }
  expect((await run(['completion', 'tcsh'], all)).code).toBe(2);
});

test('a live terminal gets a drawing that is gone at the end, and the end on stdout', async () => {
  const stderr = new Terminal();
  const slow = operation('up', async (_input, world) => {
    const id = world.journal.newRun();
    for (const event of storyEvents) {
      world.journal.append(id, body(event));
      if (event.type === 'rank-stage' && event.percent === 64) await world.clock.wait(150, world.signal);
    }
    return RUNS;
  });
  const { stdout, stderr: drawn } = await run(['up', 'r.yaml'], [slow], {
    stdin: new PassThrough(),
    stderr,
  });
  expect(drawn).toContain('Loading weights');
  expect(drawn.endsWith('\x1b[?25h')).toBe(true);
  expect(stdout).toContain('Serving qwen3.5-122b');
});

test('a value that does not fit is told by its flag, in plain words', async () => {
  const small = await run(['chat', 'hi', '--max-tokens', '0'], [operation('chat', never)]);
  expect(small.code).toBe(2);
  expect(small.stderr).toContain('--max-tokens: it must be at least 1');
  for (const nothing of ['', ' \n']) {
    const empty = await run(['chat', nothing], [operation('chat', never)]);
    expect(empty.code).toBe(2);
    expect(empty.stderr).toContain('prompt: it asks nothing; put the question in quotes');
  }
  const wide = await run(['fit', '--nodes', '1e9'], [operation('fit', never)]);
  expect(wide.code).toBe(2);
  expect(wide.stderr).toContain('--nodes: it must be at most 4096');
  const bare = await run(['memory', '--need', '121.69'], [operation('memory', never)]);
  expect(bare.code).toBe(2);
  expect(bare.stderr).toContain('--need: is less than 1 MiB; write it with its unit, such as 6GiB');
  const strange = await run(['lab', 'dance'], [operation('lab', never)]);
  expect(strange.stderr).toContain('action: it must be one of up, down, story, list');
});

test('an empty FIRSTLIGHT_CLUSTER is none', async () => {
  const ran = await run(['check'], [operation('check', never)], { env: { FIRSTLIGHT_CLUSTER: '' } });
  expect(ran.options?.cluster).toBe('cluster.yaml');
});

test('a result that cannot be written is told, and is no success', async () => {
  const full = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('no space left'), { code: 'ENOSPC' })),
  });
  const ran = await run(
    ['runs'],
    [operation('runs', async () => ({ report: { kind: 'runs', runs: [] }, exit: 0 }))],
    { stdout: full },
  );
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain('no space left: the result could not be written');
});

async function never(): Promise<never> {
  throw new Error('it was run');
}

test('a cluster that does not serve is 1, whatever asked', async () => {
  const failing = operation('chat', async () => {
    throw new UserError('not-serving', 'nothing serves', 'bring a model up');
  });
  expect((await run(['chat', 'hi'], [failing])).code).toBe(1);
  expect((await run(['chat', 'hi', '--json'], [failing])).code).toBe(1);
});
