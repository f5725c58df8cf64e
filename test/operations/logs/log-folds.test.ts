import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { splitLog } from '../../../src/diagnosis/stages.ts';
import { LogFolds } from '../../../src/operations/logs/log-folds.ts';
import { levelOf } from '../../../src/operations/logs/log-level.ts';
import { shapeOf } from '../../../src/operations/logs/log-shape.ts';

/** Lines of one log as their folds: each fold as its kind and its lines' numbers, lines in none as their number. */
function folded(lines: readonly string[], folds = new LogFolds(), source = 0): readonly string[] {
  const rows = new Map<string, number[]>();
  for (const [id, text] of lines.entries()) {
    const { fold } = folds.take(source, id, text, levelOf(text));
    const key = fold === 0 ? `${id}` : `${folds.kindOf(fold)} ${fold}`;
    rows.set(key, [...(rows.get(key) ?? []), id]);
  }
  return [...rows].map(([key, ids]) =>
    ids.length === 1 ? `${ids[0]}` : `${key.split(' ')[0]} ${ids.join(' ')}`,
  );
}

const bar = (percent: number, label = 'Loading safetensors checkpoint shards'): string =>
  `${label}: ${String(percent).padStart(3)}% Completed | ${percent / 4}/25 [00:13<00:11,  2.87s/it]`;

describe('the level of a line', () => {
  it.each([
    ['ERROR 11-29 10:00:01 [core.py:700] EngineCore failed', 'error'],
    ['torch.OutOfMemoryError: CUDA out of memory', 'error'],
    ['Traceback (most recent call last):', 'error'],
    ['[E1129 13:51:37.973825988 ProcessGroupGloo.cpp:67] Gloo connectFullMesh failed', 'error'],
    ['[rank0]:[W1129 10:00:09.741216498 socket.cpp:207] [c10d] no name', 'warning'],
    ['[2026-11-29 10:00:03] WARNING: error reading optional file', 'warning'],
    ['cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated', 'warning'],
    ['INFO 11-29 10:00:01 [serve.py:216] 0 errors, error_limit=3', ''],
    ['[WINDOW 3] opened', ''],
  ])('%s', (text, level) => {
    expect(levelOf(text)).toBe(level);
  });
});

describe('the shape of a line', () => {
  it.each([
    ['Decode batch, #running-req: 1, #token: 812', '[TP0] Decode batch, #running-req: 12, #token: 90'],
    [
      'INFO: 127.0.0.1:41220 - "GET /health HTTP/1.1" 503',
      'INFO: 10.0.0.7:9 - "GET /v1/models HTTP/1.1" 200',
    ],
    ['mapped 0xdeadbeef for deadbeefcafe', 'mapped 0x12 for 0123456789ab'],
    ['reading /models/a/one.safetensors', 'reading /models/b/two-2.safetensors'],
    [bar(0).replace('2.87s/it', '?it/s'), bar(96)],
    [
      'Capturing batches (bs=4 avail_mem=20.0 GB):   0%|          | 0/3 [00:00<?, ?it/s]',
      'Capturing batches (bs=1 avail_mem=19.2 GB): 100%|##########| 3/3 [00:04<00:00]',
    ],
  ])('is one where only numbers, hex words, paths and the bar differ: %s', (one, other) => {
    expect(shapeOf(one).hash).toBe(shapeOf(other).hash);
  });

  it.each([
    ['Load weight begin. avail mem=107.40 GB', 'Load weight end. avail mem=49.10 GB'],
    [bar(12), bar(12, 'Loading pt checkpoint shards')],
    [bar(12), 'Loading safetensors checkpoint shards'],
    ['added a face', 'added a beef'],
  ])('is another where a word differs: %s', (one, other) => {
    expect(shapeOf(one).hash).not.toBe(shapeOf(other).hash);
  });
});

describe('the folds of a log', () => {
  it('a bar is one fold among other lines, and a bar that begins anew another', () => {
    expect(
      folded([bar(0), 'one thing', bar(36), 'WARNING: another', 'and more', bar(100), bar(0), bar(44)]),
    ).toEqual(['bar 0 2 5', '1', '3', '4', 'bar 6 7']);
  });

  it('a shape repeats while it comes again soon, and two that take turns are two folds', () => {
    const others = Array.from({ length: 9 }, (_, at) => `${'abcdefghi'.slice(at)} said`);
    expect(folded(['retry 1', 'port 2 is shut', 'retry 2', 'port 2 is shut', ...others, 'retry 9'])).toEqual([
      'line 0 2',
      'line 1 3',
      ...others.map((_, at) => String(at + 4)),
      '13',
    ]);
  });

  it('errors are in none, a warning is from its second time on, in whatever log the first was', () => {
    const folds = new LogFolds();
    const warned = 'WARNING: swap is full, 3 GiB';
    expect(folded(['ERROR: 1', 'ERROR: 2', warned, warned, warned, warned], folds)).toEqual([
      '0',
      '1',
      '2',
      'line 3 4 5',
    ]);
    expect(folded([warned, warned], folds, 1)).toEqual(['line 0 1']);
  });

  it('lines with no word, and lines of two logs, are in none', () => {
    expect(folded(['', '', '----', '----', '1 2', '3 4'])).toEqual(['0', '1', '2', '3', '4', '5']);
    const folds = new LogFolds();
    const one = folds.take(0, 0, 'Load weight begin', '');
    const other = folds.take(1, 1, 'Load weight begin', '');
    expect(one.fold).not.toBe(other.fold);
  });

  it('a traceback is its first line, its frames and its last line, behind whatever prefix, by whoever wrote it', () => {
    const text = readFileSync('test/samples/logs/gloo-hostname-resolves-to-loopback/head.log', 'utf8');
    const { lines } = splitLog('', text);
    const first = lines.indexOf('Traceback (most recent call last):');
    const last = lines.findIndex((line) => line.startsWith('RuntimeError'));
    const folds = new LogFolds();
    const rows = folded(lines, folds);
    const frames = Array.from({ length: last - first - 1 }, (_, at) => first + 1 + at);
    expect(rows).toContain(`frames ${frames.join(' ')}`);
    expect(rows).toContain(String(first));
    expect(rows).toContain(String(last));
    const { fold } = folds.take(0, 99, lines[first] ?? '', 'error');
    expect(fold).toBe(0);

    const at = (who: string, said: string): string =>
      `(${who} pid=7) ERROR 11-29 10:00:09 [core.py:700] ${said}`;
    const two = ['Worker_TP0', 'Worker_TP1'].map((who) => [
      at(who, 'Traceback (most recent call last):'),
      at(who, '  File "/opt/a.py", line 6, in <module>'),
      at(who, '    run()'),
      at(who, '  File "/opt/b.py", line 9, in run'),
      at(who, 'Stopped: for good'),
    ]);
    const mixed = (two[0] ?? []).flatMap((line, index) => [line, two[1]?.[index] ?? '']);
    const both = new LogFolds();
    expect(folded(mixed, both)).toEqual(['0', '1', 'frames 2 4 6', 'frames 3 5 7', '8', '9']);
    expect(both.framesOf(1)).toBe(2);
  });

  it('a frame is no error, whatever its prefix says, and the last line of a traceback is one, whatever it is called', () => {
    const folds = new LogFolds();
    const levels = ['Traceback (most recent call last):', '  File "/a.py", line 1', 'Stopped'].map(
      (line, id) => folds.take(0, id, line, levelOf(line)).level,
    );
    expect(levels).toEqual(['error', '', 'error']);
  });
});
