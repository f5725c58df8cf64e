import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { DiagnoseReport } from '../../src/domain/report.ts';
import { paint } from '../../src/faces/cli/color.ts';
import { glyphs } from '../../src/faces/cli/glyphs.ts';
import { renderReport } from '../../src/faces/cli/render.ts';
import { answerOfRun } from '../../src/operations/answer-of-run.ts';
import { diagnoseRun } from '../../src/operations/diagnose.ts';
import { failedEvents, storyEvents, storyTime } from '../pretend/story-events.ts';
import { run } from './run-cli.ts';

const style = {
  columns: 80,
  paint: paint(false),
  glyphs: glyphs(false),
  now: storyTime(4000),
  verbose: false,
};

function reportOf(events: typeof storyEvents): DiagnoseReport {
  return {
    kind: 'diagnose',
    run: '14',
    answer: answerOfRun(events),
    findings: events.flatMap((event) => (event.type === 'finding' && event.final ? [event] : [])),
  };
}
const textOf = (report: DiagnoseReport): string =>
  renderReport(report, style, { why: false, streamed: false });

it('a run that was cured is told alike by text and JSON: it serves, what stopped it, what cured it', () => {
  const report = reportOf(storyEvents);
  const [finding] = report.findings;
  expect(report.answer).toMatchObject({
    cause: 'no-fault',
    atFault: 'none',
    earlier: [
      {
        attempt: finding?.attempt,
        cause: 'loopback-address-advertised',
        atFault: 'spark-b',
        evidence: finding?.quotes.map(({ line, text }) => ({ line, text })),
        remedy: { title: 'give each rank its own addresses' },
      },
    ],
  });
  const text = textOf(report);
  expect(text).toMatch(/^\S+ Run 14 serves; 1 failure on the way$/m);
  expect(text).toContain('loopback-address-advertised');
  expect(text).toMatch(/^Cured +give each rank its own addresses/m);
  // What was to be done was done.
  expect(text).not.toMatch(/^Do /m);
  expect(text).toMatch(/^[\x20-\x7e\n]*$/);
});

it('a run that does not serve says no word of a cure, and one that served at once none of a failure', () => {
  const report = reportOf(failedEvents);
  expect(report.answer.cause).toBe(report.findings.at(-1)?.cause);
  expect(report.answer).not.toHaveProperty('earlier');
  expect(textOf(report)).not.toMatch(/serves|^Cured/m);
  const clean = storyEvents.filter(
    ({ type }) => type === 'run-started' || type === 'serving' || type === 'run-ended',
  );
  const served = reportOf(clean);
  expect(served.answer).toMatchObject({ cause: 'no-fault' });
  expect(textOf(served)).toContain('Run 14 serves; nothing failed in it');
  const there = clean.flatMap((event) =>
    event.type === 'run-ended' ? [{ ...event, outcome: 'nothing-to-do' as const }] : [],
  );
  expect(reportOf([...clean.slice(0, 1), ...there]).answer).toMatchObject({ cause: 'no-fault' });
});

it('an engine that was changed is told as what ended it', () => {
  const events = storyEvents
    .filter(({ type }) => !type.startsWith('remedy-'))
    .flatMap((event) =>
      event.type === 'finding' && event.final
        ? [
            event,
            {
              v: 1 as const,
              seq: event.seq,
              run: event.run,
              at: event.at,
              type: 'engine-changed' as const,
              from: 'sglang' as const,
              to: 'vllm' as const,
              why: 'no remedy left',
            },
          ]
        : [event],
    );
  const report = reportOf(events);
  expect(report.answer.earlier).toMatchObject([{ remedy: null, engine: 'vllm' }]);
  expect(textOf(report)).toMatch(/^Cured +vllm was taken instead/m);
});

const sample = (path: string): string => readFileSync(`test/samples/${path}`, 'utf8');

/** What `diagnose` says of one log, as JSON and as text. */
async function said(log: string): Promise<{ readonly answer: unknown; readonly text: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'fl-earlier-'));
  try {
    writeFileSync(join(folder, 'head.log'), log);
    const argv = ['diagnose', '--log', `head=${join(folder, 'head.log')}`];
    const answer: unknown = JSON.parse((await run([...argv, '--json'], [diagnoseRun])).stdout);
    return { answer, text: (await run(argv, [diagnoseRun])).stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it('logs of a job that was started anew and serves say so, and what the start before failed of', async () => {
  const { answer, text } = await said(
    sample('captured/cuda-oom-set-device-worker.log') + sample('healthy/sglang-single/head.log'),
  );
  expect(answer).toMatchObject({
    cause: 'no-fault',
    atFault: 'none',
    earlier: [{ cause: 'leftover-process-holds-gpu-memory', atFault: 'head', remedy: null }],
  });
  expect(text).toContain('It serves now; what an earlier start failed of:');
  expect(text).toContain('leftover-process-holds-gpu-memory');
  expect(text).not.toContain('No failure in these logs');
});

it('logs of a job that failed of one thing and then of another tell the last, and the one before beside it', async () => {
  const start = sample('healthy/sglang-single/head.log').split('\n').slice(0, 4).join('\n');
  const { answer, text } = await said(
    `${start}\n${sample('captured/cuda-oom-set-device-worker.log')}${start}\nERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n`,
  );
  expect(answer).toMatchObject({
    cause: 'port-already-in-use',
    earlier: [{ cause: 'leftover-process-holds-gpu-memory' }],
  });
  expect(text).toMatch(/^\S+ Port 30000 on head is taken/m);
  expect(text).toMatch(/^Before +another start: Something else holds the GPU memory of head/m);
  expect(text).not.toContain('It serves now');
});
