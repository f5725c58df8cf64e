import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { alive, compileProgram, hasPty, Pty } from './pty.ts';

const SHOW_CURSOR = '\x1b[?25h';
const folder = mkdtempSync(join(tmpdir(), 'firstlight-pty-program-'));
let up = '';
let pty: Pty | undefined;

beforeAll(async () => {
  up = `"${process.execPath}" "${await compileProgram(folder)}" up r.yaml`;
});
afterEach(() => {
  pty?.close();
  pty = undefined;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The terminal's modes are put down before and after the command, and its exit code. */
function open(command: string, env: Readonly<Record<string, string>> = {}): Pty {
  pty = new Pty(
    `cd "$PTY_FOLDER"; stty -g > before; ${command}; echo "exit was $?"; stty -g > after; echo "all done"`,
    env,
  );
  return pty;
}

/** The modes are as they were found, and the cursor shows. */
function leftClean(terminal: Pty): void {
  expect(terminal.read('after')).toBe(terminal.read('before'));
  expect(terminal.text.lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(terminal.text.lastIndexOf('\x1b[?25l'));
}

test.skipIf(!hasPty)(
  'each key opens its part and closes it, and the end leaves the terminal as it was',
  async () => {
    const terminal = open(up);
    await terminal.shows(/l log +m memory +p plan +\? keys +Ctrl-C detaches, the ranks run on/);
    expect(terminal.text).not.toContain('\x1b[31mred');
    terminal.type('l');
    await terminal.shows(/line 18 模型加载中 red.*l back/s);
    terminal.type('m');
    await terminal.shows(/spark-b +119\.7 GiB.*m back/s);
    terminal.type('p');
    await terminal.shows(/plan 92cd for qwen3\.5-122b.*p back/s);
    terminal.type('?');
    await terminal.shows(/none changes anything on a host.*\? back/s);
    terminal.type('\x1b');
    await terminal.shows(/attempt 2 +sglang.*l log +m memory/s);
    terminal.put('end');
    await terminal.shows(/Serving qwen3\.5-122b.*exit was 0.*all done/s);
    leftClean(terminal);
  },
);

test.skipIf(!hasPty)('Ctrl-C detaches, and leaves the terminal as it was', async () => {
  const terminal = open(up);
  await terminal.shows(/Ctrl-C detaches/);
  terminal.type('\x03');
  await terminal.shows(/exit was 0.*all done/s);
  leftClean(terminal);
});

test.skipIf(!hasPty)('a crash leaves the terminal as it was', async () => {
  const terminal = open(up, { PTY_BREAKS: '1' });
  await terminal.shows(/a mistake of ours.*all done/s);
  leftClean(terminal);
});

test.skipIf(!hasPty)('SIGTERM and SIGQUIT leave the terminal as it was', async () => {
  for (const signal of ['SIGTERM', 'SIGQUIT'] as const) {
    const terminal = open(`ulimit -c 0; ${up}`);
    await terminal.shows(/Ctrl-C detaches/);
    process.kill(Number(terminal.read('pid')), signal);
    await terminal.shows(/exit was.*all done/s);
    leftClean(terminal);
    terminal.close();
  }
});

test.skipIf(!hasPty)(
  'a question is answered by a line that shows, and what was typed before is no answer',
  async () => {
    const terminal = open(up, { PTY_ASKS: '1' });
    await terminal.shows(/nothing is chosen for you >/);
    await new Promise((done) => setTimeout(done, 200));
    terminal.type('1,3\n');
    await terminal.shows(/1,3\r\n.*l log +m memory/s);
    expect(JSON.parse(terminal.read('answer'))).toMatchObject({ steps: ['7f3a', '90b4'], refused: ['c21e'] });
    terminal.type('m');
    await terminal.shows(/m back/);
    terminal.put('end');
    await terminal.shows(/all done/);
    leftClean(terminal);
  },
);

test.skipIf(!hasPty)(
  'Ctrl-Z gives the terminal to the shell, fg brings the drawing and the keys back',
  async () => {
    pty = new Pty('exec bash --norc --noprofile -i');
    const terminal = pty;
    await terminal.shows(/\$ /);
    terminal.type('cd "$PTY_FOLDER"; stty -g > before\n');
    await terminal.waits(() => terminal.has('before'), 'before');
    terminal.type(`${up}\n`);
    await terminal.shows(/l log +m memory/);
    terminal.type('\x1a');
    await terminal.shows(/Stopped/);
    terminal.type('stty -g > stopped; echo "in the shell"\n');
    await terminal.shows(/in the shell\r\n/);
    expect(terminal.read('stopped')).toBe(terminal.read('before'));
    terminal.type('bg; sleep 1.5; echo "beside it"\n');
    await terminal.shows(/beside it\r\n.*\$ /s);
    expect(alive(Number(terminal.read('pid')))).toBe(true);
    terminal.type('fg\n');
    await terminal.shows(/l log +m memory/);
    terminal.type('m');
    await terminal.shows(/m back/);
    terminal.put('end');
    await terminal.shows(/Serving qwen3\.5-122b since/);
    await terminal.waits(() => terminal.has('ended') && !alive(Number(terminal.read('pid'))), 'its end');
    terminal.type('stty -g > after; echo "at the end"\n');
    await terminal.shows(/at the end\r\n/);
    leftClean(terminal);
  },
);

test.skipIf(!hasPty)('a question that was left with Ctrl-Z still stands after fg', async () => {
  pty = new Pty('exec bash --norc --noprofile -i');
  const terminal = pty;
  await terminal.shows(/\$ /);
  terminal.type(`cd "$PTY_FOLDER"; stty -g > before; PTY_ASKS=1 ${up}\n`);
  await terminal.shows(/nothing is chosen for you >/);
  await new Promise((done) => setTimeout(done, 200));
  terminal.type('\x1a');
  await terminal.shows(/Stopped/);
  terminal.type('fg\n');
  await terminal.shows(/up r\.yaml\r\n/);
  await new Promise((done) => setTimeout(done, 200));
  terminal.type('2\n');
  await terminal.shows(/l log +m memory/);
  expect(JSON.parse(terminal.read('answer'))).toMatchObject({ steps: ['c21e'], refused: ['7f3a', '90b4'] });
  terminal.put('end');
  await terminal.shows(/Serving qwen3\.5-122b since/);
  await terminal.waits(() => !alive(Number(terminal.read('pid'))), 'its end');
  terminal.type('stty -g > after; echo "at the end"\n');
  await terminal.shows(/at the end\r\n/);
  leftClean(terminal);
});

test.skipIf(!hasPty)('where no shell could continue it Ctrl-Z stops nothing', async () => {
  const terminal = open(up);
  await terminal.shows(/l log +m memory/);
  terminal.type('\x1a');
  await terminal.shows(/l log +m memory/);
  terminal.type('m');
  await terminal.shows(/m back/);
  terminal.put('end');
  await terminal.shows(/all done/);
  leftClean(terminal);
});

test.skipIf(!hasPty)(
  'a closed terminal ends it at once, and with nohup the run goes on to its end',
  async () => {
    const terminal = open(up);
    await terminal.shows(/l log +m memory/);
    const pid = Number(terminal.read('pid'));
    terminal.closeTerminal();
    await terminal.waits(() => !alive(pid), 'its end');
    expect(terminal.has('ended')).toBe(false);
    terminal.close();
    const kept = open(`trap '' HUP; ${up}`);
    await kept.shows(/l log +m memory/);
    const other = Number(kept.read('pid'));
    kept.closeTerminal();
    await new Promise((done) => setTimeout(done, 500));
    expect(alive(other)).toBe(true);
    kept.put('end');
    await kept.waits(() => kept.has('ended') && !alive(other), 'its end');
  },
);

test.skipIf(!hasPty)('input that is no terminal is left alone, and the drawing names no keys', async () => {
  const terminal = open(`echo m | ${up}`);
  await terminal.shows(/Ctrl-C detaches/);
  expect(terminal.text).not.toMatch(/m memory|m back/);
  terminal.put('end');
  await terminal.shows(/all done/);
  leftClean(terminal);
});
