import { expect, test } from 'vitest';
import { nowLine } from '../../src/domain/now-line.ts';
import type { CheckReport, Report, StatusReport } from '../../src/domain/report.ts';
import { blank, fold, foldAll } from '../../src/domain/run-state.ts';
import { UserError } from '../../src/domain/user-error.ts';
import { paint } from '../../src/faces/cli/color.ts';
import { consentText } from '../../src/faces/cli/consent.ts';
import { glyphs } from '../../src/faces/cli/glyphs.ts';
import { plainLine } from '../../src/faces/cli/plain.ts';
import { renderReport } from '../../src/faces/cli/render.ts';
import { renderBug, renderUserError } from '../../src/faces/cli/render-error.ts';
import { renderRun } from '../../src/faces/cli/render-run.ts';
import type { Style } from '../../src/faces/cli/style.ts';
import { width } from '../../src/faces/cli/width.ts';
import { memoryOf } from '../../src/faces/mcp/tools/plan.ts';
import { answerOfRun } from '../../src/operations/answer-of-run.ts';
import { guarding } from '../pretend/guard-records.ts';
import {
  clearPlan,
  downEvents,
  failedEvents,
  loopback,
  storyEvents,
  storyFacts,
  storyPlan,
  storyTime,
  storyUntil,
} from '../pretend/story-events.ts';
import { golden } from './golden.ts';

const style: Style = {
  columns: 80,
  paint: paint(false),
  glyphs: glyphs(true),
  now: storyTime(4000),
  verbose: false,
};
const facts = (['spark-a', 'spark-b'] as const).map((node) =>
  storyFacts(node, '2026-11-12T10:02:44.000Z', { others: true, cacheGib: 30.4 }),
);
const check: CheckReport = {
  kind: 'check',
  cluster: 'sparks',
  recipe: 'qwen3.5-122b',
  milliseconds: 2800,
  facts,
  memory: storyPlan.memory,
  items: [
    { level: 'fine', topic: 'model', node: 'spark-a', title: 'model whole', remedy: undefined },
    {
      level: 'blocks',
      topic: 'memory',
      node: 'spark-b',
      title: '36.1 of 119.7 GiB available, the recipe needs 88.3 ± 2.5',
      remedy: 'firstlight up asks before it stops any of them',
    },
    {
      level: 'warning',
      topic: 'names',
      node: 'spark-b',
      title: 'spark-b is 127.0.1.1 in /etc/hosts',
      remedy: 'keep network: auto in the recipe',
    },
    {
      level: 'unknown',
      topic: 'clocks',
      node: 'spark-b',
      title: 'unknown: a stuck low-power state shows only under load',
      remedy: undefined,
    },
  ],
};

