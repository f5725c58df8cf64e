import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { evidenceOfTexts } from '../../src/diagnosis/offline.ts';
import { verdictOf } from '../../src/diagnosis/verdict.ts';
import { answerTo, readHealthy } from './corpus.ts';

const SAMPLES = new URL('../samples/', import.meta.url);
const HEALTHY = new Map(readHealthy());
const healthy = (name: string, log = 'head'): string => String(HEALTHY.get(name)?.[log]);
const GOOD = { vllm: healthy('vllm-single'), sglang: healthy('sglang-single') };

const schema = z.array(
  z.object({ cause: z.string(), at: z.string(), logs: z.record(z.string(), z.string()) }),
);
/** Ways to fail that one rank's log shows; what is no failure, or goes on while it serves, ends no start. */
const failures = readdirSync(new URL('lines/', SAMPLES))
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    schema
      .parse(parse(readFileSync(new URL(`lines/${file}`, SAMPLES), 'utf8')))
      .map((one, index) => ({ ...one, name: `${file} ${index + 1}: ${one.cause}` })),
  )
  .filter(({ logs, at }) => Object.keys(logs).join() === 'head' && at !== 'none');

const OOM = `(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] EngineCore failed to start.
(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] ValueError: Free memory on device cuda:0 (71.40/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB).
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
`;
const vllmUntil = (stage: string): string => GOOD.vllm.slice(0, GOOD.vllm.indexOf(stage));
const SYSTEMD =
  'Nov 29 10:01:05 spark-a systemd[1]: vllm.service: Scheduled restart job, restart counter is at 1.\n';

describe('a log that holds several starts', () => {
  it.each(failures.map((one) => [one.name, one] as const))(
    '%s, then one that serves: it serves now, and that is what the first failed of',
    (_name, { cause, logs: { head = '' } }) => {
      for (const good of [GOOD.vllm, GOOD.sglang]) {
        const said = answerTo({ head: `${head.trimEnd()}\n${good}` });
        expect({ cause: said.cause, earlier: said.earlier?.cause }).toEqual({
          cause: 'no-fault',
          earlier: cause,
        });
        const lines = `${head.trimEnd()}\n${good}`.split('\n');
        for (const { line, text } of said.earlier?.quotes ?? []) expect(lines[line - 1]).toBe(text);
      }
    },
  );

  it('tells the failure of memory after which systemd started it anew', () => {
    const start = vllmUntil('Starting to load model');
    const said = answerTo({ head: `${start}\n${OOM}${SYSTEMD}${GOOD.vllm}` });
    expect(said).toMatchObject({
      cause: 'no-fault',
      earlier: { cause: 'page-cache-hides-unified-memory', node: 'head' },
    });
  });

  it('tells of a loop of failures that ended', () => {
    const failing = `${vllmUntil('Starting to load model')}\n${OOM}${SYSTEMD}`;
    const said = answerTo({ head: `${failing}${failing}${failing}${GOOD.vllm}` });
    expect(said).toMatchObject({ cause: 'no-fault', earlier: { cause: 'page-cache-hides-unified-memory' } });
  });

  it('is told as the failure where the last start fails too, or has not come so far', () => {
    const failing = `${vllmUntil('Starting to load model')}\n${OOM}`;
    expect(answerTo({ head: `${GOOD.vllm}${failing}` }).cause).toBe('page-cache-hides-unified-memory');
    expect(answerTo({ head: `${failing}${failing}` }).cause).toBe('page-cache-hides-unified-memory');
    expect(answerTo({ head: `${failing}${vllmUntil('Loading weights took')}` }).cause).toBe(
      'page-cache-hides-unified-memory',
    );
  });

  it('is told by its last start where that failed of something else, and the one before beside it', () => {
    const first = `${vllmUntil('Starting to load model')}\n${OOM}`;
    const second = `${vllmUntil('Starting to load model')}\nOSError: [Errno 98] Address already in use\n`;
    expect(answerTo({ head: first + second })).toMatchObject({
      cause: 'port-already-in-use',
      earlier: { cause: 'page-cache-hides-unified-memory' },
    });
    expect(answerTo({ head: second + first })).toMatchObject({
      cause: 'page-cache-hides-unified-memory',
      earlier: { cause: 'port-already-in-use' },
    });
    expect(answerTo({ head: first + first }).earlier).toBeUndefined();
  });

  it('is not told by a failure that is over where the last start ended while it served', () => {
    const told = { facts: [], launched: [], exits: { head: 137 } };
    const head = Buffer.from(`${vllmUntil('Starting to load model')}\n${OOM}${GOOD.vllm}`);
    const said = verdictOf(evidenceOfTexts({ head }, told));
    expect(said.cause).not.toBe('page-cache-hides-unified-memory');
    expect(said).toMatchObject({
      finding: { stage: 'serving' },
      earlier: { cause: 'page-cache-hides-unified-memory' },
    });
  });

  it('of a pair whose ranks were both started anew', () => {
    const worker = `${healthy('vllm-pair', 'worker').split('\n').slice(0, 4).join('\n')}\n(Worker_TP1 pid=31) ERROR 11-29 10:00:20 [multiproc_executor.py:800] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.10 GiB is free.\n`;
    const head = `${healthy('vllm-pair').split('\n').slice(0, 12).join('\n')}\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n`;
    const said = answerTo({
      head: head + healthy('vllm-pair'),
      worker: worker + healthy('vllm-pair', 'worker'),
    });
    expect(said).toMatchObject({ cause: 'no-fault', earlier: { node: 'worker', family: 'A' } });
  });

  it('says of a start that ended without a word no more than that', () => {
    const said = answerTo({ head: `${vllmUntil('Loading weights took')}\n${GOOD.vllm}` });
    expect(said).toMatchObject({ cause: 'no-fault', earlier: { cause: 'unknown', stage: 'weights' } });
    expect(said.earlier?.title).toContain('ended while loading weights');
  });

  it('has nothing to tell of a start that was stopped on request', () => {
    const stopped = `${GOOD.vllm}(APIServer pid=1) INFO 05-05 11:00:00 [launcher.py:80] [shutdown] API server: shutdown triggered signal=SIGTERM\n(APIServer pid=1) INFO:     Application shutdown complete.\n`;
    expect(answerTo({ head: stopped + GOOD.vllm })).toMatchObject({ cause: 'no-fault', finding: undefined });
    expect(answerTo({ head: stopped + GOOD.vllm }).earlier).toBeUndefined();
  });

  it.each([...HEALTHY])('is none of the healthy ones: %s', (_name, logs) => {
    const texts = Object.fromEntries(Object.entries(logs).map(([log, bytes]) => [log, String(bytes)]));
    expect(answerTo(texts).earlier).toBeUndefined();
  });

  it('is no log in which a user writes of another server’s start', () => {
    const record = `[2026-11-29 20:04:30] Receive: obj=GenerateReqInput(text="what is this:\n${OOM}[2026-11-29 20:05:00] server_args=ServerArgs(model_path='/m')\n", sampling_params={})\n`;
    const said = answerTo({ head: GOOD.sglang + record });
    expect(said.cause).toBe('no-fault');
    expect(said.earlier).toBeUndefined();
  });
});
