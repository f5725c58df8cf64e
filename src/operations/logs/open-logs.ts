import { type FileLines, fileLines } from '../../diagnosis/file-lines.ts';
import type { HandedLog } from '../../diagnosis/offline.ts';
import type { LogLine } from '../../domain/evidence.ts';
import { UserError } from '../../domain/user-error.ts';
import { readLogFile } from '../../files/log-file.ts';
import { readLog } from '../../remote/log-file.ts';
import type { World } from '../world.ts';
import type { LogSource } from './log-sources.ts';

/** A log as it is read. */
export type OpenLog = {
  readonly source: LogSource;
  readonly file: FileLines;
  readonly lines: LogLine[];
  /** Our clock, ms, when the file last changed. */
  changedAt: number;
  /** Bytes that were there already when it was opened. */
  old: number;
  bytes: number;
};

export function openLog(source: LogSource, now: number): OpenLog {
  return { source, file: fileLines(), lines: [], changedAt: now, old: 0, bytes: 0 };
}

/** The log as a diagnosis takes it. */
export function handedLog({ source, lines, changedAt }: OpenLog): HandedLog {
  return { name: source.name, rank: source.rank, lines, changedAt };
}

/**
 * Reads one log to its end, or with `follow` on until the signal is aborted; `fresh` gets the lines as they come. Throws
 * a UserError where it cannot be read.
 */
export async function readOpenLog(
  world: World,
  log: OpenLog,
  options: {
    readonly follow: boolean;
    readonly signal: AbortSignal;
    readonly fresh: (lines: readonly LogLine[]) => void;
  },
): Promise<void> {
  const { follow, signal, fresh } = options;
  const { node, path, text } = log.source;
  const reading = {
    follow,
    signal,
    opened: ({ silentSeconds, bytes }: { readonly silentSeconds: number; readonly bytes: number }) => {
      // Whoever follows waits for what comes: silence before that is not held against it.
      if (!follow) log.changedAt = world.clock.now() - silentSeconds * 1000;
      log.old = bytes;
    },
    bytes: (chunk: Uint8Array) => {
      log.bytes += chunk.length;
      if (log.bytes > log.old) log.changedAt = world.clock.now();
      fresh(log.file.take(chunk, log.changedAt));
    },
  };
  if (node === undefined) return readLogFile(path, reading);
  for (;;) {
    const read = await readLog(world.hosts.of(node), path, { ...reading, fromByte: log.bytes });
    if (read.kind === 'read') return;
    if (read.kind === 'unreadable')
      throw new UserError(
        'bad-input',
        `${text} cannot be read: ${read.why}`,
        `see what is there: ssh ${node} ls -l ${path}`,
      );
    if (!follow) throw new UserError('bad-input', read.failure.sentence, read.failure.remedy);
    await world.clock.wait(1000, signal);
  }
}