const REPORTS: Readonly<Record<string, Report>> = {
  check,
  plan: { kind: 'plan', plan: storyPlan, facts },
  'plan-blocked': {
    kind: 'plan',
    plan: {
      ...clearPlan,
      state: 'blocked',
      phases: [],
      blockers: [
        {
          cause: 'model-missing',
          node: 'spark-b',
          title: 'the model is not in /home/aurora/models/Qwen3.5-122B-A10B-FP8',
          advice: [
            'copy it: rsync -a spark-a:/home/aurora/models/Qwen3.5-122B-A10B-FP8/ /home/aurora/models/',
          ],
          userError: false,
        },
      ],
    },
    facts,
  },
  status: {
    kind: 'status',
    cluster: 'sparks',
    services: [
      {
        recipe: 'qwen3.5-122b',
        engine: 'sglang',
        run: '14',
        serving: true,
        since: '2026-11-12T10:07:02.000Z',
        head: 'spark-a',
        port: 30000,
        edits: ['network: engine → auto'],
        ranks: [
          {
            rank: 0,
            node: 'spark-a',
            role: 'head',
            state: 'running',
            health: 'answers',
            text: '/health 200',
            guard: { ...guarding, alive: true },
          },
          {
            rank: 1,
            node: 'spark-b',
            role: 'worker',
            state: 'running',
            health: 'none',
            text: 'opens no port',
            guard: { ...guarding, kernelLog: 'unknown', lowestBytes: 22.4 * 2 ** 30, alive: false },
          },
        ],
      },
    ],
    unreached: [],
    owed: [{ node: 'spark-b', id: '7f3a', title: 'start ollama.service' }],
  },
  'status-nothing': {
    kind: 'status',
    cluster: 'sparks',
    services: [],
    unreached: [{ node: 'spark-b', why: 'spark-b refuses the connection on port 22.' }],
    owed: [],
  },
  logs: {
    kind: 'logs',
    run: '14',
    attempt: 2,
    lines: [
      {
        rank: 0,
        node: 'spark-a',
        line: 9,
        at: 1000,
        stage: 'rendezvous',
        text: 'Init torch distributed begin.',
      },
      {
        rank: 1,
        node: 'spark-b',
        line: 9,
        at: 1200,
        stage: 'rendezvous',
        text: 'Init torch distributed begin.',
      },
      { rank: 0, node: 'spark-a', line: 10, at: 5200, stage: 'weights', text: 'Load weight begin.' },
    ],
  },
  runs: {
    kind: 'runs',
    runs: [
      {
        run: '15',
        operation: 'up',
        recipe: 'qwen3.5-122b',
        startedAt: '2026-11-12T10:40:00.000Z',
        seconds: 400,
        outcome: 'not-serving',
      },
      {
        run: '14',
        operation: 'up',
        recipe: 'qwen3.5-122b',
        startedAt: '2026-11-11T18:20:00.000Z',
        seconds: 261,
        outcome: 'serving',
      },
      {
        run: '13',
        operation: 'restore',
        recipe: undefined,
        startedAt: '2026-10-02T08:00:00.000Z',
        seconds: undefined,
        outcome: 'no end: running, or cut off',
      },
    ],
  },
  show: { kind: 'show', run: '14', events: storyEvents },
  diagnose: {
    kind: 'diagnose',
    run: '14',
    answer: answerOfRun([]),
    findings: [
      loopback,
      {
        ...loopback,
        cause: 'unknown',
        confidence: 0.2,
        title: 'spark-a ended with exit 1',
        node: 'spark-a',
        rank: 0,
      },
    ],
  },
  chat: {
    kind: 'chat',
    answer: '204',
    reasoning: 'Twelve times ten is 120.\nTwelve times seven is 84.',
    finish: 'stop',
    firstTokenSeconds: 0.41,
    tokensPerSecond: 23.8,
    outputTokens: undefined,
  },
  init: { kind: 'init', file: '/home/aurora/cluster.yaml', nodes: 2 },
  lab: {
    kind: 'lab',
    text: 'two-sparks ended as it should.',
    folder: '/tmp/firstlight-two-sparks',
    next: ['firstlight runs', 'firstlight show 1'],
  },
};

for (const [name, report] of Object.entries(REPORTS)) {
  test(`${name} reads as the golden file`, () => {
    golden(`report-${name}`, renderReport(report, style, { why: false, streamed: false }));
  });
}

test('plan --verbose shows the rules and every rank whole', () => {
  const report: Report = { kind: 'plan', plan: storyPlan, facts };
  const text = renderReport(report, { ...style, verbose: true }, { why: false, streamed: false });
  golden('report-plan-verbose', text);
  expect(text).toContain(`--json-model-override-args '{"a": 1}'`);
});

test('plan says of each step that policy.yaml allows where it does, and counts it apart', () => {
  const allowed = [
    { id: 'c21e', by: 'policy.yaml, line 2' },
    { id: '90b4', by: 'policy.yaml, line 7' },
  ];
  const text = renderReport({ kind: 'plan', plan: storyPlan, facts, allowed }, style, {
    why: false,
    streamed: false,
  });
  expect(text).toContain('6 steps, 2 allowed by policy.yaml, 1 asks you');
  expect(text.match(/◐/g)).toHaveLength(1);
  const words = text.replace(/\s+/g, ' ');
  expect(words).toMatch(/c21e stop comfyui.*allowed by policy\.yaml,.*line 2/);
  expect(words).toMatch(/90b4 end python train\.py.*line 7/);
});

