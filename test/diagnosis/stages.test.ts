import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endLog, newTracker, splitLog, trackLine } from '../../src/diagnosis/stages.ts';
import { STAGES } from '../../src/domain/finding.ts';
import { engines } from '../../src/knowledge/engines/index.ts';

/** All lines of a log that comes in these chunks. */
function linesOf(chunks: readonly (Uint8Array | string)[], stamped = false): readonly string[] {
  let carry = '';
  const lines: string[] = [];
  for (const chunk of chunks) {
    const split = splitLog(carry, chunk, stamped);
    lines.push(...split.lines);
    carry = split.carry;
  }
  return [...lines, ...endLog(carry, stamped)];
}

describe('a log', () => {
  it('is split at newlines, carriage returns and both', () => {
    expect(linesOf(['a\nb\r\nc\rd'])).toEqual(['a', 'b', 'c', 'd']);
  });

  it('keeps empty lines, so that line numbers stay those of the file', () => {
    expect(linesOf(['a\n\nb\n'])).toEqual(['a', '', 'b']);
  });

  it('has no empty line before each bar that begins with a carriage return', () => {
    expect(linesOf(['\r 5% | 1/39\n\r10% | 2/39\n\n'])).toEqual([' 5% | 1/39', '10% | 2/39', '']);
    const stamp = '2026-11-29T15:00:32.123456789Z ';
    expect(linesOf([`${stamp}\r5%\n${stamp}\r10%\n`], true)).toEqual(['5%', '10%']);
  });

  it('takes as long as it is, also where a megabyte has no line end', () => {
    // Looked through from each of its characters it would take hours.
    const long = 'a'.repeat(2 ** 22);
    expect(splitLog('', `b\n${long}`)).toMatchObject({ lines: ['b'] });
  });

  it('gives the same lines however it is cut into chunks', () => {
    const text =
      'ein Größenwert\r\n\u001b[36m(Worker pid=1)\u001b[0m 25%\r50%\r\r\n\n\r75%\n\r\n\r\rlast ✓ line';
    const bytes = Buffer.from(text, 'utf8');
    const whole = linesOf([bytes]);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 8 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
        expect(linesOf(chunks)).toEqual(whole);
      }),
    );
  });

  it('loses colours, cursor movements, window titles and control characters', () => {
    expect(linesOf(['\u001b[1;36mred\u001b[0m \u001b]0;title\u0007x\u001b[2K\u0000\u0008y\tz\n'])).toEqual([
      'red xy\tz',
    ]);
  });

  it('may hold bytes that are no text', () => {
    expect(linesOf([Uint8Array.from([0x61, 0xff, 0xfe, 0x62, 0x0a])])).toEqual(['a\ufffd\ufffdb']);
  });

  it('has lines of 16 KiB at most, and the next line begins whole', () => {
    const lines = linesOf(['x'.repeat(10_000), 'x'.repeat(90_000), 'x'.repeat(10), '\nnext\n']);
    expect(lines.map((line) => line.length)).toEqual([16_384, 4]);
  });

  it("loses docker's time stamps when it has them, and only at the beginning", () => {
    const stamp = '2026-11-29T15:00:32.123456789Z ';
    expect(linesOf([`${stamp}10%\r20%\n${stamp}at ${stamp}\n`], true)).toEqual(['10%', '20%', `at ${stamp}`]);
    expect(linesOf([`${stamp}x\n`])).toEqual([`${stamp}x`]);
  });
});

describe('the stage of a rank', () => {
  const tracker = () => newTracker(engines.sglang, [{ rank: 0 }, { rank: 1 }], 1000);
  const line = (at: number, text: string) => ({ at, text });

  it('starts at start and moves forward only', () => {
    const one = tracker();
    expect(one.of(0)).toEqual({ stage: 'start', percent: undefined, movedAt: 1000 });
    expect(
      trackLine(one, 0, line(2000, '[2026-11-29 10:00:18 TP0] Load weight begin. avail mem=107.40 GB')),
    ).toEqual({
      rank: 0,
      stage: 'weights',
      percent: undefined,
    });
    expect(
      trackLine(one, 0, line(3000, '[2026-11-29 10:00:19 TP0] Init torch distributed begin.')),
    ).toBeUndefined();
    expect(one.of(0).stage).toBe('weights');
    expect(one.of(1).stage).toBe('start');
  });

  it('is told by another rank’s log where Ray brought the line from its node', () => {
    const addressed = [
      { rank: 0, address: '192.168.200.12' },
      { rank: 1, address: '192.168.200.13' },
    ];
    const one = newTracker(engines['vllm-ray'], addressed, 1000);
    const far =
      '(EngineCore pid=9) (RayWorkerProc pid=77, ip=192.168.200.13) INFO 08-17 10:00:00 [default_loader.py:430] Loading weights took 2.51 seconds';
    expect(trackLine(one, 0, line(2000, far))).toEqual({ rank: 1, stage: 'weights', percent: 100 });
    expect(one.of(0)).toEqual({ stage: 'start', percent: undefined, movedAt: 1000 });
    const near = far.replace(', ip=192.168.200.13', '');
    expect(trackLine(one, 0, line(3000, near))).toMatchObject({ rank: 0, stage: 'weights' });
    // Somebody else's address says nothing of ranks that are known.
    expect(trackLine(one, 0, line(3000, far.replace('.13)', '.99)')))).toBeUndefined();
  });

  it('tells a percent that grows, and takes a second bar for a sign of life without going back', () => {
    const one = tracker();
    const bar = (percent: number) =>
      `Capturing batches (bs=8 avail_mem=50.20 GB):  ${percent}%|####| 5/52 [00:03<00:05]`;
    expect(trackLine(one, 0, line(2000, bar(40)))).toEqual({ rank: 0, stage: 'graphs', percent: 40 });
    expect(trackLine(one, 0, line(3000, bar(90)))).toEqual({ rank: 0, stage: 'graphs', percent: 90 });
    expect(trackLine(one, 0, line(4000, bar(10)))).toBeUndefined();
    expect(one.of(0)).toEqual({ stage: 'graphs', percent: 90, movedAt: 4000 });
  });

  it('does not take a repeated line for progress', () => {
    const one = tracker();
    trackLine(one, 0, line(2000, 'Init torch distributed begin.'));
    trackLine(one, 0, line(9000, 'Init torch distributed begin.'));
    expect(one.of(0).movedAt).toBe(2000);
  });

  it('is one of the known stages for any text', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (texts) => {
        const one = tracker();
        for (const text of texts) trackLine(one, 0, line(2000, text));
        expect(STAGES).toContain(one.of(0).stage);
      }),
    );
  });
});
