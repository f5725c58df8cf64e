import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import Database from 'libsql';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Event, EventBody } from '../../src/domain/event.ts';
import { UserError } from '../../src/domain/user-error.ts';
import { follow } from '../../src/journal/follow.ts';
import { journalFolder } from '../../src/journal/journal-folder.ts';
import { openJournal } from '../../src/journal/sqlite-journal.ts';

/** Compiled where node finds this project's packages. */
const compiled = resolve('node_modules/.cache/firstlight-journal-test');
/** A process of its own: FOLDER RUN COUNT NAME; with COUNT 0 it appends until it is ended. */
const CHILD = `
import { openJournal } from './journal/sqlite-journal.js';
const [folder, run, count, name] = process.argv.slice(2);
const journal = openJournal(folder);
const id = run === 'new' ? journal.newRun() : run;
for (let at = 1; count === '0' || at <= Number(count); at++) {
  const { seq } = journal.append(id, { type: 'note', level: 'info', node: name, text: String(at) });
  if (count === '0' && seq % 5 === 0) process.stdout.write(at + '\\n');
}
process.stdout.write('run ' + id + '\\n');
journal.close();
`;
let folder = '';

beforeAll(() => {
  mkdirSync(compiled, { recursive: true });
  const config = join(compiled, 'tsconfig.json');
  const options = { rootDir: resolve('src'), outDir: compiled };
  writeFileSync(
    config,
    JSON.stringify({
      extends: resolve('tsconfig.json'),
      compilerOptions: options,
      files: [resolve('src/journal/sqlite-journal.ts')],
      include: [],
    }),
  );
  writeFileSync(join(compiled, 'child.js'), CHILD);
  writeFileSync(join(compiled, 'package.json'), '{"type": "module"}');
  spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', config]);
});
afterAll(() => rmSync(compiled, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'firstlight-journal-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function child(...args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(compiled, 'child.js'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function ended(process: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = '';
  process.stdout?.on('data', (chunk) => {
    output += String(chunk);
  });
  return new Promise((resolve) => process.on('close', (code) => resolve({ code, output })));
}

function note(text: string): EventBody {
  return { type: 'note', level: 'info', node: undefined, text };
}

function refused(action: () => unknown): UserError {
  try {
    action();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

test('what was appended is read back in order, by this process and the next', () => {
  const journal = openJournal(join(folder, 'home'), () => 1_800_000_000_000);
  expect(journal.newRun()).toBe('1');
  expect(journal.newRun()).toBe('2');
  const first = journal.append('1', note('a'));
  expect(first).toMatchObject({
    v: 1,
    seq: 1,
    run: '1',
    at: '2027-01-15T08:00:00.000Z',
    type: 'note',
    text: 'a',
  });
  expect(journal.append('1', note('b')).seq).toBe(2);
  expect(journal.append('2', note('c')).seq).toBe(1);
  journal.close();

  const again = openJournal(join(folder, 'home'));
  expect(again.read('1').map((event) => event.seq)).toEqual([1, 2]);
  expect(again.read('1', 1)).toHaveLength(1);
  expect(again.read('1')[0]).toEqual(JSON.parse(JSON.stringify(first)));
  expect(again.read('none')).toEqual([]);
  expect(again.runs().map(({ run, number, events }) => ({ run, number, events }))).toEqual([
    { run: '1', number: 1, events: 2 },
    { run: '2', number: 2, events: 1 },
  ]);
  expect(again.newRun()).toBe('3');
  again.close();
});

test('the folder and the files are private', () => {
  const home = join(folder, 'deep', 'home');
  const journal = openJournal(home);
  journal.append(journal.newRun(), note('a'));
  journal.appendLog('1', 1, 0, [{ at: 1, text: 'x' }]);
  expect(statSync(home).mode & 0o777).toBe(0o700);
  for (const name of ['journal.db', 'journal.db-wal', 'logs/1/a1-r0.log'])
    expect(statSync(join(home, name)).mode & 0o777).toBe(0o600);
  journal.close();
});

test('listeners get each event after it was written, in order, even if one of them appends', () => {
  const journal = openJournal(folder);
  const run = journal.newRun();
  const seen: string[] = [];
  journal.subscribe((event) => {
    expect(journal.read(run).some(({ seq }) => seq === event.seq)).toBe(true);
    seen.push(`a${event.seq}`);
    if (event.seq === 1) journal.append(run, note('from a listener'));
  });
  const stop = journal.subscribe((event) => seen.push(`b${event.seq}`));
  journal.append(run, note('x'));
  stop();
  journal.append(run, note('y'));
  expect(seen).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  journal.close();
});

test('processes that append to one run never share a number and never lose an event', async () => {
  const results = await Promise.all(['a', 'b', 'c'].map((name) => ended(child(folder, '1', '150', name))));
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
  const journal = openJournal(folder);
  const events = journal.read('1');
  expect(events.map((event) => event.seq)).toEqual(Array.from({ length: 450 }, (_, at) => at + 1));
  for (const name of ['a', 'b', 'c']) {
    const own = events.flatMap((event) => (event.type === 'note' && event.node === name ? [event.text] : []));
    expect(own).toEqual(Array.from({ length: 150 }, (_, at) => `${at + 1}`));
  }
  journal.close();
});

test('processes that begin runs at once get runs of their own', async () => {
  const results = await Promise.all(
    ['a', 'b', 'c', 'd'].map((name) => ended(child(folder, 'new', '1', name))),
  );
  expect(results.map(({ output }) => output.trim()).sort()).toEqual(['run 1', 'run 2', 'run 3', 'run 4']);
});

test('kill -9 in the middle of appending leaves a readable journal with all that was promised', async () => {
  let promised = 0;
  for (let round = 0; round < 3; round++) {
    const writer = child(folder, '1', '0', `round-${round}`);
    const over = ended(writer);
    const before = promised;
    await new Promise<void>((resolve) => {
      let output = '';
      writer.stdout?.on('data', (chunk) => {
        output += String(chunk);
        promised = before + Number(output.trim().split('\n').at(-1));
        if (promised > before + 50) resolve();
      });
    });
    writer.kill('SIGKILL');
    await over;
    const journal = openJournal(folder);
    const events = journal.read('1');
    expect(events.length).toBeGreaterThanOrEqual(promised);
    expect(events.map((event) => event.seq)).toEqual(events.map((_, at) => at + 1));
    promised = journal.append('1', note('afterwards')).seq;
    journal.close();
  }
  const database = new Database(join(folder, 'journal.db'));
  expect(database.prepare('PRAGMA integrity_check').all()).toMatchObject([{ integrity_check: 'ok' }]);
  database.close();
});

test('a run of another process is followed to its end', async () => {
  const journal = openJournal(folder);
  const run = journal.newRun();
  const over = ended(child(folder, run, '40', 'other'));
  const end = over.then(() =>
    journal.append(run, { type: 'run-ended', outcome: 'serving', why: 'x', exit: 0, owed: [] }),
  );
  const seen: Event[] = [];
  const signal = new AbortController().signal;
  for await (const event of follow(journal, run, { afterSeq: 2, signal, everyMilliseconds: 5 }))
    seen.push(event);
  expect(seen.map((event) => event.seq)).toEqual(Array.from({ length: 39 }, (_, at) => at + 3));
  await end;
  journal.close();
});

test('following ends quietly when it is no longer wanted', async () => {
  const journal = openJournal(folder);
  const run = journal.newRun();
  journal.append(run, note('a'));
  const control = new AbortController();
  const seen: Event[] = [];
  for await (const event of follow(journal, run, { signal: control.signal, everyMilliseconds: 60_000 })) {
    seen.push(event);
    queueMicrotask(() => control.abort());
  }
  expect(seen).toHaveLength(1);
  journal.close();
});

test('a rank log keeps lines with their times, without what moves a terminal', () => {
  const journal = openJournal(folder);
  journal.appendLog('7', 2, 1, [
    { at: 1000, text: 'Loading\tsafetensors' },
    { at: 1001.6, text: '\x1b[32mINFO\x1b[0m \x1b]0;title\x07done\r\x00' },
  ]);
  journal.appendLog('7', 2, 1, []);
  journal.appendLog('7', 2, 1, [{ at: 1002, text: 'two\nlines, 世界 ✓' }]);
  expect(journal.logFile('7', 2, 1)).toBe(join(folder, 'logs/7/a2-r1.log'));
  expect(journal.readLog('7', 2, 1)).toEqual([
    { line: 1, at: 1000, text: 'Loading\tsafetensors' },
    { line: 2, at: 1002, text: 'INFO done' },
    { line: 3, at: 1002, text: 'twolines, 世界 ✓' },
  ]);
  expect(journal.readLog('7', 3, 0)).toEqual([]);
  expect(() => journal.logFile('../x', 1, 0)).toThrow('is no run');
  journal.close();
});

test('a log line that a killed process left unfinished does not swallow the next', () => {
  const journal = openJournal(folder);
  journal.appendLog('1', 1, 0, [{ at: 5, text: 'whole' }]);
  writeFileSync(journal.logFile('1', 1, 0), '6\tcut of', { flag: 'a' });
  journal.appendLog('1', 1, 0, [{ at: 7, text: 'next' }]);
  expect(journal.readLog('1', 1, 0).map(({ text }) => text)).toEqual(['whole', 'cut of', 'next']);
  journal.close();
});

const wrong: readonly (readonly [string, (home: string) => string, string])[] = [
  [
    'a folder below a file',
    (home) => {
      writeFileSync(join(home, 'file'), 'x');
      return join(home, 'file', 'home');
    },
    'cannot be written (ENOTDIR)',
  ],
  ['a folder where none can be made', () => '/proc/firstlight', 'cannot be written'],
  [
    'a file that is no database',
    (home) => {
      writeFileSync(join(home, 'journal.db'), 'these are not the bytes of a database\n'.repeat(100));
      return home;
    },
    'is not a journal',
  ],
  [
    'the database of another program',
    (home) => {
      const database = new Database(join(home, 'journal.db'));
      database.exec('CREATE TABLE songs (title TEXT)');
      database.close();
      return home;
    },
    'is the database of another program',
  ],
  [
    'the journal of a newer version',
    (home) => {
      openJournal(home).close();
      const database = new Database(join(home, 'journal.db'));
      database.exec('PRAGMA user_version = 2');
      database.close();
      return home;
    },
    'was written by a newer firstlight (format 2, this one reads 1)',
  ],
];

test.each(wrong)('%s is refused with a way out', (_, make, words) => {
  const error = refused(() => openJournal(make(folder)));
  expect(error.message).toContain(words);
  expect(error.hint).toContain('FIRSTLIGHT_HOME');
});

test.skipIf(process.getuid?.() === 0)('a folder that may not be written is refused', () => {
  chmodSync(folder, 0o500);
  expect(refused(() => openJournal(join(folder, 'home'))).message).toContain('EACCES');
  chmodSync(folder, 0o700);
});

test('the journal lies in FIRSTLIGHT_HOME, else below XDG_STATE_HOME, else below the home', () => {
  const HOME = '/home/me';
  expect(journalFolder({ HOME, FIRSTLIGHT_HOME: '/a', XDG_STATE_HOME: '/b' })).toBe('/a');
  expect(journalFolder({ HOME, FIRSTLIGHT_HOME: '', XDG_STATE_HOME: '/b' })).toBe('/b/firstlight');
  expect(journalFolder({ HOME, XDG_STATE_HOME: 'b' })).toBe('/home/me/.local/state/firstlight');
  expect(journalFolder({ HOME })).toBe('/home/me/.local/state/firstlight');
});