test('a down that gives back too leaves what is owed, and what to type, to the run that follows', () => {
  const events = downEvents.map((event) =>
    event.type === 'run-ended' ? { ...event, givesBack: true as const } : event,
  );
  const text = renderRun(foldAll(events), style);
  expect(text).toContain('2 things on spark-b are given back next');
  expect(text).not.toMatch(/Owed|Next|firstlight restore/);
});

test('plan of what runs already says whether it serves, and asks for no step', () => {
  const plan = {
    ...storyPlan,
    state: 'empty' as const,
    phases: storyPlan.phases
      .filter(({ kind }) => kind === 'launch')
      .map((phase) => ({ ...phase, services: phase.services.map((one) => ({ ...one, running: true })) })),
  };
  const first = (report: Report): string =>
    renderReport(report, { ...style, columns: 120 }, { why: false, streamed: false }).split('\n')[0] ?? '';
  expect(first({ kind: 'plan', plan, facts })).toBe(
    'plan 3d91 for qwen3.5-122b: runs already and was not seen to serve yet, nothing to launch',
  );
});

test('check --verbose shows who holds the memory', () => {
  golden(
    'report-check-verbose',
    renderReport(check, { ...style, verbose: true }, { why: false, streamed: false }),
  );
});

test('a run that serves, one that does not, and a stopped one each say what to do next', () => {
  golden('run-serving', renderRun(foldAll(storyEvents), style));
  golden('run-not-serving', renderRun(foldAll(failedEvents), style));
  golden('run-stopped', renderRun(foldAll(downEvents), style));
});

test('an edit that leaves something out is told so, with what to do in the recipe to keep it', () => {
  const cured = (from: unknown, to: unknown) => {
    const events = storyEvents.map((event) =>
      event.type === 'remedy-proved' || event.type === 'remedy-applied'
        ? { ...event, cause: 'flag-unknown', edits: [{ path: 'context', from, to }] }
        : event,
    );
    return renderRun(foldAll(events), { ...style, columns: 120 })
      .split('\n')
      .find((line) => line.startsWith('Cured'));
  };
  expect(cured(131072, undefined)).toMatch(
    /context: 131072 \(left out\)\. Keep it: take it out of the recipe$/,
  );
  expect(cured(undefined, 65536)).toMatch(/context: 65536 \(new\)\. Keep it: set it in the recipe$/);
  expect(cured(131072, 65536)).toMatch(/context: 131072 → 65536\. Keep it: set it in the recipe$/);
});

test('a run that lacks consent names the ids that would allow it', () => {
  const asked = storyUntil(8);
  const state = [...asked].reduce(fold, blank);
  const ended = fold(state, {
    v: 1,
    seq: 99,
    run: '14',
    at: '2026-11-12T10:02:50.000Z',
    type: 'run-ended',
    outcome: 'consent-needed',
    why: 'Consent is needed to 7f3a (stop ollama.service on spark-b). Nothing of these was stopped.',
    exit: 2,
    owed: [],
  });
  const text = renderRun(ended, style);
  expect(text).toContain('--consent 7f3a,c21e,90b4');
  golden('run-consent-needed', text);
});

test('every event of the story is one plain line; weights come at each tenth', () => {
  let state = blank;
  const lines: string[] = [];
  for (const event of storyEvents) {
    const line = plainLine(event, state);
    if (line !== undefined) lines.push(line);
    state = fold(state, event);
  }
  for (const line of lines) expect(line).not.toContain('\n');
  golden('plain', `${lines.join('\n')}\n`);
});

test('a holder that takes the plan its margin alone is told to be in its way', () => {
  const { asked, plan, facts } = foldAll(storyUntil(8));
  if (!asked || !plan) throw new Error('the story asks');
  const [first] = asked.steps;
  const [node] = plan.memory.filter((one) => one.node === first?.node);
  if (!first || !node) throw new Error('the story stops somebody');
  const GIB = 2 ** 30;
  const target = { ...first.target, bytes: 1.3 * GIB };
  const memory = [{ ...node, sumBytes: 9.1 * GIB, errorBytes: 2.5 * GIB, canGetBytes: 10.6 * GIB }];
  const question = {
    asked: { ...asked, steps: [{ ...first, target }] },
    plan: { ...plan, memory },
    facts,
  };
  expect(consentText(question, style)).toContain('The plan fits only with it.');
});

