import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Event } from '../../src/domain/event.ts';
import { askedEngine, type Engine, installEngine } from './engines/engine.ts';
import { envOf, HAND_CASES, wordsOf } from './engines/hand-cases.ts';
import { EnginePair, eventsOf, tail } from './engines/pair.ts';
import { signalEngine, UP_CASES, type UpCase } from './engines/up-cases.ts';
import { type Ended, ended, whyNot } from './fleet.ts';
import { tell } from './whole/table.ts';

// Real engines over two hosts: `npm run e2e -- --engine torch` (torch.distributed over Gloo behind vLLM's command line)
// and `npm run e2e -- --engine vllm` (vLLM for CPUs). What they need is installed once and kept on the machine; one case
// alone: `-- --engine torch -t 'the same rank twice'`; with `--full` what a person must mend is mended and serves.

const asked = askedEngine();
/** What a person must mend is then brought up again, mended: once more as long. */
const FULL = process.env['FIRSTLIGHT_E2E_FULL'] === '1';
const MINUTES = 600_000;

const why = asked === undefined ? 'no --engine was asked for' : whyNot();
if (why !== undefined && asked !== undefined) throw new Error(`the engines cannot run here: ${why}`);

describe.skipIf(why !== undefined)(`${asked ?? 'an engine'} over two hosts with real sshd`, () => {
  let pair: EnginePair;

  beforeAll(() => {
    const engine: Engine = installEngine(asked ?? 'torch');
    pair = new EnginePair(engine);
    pair.begin();
  }, 1_800_000);

  afterEach(async () => {
    await pair.firstlight(['down', '--json']);
  });

  afterAll(() => pair.down());

  const up = (): Promise<Ended> => pair.firstlight(['up', pair.file('recipe.yaml'), '--json']);

  async function down(): Promise<void> {
    const told = await pair.firstlight(['down', '--json']);
    expect(told.code, tail(told)).toBe(0);
    for (const host of ['a', 'b'] as const)
      expect(pair.on(host, 'root', ['pgrep', '-f', ' serv[e] /srv/']).stdout).toBe('');
  }

  /** After a person mended it, or with the arguments that `up` gives: the model answers. */
  async function serves(): Promise<void> {
    const told = await up();
    expect(lastOf(told), tail(told)).toMatchObject({ outcome: 'serving' });
    await down();
  }

  test(
    'brings it up, asks it, sees it fail while it serves, and gives everything back',
    async () => {
      const began = Date.now();
      // Each rank's own patience, for the next question too: longer than the worker is held below, on a slow machine too.
      pair.recipe('args: {vllm: [--distributed-timeout-seconds, "60"]}');
      const first = await up();
      const events = eventsOf(first);
      expect(events.at(-1), tail(first)).toMatchObject({ type: 'run-ended', outcome: 'serving' });
      const serving = events.find((event) => event.type === 'serving');
      expect(serving).toMatchObject({ answer: '204', head: 'spark-a' });
      pair.keep('healthy pair', pair.logsOf(events));
      row('a healthy start', '', 'nothing', 'serves, answers 204', began);

      // A worker that stands still keeps its process, and the head's own health knows nothing of it.
      const stopped = Date.now();
      signalEngine(pair, 'b', 'STOP');
      const health = healthOf(pair);
      const still = await pair.firstlight(['status', '--json']);
      signalEngine(pair, 'b', 'CONT');
      const goes = await pair.firstlight(['status', '--json']);
      row(
        'the worker stopped by STOP while it serves',
        `/health of the head: ${health}`,
        'status: the model gives no answer',
        'not serving; CONT: serving',
        stopped,
      );
      expect(health).toBe('200');
      expect(still.stdout).toMatch(/"serving": false/);
      expect(still.stdout).toContain('"health": "does-not-answer"');
      expect(goes.stdout).toMatch(/"serving": true/);

      const killed = Date.now();
      signalEngine(pair, 'b', 'KILL');
      const healthAfter = healthOf(pair);
      const status = await pair.firstlight(['status', '--json']);
      const again = await up();
      row(
        'the worker ended with KILL while it serves',
        `/health of the head: ${healthAfter}`,
        'status: rank 1 on spark-b ended with 137',
        `not serving; up starts both anew: ${String(lastOf(again)?.outcome)}`,
        killed,
      );
      expect(healthAfter).toBe('200');
      expect(status.stdout).toMatch(/"serving": false/);
      expect(status.stdout).toContain('ended with 137');
      expect(lastOf(again), tail(again)).toMatchObject({ outcome: 'serving' });

      const cut = Date.now();
      pair.fabric('down');
      let lost: Ended;
      try {
        const seen = await pair.firstlight(['status', '--json']);
        expect(seen.stdout, 'the deep look sees no answer').toMatch(/"serving": false/);
        expect(seen.stdout).toContain('The fabric link of spark-b (enp1s0f1np1) is down.');
        lost = await up();
      } finally {
        pair.fabric('up');
      }
      const cause = findingIn(eventsOf(lost));
      pair.keep('fabric cut while it serves', { ...pair.logsOf(eventsOf(lost)), up: lost.stdout });
      const mended = await up();
      row(
        'the fabric cut while it serves',
        quoteOf(cause) || String(cause?.title),
        named(cause),
        `status: not serving; link up again: ${String(lastOf(mended)?.outcome)}`,
        cut,
      );
      expect(cause, tail(lost)).toMatchObject({ cause: 'fabric-link-down' });
      expect(['serving', 'nothing-to-do'], tail(mended)).toContain(lastOf(mended)?.outcome);
      await down();
    },
    2 * MINUTES,
  );

  for (const one of UP_CASES.filter(isAsked))
    test(
      `names ${one.what}`,
      async () => {
        const began = Date.now();
        pair.recipe(one.recipe);
        const mends: (() => void)[] = [];
        if (one.breaks !== undefined) mends.push(one.breaks(pair));
        let told: Ended;
        try {
          const child = pair.start(['up', pair.file('recipe.yaml'), '--json']);
          let struck = false;
          told = await ended(child, (line) => {
            if (struck || !line.startsWith('{"v":1,')) return;
            const [event] = eventsOf({ code: 0, stdout: line, stderr: '' });
            if (event === undefined || one.during?.when(event) !== true) return;
            struck = true;
            mends.push(one.during.act(pair));
          });
          pair.keep(one.what, { ...pair.logsOf(eventsOf(told)), up: told.stdout });
        } finally {
          for (const mend of mends) mend();
        }
        const events = eventsOf(told);
        const finding = findingIn(events);
        const logs = pair.logsOf(events);
        const outcome = lastOf(told)?.outcome ?? '?';
        let done: string = [provedIn(events), outcome].filter((text) => text !== '').join('; ');
        try {
          expect(one.causes, tail(told)).toContain(finding?.cause ?? 'none');
          if (one.node !== 'either') expect(finding?.node, tail(told)).toBe(one.node);
          expect(outcome, tail(told)).toBe(one.ends);
          expectQuoted(one, finding, logs);
          if (one.remedy !== undefined) expect(done, tail(told)).toContain(`${one.remedy} proved`);
          await pair.firstlight(['down', '--json']);
          if (FULL && one.ends === 'not-serving') {
            pair.recipe(one.mended);
            await serves();
            done = `${done}; mended: serves`;
          }
        } finally {
          row(one.what, quoteOf(finding) || String(finding?.title), named(finding), done, began);
        }
      },
      MINUTES,
    );

  for (const one of HAND_CASES)
    test(
      `reads in logs of ranks launched by hand: ${one.what}`,
      async () => {
        const began = Date.now();
        await pair.byHand(
          one.hosts.map((host) => ({ host, args: wordsOf(one.args(pair, host), host), env: envOf(host) })),
          one.seconds[pair.engine.kind],
        );
        const logs = Object.fromEntries(
          one.hosts.map((host) => [host === 'a' ? 'head' : 'worker', pair.handLog(host)]),
        );
        const told = await pair.firstlight(['diagnose', '--json', ...pair.handLogs(one.hosts)]);
        pair.keep(one.what, { ...logs, answer: told.stdout });
        expect(told.code, `${tail(told)}\n${Object.values(logs).join('\n').slice(-3000)}`).toBe(0);
        const answer: {
          readonly cause: string;
          readonly atFault: string;
          readonly evidence: readonly { readonly text: string }[];
        } = JSON.parse(told.stdout);
        const quotes = answer.evidence.map(({ text }) => text);
        row(
          `${one.what}, by hand`,
          quotes[0] ?? '',
          `${answer.cause} at ${answer.atFault}`,
          'diagnose --log; up gives each rank its own',
          began,
        );
        expect(answer, tail(told)).toMatchObject({ cause: one.cause, atFault: one.atFault });
        expect(quotes.join('\n')).toMatch(one.quote);
        for (const quote of quotes) expect(Object.values(logs).join('\n')).toContain(quote);
      },
      MINUTES,
    );
});

