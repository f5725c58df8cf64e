import { closeSync, mkdirSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type Database from 'libsql';
import { type Event, type EventBody, type EventType, parseEvent, parseEvents } from '../domain/event.ts';
import { UserError } from '../domain/user-error.ts';
import type { Journal, RunSummary } from './journal.ts';
import { appendLines, logPath, readBytes, readLines } from './rank-logs.ts';

const FILE = 'journal.db';
/** Counted up when an older firstlight could no longer read what a newer one writes. */
const VERSION = 1;
/** Marks the file as ours ("flj1"), see PRAGMA application_id. */
const APPLICATION = 0x666c6a31;
const BUSY_MILLISECONDS = 15_000;
/** Events that are read as one text. */
const AT_ONCE = 2000;

/**
 * The journal in that folder, made where it is missing (0700). Several processes may hold it open and append to
 * the same run. Every append is on the disk before it returns: measured at 0.16 ms against 0.02 ms without, which
 * is little for some hundred events a run. Throws a UserError `bad-input` when the folder cannot be written, or
 * holds no journal that this version can read.
 */
export function openJournal(folder: string, now: () => number = Date.now): Journal {
  const path = join(folder, FILE);
  makeFile(folder, path);
  return new SqliteJournal(folder, openDatabase(path), now);
}

class SqliteJournal implements Journal {
  readonly folder: string;
  readonly #database: Database.Database;
  readonly #now: () => number;
  readonly #listeners = new Set<(event: Event) => void>();
  readonly #unpublished: Event[] = [];
  #publishing = false;

  constructor(folder: string, database: Database.Database, now: () => number) {
    this.folder = folder;
    this.#database = database;
    this.#now = now;
  }

  newRun(): string {
    const insert = this.#database.prepare('INSERT INTO runs (started_at) VALUES (?)');
    return String(insert.run(this.#at()).lastInsertRowid);
  }

  append(run: string, body: EventBody): Event {
    const event = inTransaction(this.#database, () => {
      const written: Event = { v: 1, seq: this.lastSeq(run) + 1, run, at: this.#at(), ...body };
      this.#database
        .prepare('INSERT INTO events (run, seq, at, type, json) VALUES (?, ?, ?, ?, ?)')
        .run(run, written.seq, written.at, written.type, JSON.stringify(written));
      return written;
    });
    this.#publish(event);
    return event;
  }

  read(run: string, afterSeq = 0, limit = Number.POSITIVE_INFINITY): readonly Event[] {
    // One text for many: to hand each row over by itself takes longer than to read it.
    const select = this.#database.prepare(
      `SELECT '[' || coalesce(group_concat(json, ','), '') || ']' AS json
       FROM (SELECT json FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?)`,
    );
    const found: Event[] = [];
    for (;;) {
      const most = Math.min(AT_ONCE, limit - found.length);
      const events = parseEvents(text(select.get(run, found.at(-1)?.seq ?? afterSeq, most), 'json'));
      // SQLite joins them in order but does not promise to; when it has to, that takes it twice as long as all the rest.
      found.push(...events.toSorted((a, b) => a.seq - b.seq));
      if (events.length < AT_ONCE || found.length === limit) return found;
    }
  }

  lastSeq(run: string): number {
    const select = this.#database.prepare('SELECT coalesce(max(seq), 0) AS seq FROM events WHERE run = ?');
    return number(select.get(run), 'seq');
  }

  latest(): string | undefined {
    const newest = number(this.#database.prepare('SELECT max(number) AS number FROM runs').get(), 'number');
    return newest === 0 ? undefined : String(newest);
  }

  runs(): readonly RunSummary[] {
    const select = this.#database.prepare(
      `SELECT number, started_at, (SELECT count(*) FROM events WHERE run = CAST(number AS TEXT)) AS events
       FROM runs ORDER BY number`,
    );
    return select.all().map((row) => ({
      run: String(number(row, 'number')),
      number: number(row, 'number'),
      startedAt: text(row, 'started_at'),
      events: number(row, 'events'),
    }));
  }

  newest<Type extends EventType>(type: Type, most: number): readonly Extract<Event, { type: Type }>[] {
    const select = this.#database.prepare('SELECT json FROM events WHERE type = ? ORDER BY at DESC LIMIT ?');
    const isOne = (event: Event): event is Extract<Event, { type: Type }> => event.type === type;
    return select
      .all(type, most)
      .map((row) => parseEvent(text(row, 'json')))
      .filter(isOne);
  }

  subscribe(listener: (event: Event) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  logFile(run: string, attempt: number, rank: number): string {
    return logPath(this.folder, run, attempt, rank);
  }

  appendLog(run: string, attempt: number, rank: number, lines: Parameters<typeof appendLines>[1]): void {
    appendLines(this.logFile(run, attempt, rank), lines);
  }

  readLog(run: string, attempt: number, rank: number): ReturnType<typeof readLines> {
    return readLines(this.logFile(run, attempt, rank));
  }

  readLogBytes(run: string, attempt: number, rank: number, fromByte: number, mostBytes: number): Buffer {
    return readBytes(this.logFile(run, attempt, rank), fromByte, mostBytes);
  }

  close(): void {
    this.#database.close();
  }

  #at(): string {
    return new Date(this.#now()).toISOString();
  }

  #publish(event: Event): void {
    this.#unpublished.push(event);
    // A listener may append; its event must reach all listeners after this one.
    if (this.#publishing) return;
    this.#publishing = true;
    try {
      for (let next = this.#unpublished.shift(); next !== undefined; next = this.#unpublished.shift()) {
        for (const listener of [...this.#listeners]) listener(next);
      }
    } finally {
      this.#publishing = false;
    }
  }
}

/** Read in with the first journal: what it takes to load would slow every command that writes none. */
function sqlite(): typeof Database {
  return createRequire(import.meta.url)('libsql');
}

function openDatabase(path: string): Database.Database {
  try {
    const Libsql = sqlite();
    const database = new Libsql(path, { timeout: BUSY_MILLISECONDS });
    switchToWal(database);
    database.exec('PRAGMA synchronous = FULL');
    inTransaction(database, () => prepareTables(database, path));
    return database;
  } catch (error) {
    // A file of another kind, or one that cannot be written: SQLite tells by its code.
    if (error instanceof UserError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT') throw foreign(path, 'is not a journal', error);
    const said = error instanceof Error ? error.message : String(error);
    throw new UserError('bad-input', `the journal ${path} cannot be opened: ${said}`, ELSEWHERE, error);
  }
}

/** SQLite does not wait for its busy timeout when another process switches the same new file at the same moment. */
function switchToWal(database: Database.Database): void {
  for (let tries = 1; ; tries++) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (tries === 100 || !isBusy(error)) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');
}

function prepareTables(database: Database.Database, path: string): void {
  const application = number(database.prepare('PRAGMA application_id').get(), 'application_id');
  const version = number(database.prepare('PRAGMA user_version').get(), 'user_version');
  const tables = number(database.prepare('SELECT count(*) AS n FROM sqlite_master').get(), 'n');
  if (application !== APPLICATION) {
    if (tables > 0) throw foreign(path, 'is the database of another program');
    database.exec(TABLES);
    database.exec(INDEX);
    return;
  }
  if (version > VERSION)
    throw new UserError(
      'bad-input',
      `the journal ${path} was written by a newer firstlight (format ${version}, this one reads ${VERSION})`,
      `Use the newer firstlight. ${ELSEWHERE}`,
    );
  // A journal of an earlier version has none yet.
  database.exec(INDEX);
}

const INDEX = 'CREATE INDEX IF NOT EXISTS events_by_type ON events (type, at)';
const TABLES = `
  CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, started_at TEXT NOT NULL);
  CREATE TABLE events (
    run TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, type TEXT NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, seq)
  ) WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};
`;

const ELSEWHERE = 'Set FIRSTLIGHT_HOME to a folder on a local disk that you may write.';

function makeFile(folder: string, path: string): void {
  try {
    makeFolder(folder);
    // Made here so that it is private from its first moment; SQLite's side files take its mode.
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    // No right to write, a read-only or full disk, a file where the folder should be.
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new UserError(
      'bad-input',
      `the journal folder ${folder} cannot be written (${code})`,
      ELSEWHERE,
      error,
    );
  }
}

/** Not node's own `recursive`, which never returns where the system says ENOENT for ever, as below /proc. */
function makeFolder(folder: string, retry = true): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // It exists, or its parent does not.
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || !retry || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder));
    makeFolder(folder, false);
  }
}

function foreign(path: string, what: string, cause?: unknown): UserError {
  return new UserError('bad-input', `${path} ${what}`, `Move it away. ${ELSEWHERE}`, cause);
}

function inTransaction<T>(database: Database.Database, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // Whatever it was, nothing of it may stay; it goes on to the caller.
    if (database.inTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function text(row: unknown, column: string): string {
  return String(cell(row, column));
}

function number(row: unknown, column: string): number {
  return Number(cell(row, column));
}

function cell(row: unknown, column: string): unknown {
  if (typeof row !== 'object' || row === null || !Object.hasOwn(row, column))
    throw new Error(`the journal has no column ${column}`);
  return Reflect.get(row, column);
}