test('what was allowed beforehand counts where the question says what would be enough', () => {
  const { asked, plan, facts } = foldAll(storyUntil(8));
  if (!asked || !plan) throw new Error('the story asks');
  for (const step of asked.steps) {
    const consented = asked.steps.filter((other) => other !== step).map(({ id }) => id);
    const question = { asked: { ...asked, steps: [step] }, plan, facts, consented };
    expect(consentText(question, style), step.title).toContain('The plan fits only with it.');
  }
});

test('where it is not known whether it fits, the question weighs no choice by a figure that nobody has', () => {
  const { asked, plan, facts } = foldAll(storyUntil(8));
  if (!asked || !plan) throw new Error('the story asks');
  const memory = plan.memory.map((node) => ({
    ...node,
    verdict: 'unknown' as const,
    sumBytes: 0,
    errorBytes: 0,
    canGetBytes: 0,
  }));
  const text = consentText({ asked, plan: { ...plan, memory }, facts }, style);
  expect(text.replace(/\s+/g, ' ')).toContain('What the plan needs there is not known.');
  expect(text).not.toMatch(/0\.0 ±|fits only|is enough|would not fit/);
  const [step] = asked.steps;
  const [known] = plan.memory;
  if (!step || !known) throw new Error('the story asks');
  const both = {
    asked: { ...asked, steps: [step, { ...step, node: 'spark-z' }] },
    plan: {
      ...plan,
      memory: [
        { ...known, node: step.node },
        { ...memory[0], ...known, node: 'spark-z', verdict: 'unknown' as const },
      ],
    },
    facts,
  };
  expect(consentText(both, style).replace(/\s+/g, ' ')).toContain(
    `GiB on ${step.node}; what it needs on spark-z is not known`,
  );
  expect(
    memory.map(memoryOf).map(({ canGetGib, needsGib, verdict }) => ({ canGetGib, needsGib, verdict })),
  ).toEqual(memory.map(() => ({ canGetGib: null, needsGib: null, verdict: 'unknown' })));
});

test('the consent question says who is stopped, how, and what comes back', () => {
  const state = foldAll(storyUntil(8));
  const asked = state.asked ?? expect.fail('asked');
  const text = consentText({ asked, plan: state.plan, facts: state.facts }, style);
  golden('consent', text);
  for (const columns of [60, 80, 120])
    for (const unicode of [true, false]) {
      const narrow = consentText(
        { asked, plan: state.plan, facts: state.facts },
        { ...style, columns, glyphs: glyphs(unicode) },
      );
      for (const line of narrow.split('\n')) expect(width(line), line).toBeLessThanOrEqual(columns);
    }
});

test('a holder with a long name is told within the terminal, and its pid once', () => {
  const state = foldAll(storyUntil(8));
  const asked = state.asked ?? expect.fail('asked');
  const steps = asked.steps.map((step) => ({
    ...step,
    target: {
      ...step.target,
      what:
        step.target.kind === 'process'
          ? `process ${step.target.pid} of user root`
          : `container of image registry.example/${'a-long-name/'.repeat(4)}image:tag`,
    },
  }));
  const text = consentText({ asked: { ...asked, steps }, plan: state.plan, facts: state.facts }, style);
  for (const line of text.split('\n')) expect(width(line)).toBeLessThanOrEqual(80);
  expect(text).not.toContain(', pid');
});