type Finding = Extract<Event, { type: 'finding' }>;

function isAsked({ only, rare }: UpCase): boolean {
  return (
    (only === undefined || only === asked) && (rare === undefined || FULL || process.env['CI'] === undefined)
  );
}

/** What the head's own /health answers now. */
function healthOf(pair: EnginePair): string {
  const ask = "fetch('http://127.0.0.1:30000/health').then((one) => console.log(one.status))";
  return pair.on('a', 'root', ['/srv/bin/node', '-e', ask]).stdout.trim();
}

/** What was named first for good: what comes after it is about what a remedy left. */
function findingIn(events: readonly Event[]): Finding | undefined {
  const all = events.flatMap((event) => (event.type === 'finding' ? [event] : []));
  return all.find(({ final }) => final) ?? all[0];
}

function lastOf(told: Ended): Extract<Event, { type: 'run-ended' }> | undefined {
  const last = eventsOf(told).at(-1);
  return last?.type === 'run-ended' ? last : undefined;
}

function named(finding: Finding | undefined): string {
  return finding === undefined ? 'none' : `${finding.cause} on ${finding.node ?? 'no node'}`;
}

function quoteOf(finding: Finding | undefined): string {
  return finding?.quotes[0]?.text ?? '';
}

function provedIn(events: readonly Event[]): string {
  return events
    .flatMap((event) => (event.type === 'remedy-proved' ? [`${event.remedy} proved`] : []))
    .join(', ');
}

/** What it quotes stands in the ranks' logs, and the engine's own words are among it. */
function expectQuoted(
  one: UpCase,
  finding: Finding | undefined,
  logs: Readonly<Record<string, string>>,
): void {
  const quotes = (finding?.quotes ?? []).map(({ text }) => text);
  for (const quote of quotes) expect(Object.values(logs).join('\n')).toContain(quote);
  if (one.quote !== undefined) expect(quotes.join('\n')).toMatch(one.quote);
}

function row(what: string, seen: string, named: string, done: string, began: number): void {
  tell({ what: `${asked}: ${what}`, seen, named, done, seconds: (Date.now() - began) / 1000 });
}
