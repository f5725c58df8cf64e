import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileLines } from '../../src/diagnosis/file-lines.ts';
import { recogniseEngine } from '../../src/diagnosis/recognise-engine.ts';
import type { DiagnoseReport } from '../../src/domain/report.ts';
import { UserError } from '../../src/domain/user-error.ts';
import { diagnoseRun } from '../../src/operations/diagnose.ts';
import { inputs } from '../../src/operations/inputs.ts';
import { logSources } from '../../src/operations/logs/log-sources.ts';
import { makeWorld, type OpenWorld } from '../../src/world.ts';
import { readCases } from '../diagnosis/cases.ts';

let folder = '';
let stop = new AbortController();
let world: OpenWorld;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fl-logs-'));
  stop = new AbortController();
  world = makeWorld({
    cluster: join(folder, 'cluster.yaml'),
    home: join(folder, 'home'),
    sudoPasswordFiles: [],
    live: () => undefined,
    onEvent: () => undefined,
    signal: stop.signal,
    env: {},
  });
});

afterEach(() => {
  stop.abort();
  world.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(given: Readonly<Record<string, unknown>>): Promise<DiagnoseReport> {
  const answer = await diagnoseRun.run(inputs.diagnose.parse(given), world);
  expect(answer.exit).toBe(0);
  if (answer.report.kind !== 'diagnose') throw new Error('no diagnosis');
  return answer.report;
}

function put(name: string, content: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  // As a person finds it: nobody writes to it any more.
  const hourAgo = Date.now() / 1000 - 3600;
  utimesSync(path, hourAgo, hourAgo);
  return path;
}

const cases = readCases().filter(
  (one) => one.cause !== 'no-fault' && !one.unrecognised && 'head' in one.logs && 'worker' in one.logs,
);

describe('diagnose --log', () => {
  it('says of a log in which nothing stands that it is empty, and where its lines may be', async () => {
    for (const content of ['', ' \n\n']) {
      const report = await ask({ run: put('server.log', content) });
      expect(report.answer).toMatchObject({ cause: 'unknown', evidence: [] });
      expect(report.findings).toMatchObject([
        { title: 'The log of head is empty', why: expect.stringMatching(/^Nothing was written/) },
      ]);
      expect(report.findings[0]?.advice[0]).toContain('docker logs CONTAINER >head.log 2>&1');
    }
  });

  it('names the one empty log beside another', async () => {
    const head = put('head.log', 'a line that nobody knows\n');
    const both = { log: [`head=${head}`, `worker=${put('worker.log', '')}`] };
    expect((await ask(both)).findings[0]?.why).toMatch(/ The log of worker is empty\.$/);
    put('head.log', '');
    expect((await ask(both)).findings[0]?.title).toBe('The logs of head and worker are empty');
  });

  it('has recorded pairs to try itself on', () => expect(cases.length).toBeGreaterThan(5));

  it.each(cases.map((one) => [one.name, one] as const))(
    '%s: gives the cause with lines as the files have them',
    async (_name, one) => {
      const log = Object.entries(one.logs).map(([role, bytes]) => `${role}=${put(`${role}.log`, bytes)}`);
      const report = await ask({ log });
      expect(report.findings.map((finding) => finding.cause)).toEqual([one.cause]);
      for (const quote of report.findings[0]?.quotes ?? []) {
        const role = ['head', 'worker'][quote.rank] ?? `worker${quote.rank}`;
        const text = readFileSync(join(folder, `${role}.log`), 'utf8').split('\n')[quote.line - 1];
        expect(text).toContain(quote.text.slice(0, 60));
      }
    },
  );

  it('finds no failure in healthy logs, and says how far they came', async () => {
    const one = readCases().find((each) => each.cause === 'no-fault' && each.engine === 'sglang');
    const log = Object.entries(one?.logs ?? {}).map(
      ([role, bytes]) => `${role}=${put(`${role}.log`, bytes)}`,
    );
    const report = await ask({ log });
    expect(report.findings).toEqual([]);
    expect(report.logs?.find((each) => each.role === 'head')).toMatchObject({ stage: 'serving' });
  });

  it('follows files as they grow, until they show why', async () => {
    const one = cases.find((each) => each.cause === 'loopback-address-advertised');
    if (one === undefined) throw new Error('no such case');
    const halves = Object.entries(one.logs).map(([role, bytes]) => {
      const path = put(`${role}.log`, bytes.subarray(0, bytes.length / 2));
      return { role, path, rest: bytes.subarray(bytes.length / 2) };
    });
    const asked = ask({
      log: halves.map(({ role, path }) => `${role}=${path}`),
      follow: true,
      engine: one.engine,
    });
    await world.clock.wait(500, world.signal);
    for (const { path, rest } of halves) appendFileSync(path, rest);
    expect((await asked).findings).toMatchObject([{ cause: one.cause, final: true }]);
  }, 20_000);

  it('follows until a port that is taken is seen, although nothing ends outright', async () => {
    const path = put(
      'head.log',
      '(APIServer pid=1) INFO 05-05 09:59:00 [api_server.py:1800] vLLM API server version 0.20.0\n',
    );
    const asked = ask({ log: [`head=${path}`], follow: true });
    await world.clock.wait(300, world.signal);
    appendFileSync(path, 'OSError: [Errno 98] Address already in use\n');
    expect((await asked).findings).toMatchObject([{ cause: 'port-already-in-use', node: 'head' }]);
  }, 20_000);

  it('answers with what it knows when it is left', async () => {
    const path = put('head.log', 'sglang says nothing yet\n');
    const asked = ask({ log: [`head=${path}`], follow: true });
    await world.clock.wait(300, new AbortController().signal);
    stop.abort();
    expect(await asked).toMatchObject({
      findings: [],
      engine: 'sglang',
      logs: [{ lines: 1, stage: 'start' }],
    });
  });

  it('tells how far a job came that is left while it loads', async () => {
    const path = put(
      'head.log',
      '[2026-11-29 20:03:20] server_args=ServerArgs(model_path="/m", tp_size=1)\n[2026-11-29 20:03:21] Load weight begin. avail mem=114.41 GB\n',
    );
    const asked = ask({ log: [`head=${path}`], follow: true });
    await world.clock.wait(300, new AbortController().signal);
    stop.abort();
    expect(await asked).toMatchObject({
      findings: [],
      answer: { cause: 'unknown', reached: [{ log: 'head', stage: 'weights', line: 2 }] },
    });
  });

  it('answers to logs of no engine, and to none that it knows', async () => {
    expect((await ask({ log: [put('plain.log', 'hello\n')] })).answer).toMatchObject({
      cause: 'unknown',
      atFault: 'head',
      evidence: [{ log: 'head', line: 1, text: 'hello' }],
      remedy: null,
    });
  });

  it('takes logs of any name, and quotes them under it, unaltered', async () => {
    const said = `\u001b[31mssh: connect to host 192.168.1.9 port 22: Connection timed out\u001b[0m\r\n`;
    const { answer } = await ask({ log: [`launcher=${put('l.txt', said)}`] });
    expect(answer).toMatchObject({ family: 'J' });
    expect(answer.evidence).toEqual([{ log: 'launcher', line: 1, text: said.replace('\r\n', '') }]);
  });

  it('takes logs that were rotated and packed, and says where one is cut', async () => {
    const text = Buffer.from('ssh: connect to host 192.168.1.9 port 22: Connection timed out\n');
    const { answer } = await ask({ log: [`launcher=${put('l.log.gz', gzipSync(text))}`] });
    expect(answer.evidence).toMatchObject([{ log: 'launcher', line: 1 }]);
    await expect(ask({ log: [`head=${put('c.gz', gzipSync(text).subarray(0, 30))}`] })).rejects.toThrow(
      /cannot be unpacked/,
    );
  });

  it('takes a folder of logs with facts beside them, and a facts file', async () => {
    const one = cases.find(({ cause }) => cause === 'port-already-in-use') ?? cases[0];
    if (one === undefined) throw new Error('no case');
    mkdirSync(join(folder, 'logs'));
    for (const [role, bytes] of Object.entries(one.logs)) put(`logs/${role}.log`, bytes);
    put(
      'logs/facts.yaml',
      'engine: sglang\nnodes:\n  head: {command: sglang serve, memory: {totalGiB: 121.7}, exit: 1}\n',
    );
    expect((await ask({ run: join(folder, 'logs') })).answer.cause).toBe(one.cause);
    put('bad.yaml', 'nodes:\n  head: {what: 1}\n');
    await expect(
      ask({ log: [join(folder, 'logs/head.log')], facts: join(folder, 'bad.yaml') }),
    ).rejects.toThrow(/bad\.yaml is no facts file/);
    await expect(ask({ run: join(folder, 'nothing') })).rejects.toThrow(/neither a run nor a file/);
  });

  it('refuses a missing file, a folder, and an unknown node', async () => {
    const refused = async (given: Readonly<Record<string, unknown>>): Promise<string> => {
      const error: unknown = await diagnoseRun.run(inputs.diagnose.parse(given), world).catch((one) => one);
      if (!(error instanceof UserError)) throw new Error('it was not refused', { cause: error });
      return `${error.message} / ${error.hint}`;
    };
    expect(await refused({ log: [join(folder, 'no.log')] })).toContain('there is no log file');
    expect(await refused({ log: [folder] })).toContain('not a regular file');
    expect(await refused({ log: ['spark-b:/x.log'] })).toContain('cluster file');
    put('cluster.yaml', 'cluster: c\nnodes: [{name: spark-a, ssh: spark-a.invalid}]\n');
    expect(await refused({ log: ['spark-z:/x.log'] })).toMatch(/no node spark-z.*nodes are: spark-a/s);
    expect(await refused({ log: [put('plain.log', 'hello\n')], run: '3' })).toContain('exclude');
    expect(await refused({ follow: true })).toContain('need --log');
  });
});

describe('a log file', () => {
  it('keeps its own line numbers where a progress bar redraws itself', () => {
    const file = fileLines();
    const first = file.take(Buffer.from('one\n10%\r20%\r30%\r\nthree\nfo'), 0);
    const rest = [...file.take(Buffer.from('ur'), 0), ...file.end(0)];
    expect([...first, ...rest].map(({ line, text }) => `${line} ${text}`)).toEqual([
      '1 one',
      '2 10%',
      '2 20%',
      '2 30%',
      '3 three',
      '4 four',
    ]);
    expect(file.count).toBe(4);
  });

  it('is understood without docker’s stamps, and quoted with them', () => {
    const file = fileLines();
    const [line] = file.take(Buffer.from('2026-11-29T15:00:32.123456789Z Killed\n'), 0);
    expect(line).toMatchObject({ text: 'Killed', at: Date.UTC(2026, 10, 29, 15, 0, 32, 123) });
    expect(line && file.raw(line)).toBe('2026-11-29T15:00:32.123456789Z Killed');
  });

  it('is one of a rank: by role, by number, by order; on a node or here', () => {
    expect(logSources(['worker=b.log', 'head=spark-a:/var/log/a.log', 'worker2=./c:d.log'])).toEqual([
      { rank: 0, node: 'spark-a', path: '/var/log/a.log', name: 'spark-a', text: 'spark-a:/var/log/a.log' },
      { rank: 1, node: undefined, path: 'b.log', name: 'worker', text: 'b.log' },
      { rank: 2, node: undefined, path: './c:d.log', name: 'worker2', text: './c:d.log' },
    ]);
    expect(logSources(['a.log', 'b.log']).map(({ rank }) => rank)).toEqual([0, 1]);
    expect(() => logSources(['head=a', 'head=b'])).toThrow('twice');
  });

  it('of nothing known names no engine', () => {
    expect(recogniseEngine([[{ text: 'hello' }]])).toBeUndefined();
  });
});