test('no consent question breaks inside a word, however narrow the terminal and long what is told', () => {
  const state = foldAll(storyUntil(8));
  const asked = state.asked ?? expect.fail('asked');
  const steps = asked.steps.map((step) => ({
    ...step,
    node: 'a-node-with-a-long-name',
    target: {
      ...step.target,
      name: `${step.target.name} --with many --words behind its --name`,
      listens: [11434, 11435, 11436, 11437],
      job: ['7f3a', 'c21e', '90b4'],
      returns: [{ what: 'the timer nightly-training.timer', keepAway: 'systemctl stop that.timer' }],
    },
    how: 'restart policy to no, docker stop, and then whatever else is needed for it to stay away',
  }));
  const question = { asked: { ...asked, steps }, plan: state.plan, facts: state.facts };
  const words = (text: string): string => text.split(/\s+/).join(' ');
  const whole = words(consentText(question, { ...style, columns: 120 }));
  for (let columns = 40; columns <= 80; columns += 1) {
    const text = consentText(question, { ...style, columns });
    for (const line of text.split('\n'))
      if (/\S\s+\S/.test(line)) expect(width(line), line).toBeLessThanOrEqual(columns);
    // The names are told otherwise where they have no room beside their sizes; every word is there still.
    for (const word of whole.split(' ')) expect(words(text), `${columns}`).toContain(word.replace(/,$/, ''));
  }
});

test('a user error says what, why, how to mend it, and whether anything was changed', () => {
  const error = new UserError(
    'lock-held',
    'aurora@laptop (pid 4242) works on spark-a since 10:02:41 (run 14)',
    'wait until it ends, or end it there; firstlight status shows what it does',
  );
  golden('error', renderUserError(error, false, style));
});

test('a bug says whose mistake it is, with the stack and its cause', () => {
  const error = new Error('a plan with work has no phase', { cause: new Error('inner') });
  const text = renderBug(error, true, '0.1.0', style);
  expect(text).toContain("This is our mistake, not your cluster's.");
  expect(text).toContain('a plan with work has no phase');
  expect(text).toContain('because: Error: inner');
});

test('no report is wider than the terminal, but for what is to be copied or looked up as it stands', () => {
  for (const columns of [60, 80, 120])
    for (const unicode of [true, false]) {
      const narrow: Style = { ...style, columns, glyphs: glyphs(unicode) };
      const texts = Object.values(REPORTS).map((report) =>
        renderReport(report, narrow, { why: true, streamed: false }),
      );
      const runs = [storyEvents, failedEvents, downEvents].map((events) =>
        renderRun(foldAll(events), narrow),
      );
      const wide = [...texts, ...runs]
        .flatMap((text) => text.split('\n'))
        .filter(
          (line) =>
            width(line) > columns && !/^\d\d:\d\d:\d\d |^ {25}\| rank|https?:|rsync|firstlight /.test(line),
        );
      expect(wide).toEqual([]);
    }
});

test('in ASCII nothing of ours is beyond ASCII', () => {
  const ascii: Style = { ...style, glyphs: glyphs(false) };
  const texts = [
    ...Object.values(REPORTS).map((report) => renderReport(report, ascii, { why: true, streamed: false })),
    renderRun(foldAll(storyEvents), ascii),
    renderRun(foldAll(failedEvents), ascii),
  ];
  for (const text of texts) expect(text).toMatch(/^[\x20-\x7e\n]*$/);
});

test('a finding of an earlier attempt is shown with the command that finds its line there', () => {
  const [finding] = storyUntil(200).flatMap((event) =>
    event.type === 'finding' && event.final ? [event] : [],
  );
  if (finding === undefined) expect.fail('a finding');
  const report: Report = {
    kind: 'diagnose',
    answer: answerOfRun([]),
    run: '3',
    findings: [finding],
  };
  const text = renderReport(report, style, { why: false, streamed: false });
  const quote = finding.quotes[0];
  expect(text).toContain(
    `firstlight logs 3 --attempt ${finding.attempt} --rank ${quote?.rank} --line ${quote?.line}`,
  );
});

test('a node with a finding about something else still says what memory it has', () => {
  const items: CheckReport['items'] = [
    { level: 'warning', topic: 'names', node: 'spark-b', title: 'a warning', remedy: undefined },
    {
      level: 'fine',
      topic: 'memory',
      node: 'spark-b',
      title: '36.1 of 119.7 GiB available.',
      remedy: undefined,
    },
    { level: 'fine', topic: 'ssh', node: 'spark-b', title: 'It answered.', remedy: undefined },
  ];
  const text = renderReport({ ...check, items }, style, { why: false, streamed: false });
  expect(text).toContain('✓ memory   36.1 of 119.7 GiB available.');
  expect(text).not.toContain('It answered');
});

test('holders that are to be stopped for memory are one verdict of their node, and a plan that fits is one line', () => {
  const way = (name: string, back = ''): CheckReport['items'][number] => ({
    level: 'blocks',
    topic: 'holders',
    node: 'spark-b',
    title: `${name} (somebody's) is in the way: 31.2 GiB.`,
    remedy: `firstlight up asks whether to stop ${name}.${back}`,
  });
  const fine = (node: string, title: string): CheckReport['items'][number] => ({
    level: 'fine',
    topic: 'memory',
    node,
    title,
    remedy: undefined,
  });
  const warning = {
    level: 'warning',
    topic: 'names',
    node: 'spark-a',
    title: 'a warning',
    remedy: undefined,
  } as const;
  const report: CheckReport = {
    ...check,
    items: [
      way('ollama.service'),
      way('comfyui'),
      way('python train.py', ' It cannot be brought back.'),
      warning,
      ...['spark-a', 'spark-b'].flatMap((node) => [
        fine(node, 'It fits.'),
        fine(node, 'So much is available.'),
      ]),
    ],
  };
  const text = renderReport(report, style, { why: false, streamed: false });
  golden('report-check-holders', text);
  const whole = renderReport(report, { ...style, verbose: true }, { why: false, streamed: false });
  expect(whole).toContain("comfyui (somebody's) is in the way");
});

test('memory that could not be reckoned is no zero', () => {
  const memory = storyPlan.memory.map((node) => ({
    ...node,
    weightsBytes: 0,
    kvBytes: 0,
    engineBytes: 0,
    graphsBytes: 0,
    sumBytes: 0,
    canGetAfterClearingBytes: 0,
    verdict: 'unknown' as const,
  }));
  const report: Report = { kind: 'plan', plan: { ...storyPlan, memory }, facts };
  const text = renderReport(report, style, { why: false, streamed: false });
  expect(text).toMatch(/spark-a( +\?){6} +unknown/);
});

test('the command that gives the consent stands alone, to be copied', () => {
  const events = storyUntil(8);
  const ended = fold(foldAll(events), {
    v: 1,
    seq: 99,
    run: '14',
    at: '2026-11-12T10:02:50.000Z',
    type: 'run-ended',
    outcome: 'consent-needed',
    why: 'Consent is needed to 7f3a. Allow them: firstlight up my.yaml --consent 7f3a',
    exit: 2,
    owed: [],
  });
  const lines = renderRun(ended, style).split('\n');
  expect(lines).toContain('Why      Consent is needed to 7f3a.');
  expect(lines).toContain('Do       firstlight up my.yaml --consent 7f3a');
});

test('a run that is blocked by several things says of one thing what it is and what to do', () => {
  const end = (title: string, why: string) =>
    foldAll([
      ...storyUntil(4).filter((event) => event.type !== 'rank-started'),
      ...['The heads do not divide.', 'It does not fit.'].map((said, index) => ({
        v: 1 as const,
        seq: 90 + index,
        run: '14',
        at: '2026-11-12T10:02:50.000Z',
        ...loopback,
        type: 'finding' as const,
        attempt: 1,
        final: true,
        title: said,
        why: '',
        quotes: [],
        advice: [`Advice for: ${said}`],
      })),
      {
        v: 1,
        seq: 99,
        run: '14',
        at: '2026-11-12T10:02:51.000Z',
        type: 'run-ended',
        outcome: 'not-serving',
        why: `${title} ${why}`,
        exit: 2,
        owed: [],
      },
    ]);
  const first = renderRun(end('The heads do not divide.', 'Tensor sizes that suit: 2.'), style);
  expect(first).toContain('Why      The heads do not divide. Tensor sizes that suit: 2.');
  expect(first).not.toContain('Advice for');
  const last = renderRun(end('It does not fit.', ''), style);
  expect(last).toContain('Do       Advice for: It does not fit.');
  // What keeps a rank from being started ends the run with the finding's own title, without a stop.
  const unstarted = renderRun(end('It does not fit', ''), style);
  expect(unstarted).toContain('Do       Advice for: It does not fit.');
});

test('status of a run that waits gives each step’s id, and the commands that answer', () => {
  const { asked } = foldAll(storyUntil(8));
  if (asked === undefined) expect.fail('the story asks');
  const report: StatusReport = {
    kind: 'status',
    cluster: 'sparks',
    services: [],
    unreached: [],
    owed: [],
    busy: [
      {
        nodes: ['spark-a', 'spark-b'],
        owner: 'aurora@laptop (pid 4242)',
        run: '14',
        since: '2026-11-12T10:02:41.000Z',
        now: nowLine(foldAll(storyUntil(8)), storyTime(8)),
        asks: asked.steps.map(({ id, node, title, target }) => ({ id, node, title, bytes: target.bytes })),
      },
    ],
  };
  golden('report-status-asks', renderReport(report, style, { why: false, streamed: false }));
});

test('status says who works on the nodes now, and with the Now line where its run is one of this journal', () => {
  const report: StatusReport = {
    kind: 'status',
    cluster: 'sparks',
    services: [],
    unreached: [],
    owed: [],
    busy: [
      {
        nodes: ['spark-a', 'spark-b'],
        owner: 'aurora@laptop (pid 4242)',
        run: '14',
        since: '2026-11-12T10:02:41.000Z',
      },
    ],
  };
  const text = renderReport(report, style, { why: false, streamed: false });
  expect(text).toMatch(/Busy {5}aurora@laptop \(pid 4242\) works on spark-a and spark-b since \d\d:\d\d/);
  expect(text).toContain('Nothing serves on sparks');
  const now = nowLine(foldAll(storyUntil(172)), storyTime(172));
  const known = { ...report, busy: report.busy?.map((one) => ({ ...one, now })) ?? [] };
  const told = renderReport(known, style, { why: false, streamed: false });
  expect(told).toMatch(
    /^◔ Loading weights: 64 % on spark-a, 52 % on spark-b +run 14\nfor 0:21; then KV cache\n/,
  );
  expect(told).not.toContain('Nothing serves');
});

test('status says what it saw that keeps a job from serving, and what to do', () => {
  const whole = REPORTS['status'];
  if (whole?.kind !== 'status') throw new Error('there is no sample of a status');
  const why = [
    { title: 'The fabric link of spark-b (enp1s0f1np1) is down.', advice: ['See to its cable and its port'] },
  ];
  const dark = { ...whole, services: whole.services.map((one) => ({ ...one, serving: false, why })) };
  const text = renderReport(dark, style, { why: false, streamed: false });
  expect(text).toMatch(/Not serving: qwen3\.5-122b/);
  expect(text).toMatch(/Why +The fabric link of spark-b \(enp1s0f1np1\) is down\./);
  expect(text).toMatch(/Next +See to its cable and its port/);
});

test('a run without an end says so, and what was last seen of it', () => {
  const text = renderRun(foldAll(storyUntil(172)), style);
  expect(text).toContain('Run 14 has no end here: it still runs, or was cut off');
  expect(text).toMatch(/Last {5}\S+/);
});

test('a reason that the first line has said already is not said again', () => {
  const ended = fold(foldAll(storyUntil(4)), {
    v: 1,
    seq: 99,
    run: '14',
    at: '2026-11-12T10:02:50.000Z',
    type: 'run-ended',
    outcome: 'cancelled',
    why: 'left while the ranks run on; firstlight up takes it up again, firstlight down stops them',
    exit: 1,
    owed: [],
  });
  const text = renderRun(ended, style);
  expect(text.split('\n')[1]).toMatch(/^Left while the ranks run on +run 14/);
  expect(text).toContain('Next     firstlight up takes it up again, firstlight down stops them');
  expect(text.match(/left while/gi)).toHaveLength(1);
  const other = renderRun(
    {
      ...ended,
      ended: { ...(ended.ended ?? expect.fail('ended')), why: 'ended by you before anything was changed' },
    },
    style,
  );
  expect(other).not.toContain('Why');
});
