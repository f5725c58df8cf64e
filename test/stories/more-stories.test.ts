import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { LogsReport, StatusReport } from '../../src/domain/report.ts';
import { downAfterEach, type Ended, endOf, FAST, type Lab, liveThrough, of, openLab } from './lab.ts';

downAfterEach();

const LIMIT = 240_000;
const UP = ['up', 'recipe.yaml', '--json'];

/** Says that the run is over, and waits for what the story has coming then. */
async function untilItHappened(lab: Lab): Promise<void> {
  writeFileSync(lab.file('served'), '');
  for (let tries = 0; tries < 600; tries += 1) {
    if (read(lab.file('turns')).includes('serving')) return;
    await wait(50);
  }
  throw new Error('nothing happened');
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not there yet.
    return '';
  }
}

function statusOf(ended: Ended): StatusReport {
  return JSON.parse(ended.stdout);
}

/** Containers of ours that run on each host. */
async function running(lab: Lab): Promise<readonly string[]> {
  const hosts = lab.story.hosts.map(({ name }) => name);
  const lists = await Promise.all(hosts.map((host) => lab.on(host, "docker ps --format '{{.Names}}'")));
  return lists.flatMap(({ stdout }) => stdout.split('\n').filter((name) => name.startsWith('firstlight-')));
}

describe('before anything serves', () => {
  it(
    'comes-back: what is started again by something unseen is stopped twice, and then that is the finding',
    async () => {
      const told = await liveThrough('comes-back', { env: FAST });
      expect(told.code).toBe(0);
      expect(endOf(told.events)).toMatchObject({ outcome: 'not-serving', exit: 1 });
      const stops = of(told.events, 'step-ended').filter(({ kind }) => kind === 'stop-process');
      expect(stops.map(({ result }) => result)).toEqual(['done', 'done']);
      // Each time it was another process, and each was allowed by itself.
      expect(new Set(of(told.events, 'consent-given').flatMap(({ steps }) => steps)).size).toBe(2);
      const waits = of(told.events, 'step-ended').filter(({ kind }) => kind === 'await-memory');
      for (const one of waits) expect(one.text).toMatch(/llama-server is there again/);
      expect(of(told.events, 'finding')).toMatchObject([
        {
          cause: 'leftover-process-holds-gpu-memory',
          node: 'spark-b',
          final: true,
          title: 'llama-server on spark-b came back each time it was stopped',
        },
      ]);
      expect(of(told.events, 'rank-started')).toEqual([]);
    },
    LIMIT,
  );

  it(
    'engine-fallback: an image without its engine has no remedy, and the next engine serves',
    async () => {
      const told = await liveThrough('engine-fallback', { env: FAST });
      expect(told.code).toBe(0);
      expect(of(told.events, 'finding').filter(({ final }) => final)).toMatchObject([
        { cause: 'package-missing-in-image' },
      ]);
      const [changed] = of(told.events, 'engine-changed');
      expect(changed).toMatchObject({ from: 'sglang', to: 'vllm' });
      expect(changed?.why).toContain('sglang has no remedy left');
      expect(of(told.events, 'remedy-applied')).toEqual([]);
      expect(of(told.events, 'serving')[0]).toMatchObject({ engine: 'vllm', answer: '204' });
    },
    LIMIT,
  );

  it(
    'model-unknown: an engine without the model’s architecture has no remedy, and the next engine serves',
    async () => {
      const lab = await openLab('model-unknown');
      const { events, code } = await lab.run(UP);
      expect(code).toBe(0);
      const [finding] = of(events, 'finding').filter(({ final }) => final);
      expect(finding).toMatchObject({ cause: 'model-not-supported-by-engine', stage: 'weights' });
      expect(finding?.quotes[0]?.text).toContain("['Qwen3_5MoeForConditionalGeneration'] are not supported");
      expect(of(events, 'remedy-applied')).toEqual([]);
      expect(of(events, 'engine-changed')).toMatchObject([{ from: 'sglang', to: 'vllm' }]);
      expect(of(events, 'serving')).toMatchObject([{ engine: 'vllm', answer: '204' }]);
    },
    LIMIT,
  );

  it(
    'misleading-smi: memory that nvidia-smi shows and the host has not is no memory, and what holds it is named',
    async () => {
      const told = await liveThrough('misleading-smi', { env: FAST });
      expect(told.code).toBe(0);
      const [finding] = of(told.events, 'finding');
      expect(finding).toMatchObject({ cause: 'insufficient-free-memory-at-startup', node: 'spark-b' });
      expect(finding?.why).toMatch(/What holds it now: .*GiB of page cache are dirty, locked or in use/);
      expect(of(told.events, 'rank-started')).toEqual([]);
    },
    LIMIT,
  );

  it(
    'model-missing: nothing is launched, and the copy command is said as it must be typed',
    async () => {
      const lab = await openLab('model-missing');
      const ended = await lab.run(UP);
      expect(ended.code).toBe(1);
      const [finding] = of(ended.events, 'finding');
      expect(finding).toMatchObject({
        cause: 'model-path-missing-on-worker',
        node: 'spark-b',
        role: 'worker',
      });
      const path = '/home/aurora/models/Qwen3.5-122B-A10B-FP8';
      expect(finding?.advice[0]).toMatch(
        new RegExp(`^On spark-a: rsync .*${path}/ .*@192\\.168\\.200\\.13:${path}/`),
      );
      expect(of(ended.events, 'step-started')).toEqual([]);
      expect(endOf(ended.events)).toMatchObject({ outcome: 'not-serving', exit: 1 });
      expect((await lab.run(['plan', 'recipe.yaml'])).code).toBe(1);
    },
    LIMIT,
  );
});

describe('a link that is lost while the ranks load', () => {
  it(
    'and comes back: following goes on at its byte, and it serves',
    async () => {
      const lab = await openLab('lost-link');
      const ended = await lab.run(UP);
      expect(ended.code).toBe(0);
      const told = of(ended.events, 'note').filter(({ node }) => node === 'spark-b');
      expect(told.map(({ text }) => text).join('\n')).toContain('Following goes on when it answers again.');
      expect(of(ended.events, 'finding')).toEqual([]);
      const logs = await lab.run(['logs', '--rank', '1', '--json']);
      const report: LogsReport = JSON.parse(logs.stdout);
      const kept = report.lines.map(({ text }) => text);
      const { stdout } = await lab.on('spark-b', 'cat .firstlight/*/ranks/*-r1/log');
      const there = stdout.split('\n').map((line) => line.replace(/^\S+Z /, ''));
      // Neither lost nor told twice, up to where the run ended.
      expect(kept.length).toBeGreaterThan(20);
      const plain = (lines: readonly string[]): string =>
        lines
          .join('\n')
          .replace(/\u001b\[[0-9;]*[A-Za-z]/g, '')
          .replace(/\r/g, '\n')
          .replace(/\n+/g, '\n');
      expect(plain(there).startsWith(plain(kept).slice(0, -200))).toBe(true);
    },
    LIMIT,
  );

  it(
    'and stays away: the finding names the node, and nothing is launched again',
    async () => {
      const lab = await openLab('link-gone');
      const ended = await lab.run(UP);
      expect(ended.code).toBe(1);
      const final = of(ended.events, 'finding').at(-1);
      expect(final).toMatchObject({ node: 'spark-b', rank: 1, role: 'worker', final: true });
      expect(final?.title).toContain('spark-b');
      expect(of(ended.events, 'rank-started')).toHaveLength(2);
      const status = await lab.run(['status', '--json']);
      expect(statusOf(status).unreached).toMatchObject([{ node: 'spark-b' }]);
    },
    LIMIT,
  );
});

describe('while it serves', () => {
  it(
    'the head restarts: status says what is left, and up brings up both again, once',
    async () => {
      const lab = await openLab('head-rebooted');
      expect((await lab.run(UP)).code).toBe(0);
      await untilItHappened(lab);
      const status = await lab.run(['status', '--json']);
      expect(status.code).toBe(1);
      const [service] = statusOf(status).services;
      expect(service).toMatchObject({ serving: false });
      expect(service?.ranks.find(({ rank }) => rank === 0)).toMatchObject({ state: 'ended' });
      const again = await lab.run(UP);
      expect(again.code).toBe(0);
      expect(endOf(again.events)).toMatchObject({ outcome: 'serving' });
      const stopped = of(again.events, 'step-ended').filter(({ kind }) => kind === 'stop-rank');
      expect(stopped).toMatchObject([{ node: 'spark-b', result: 'done' }]);
      expect(of(again.events, 'rank-started').map(({ rank }) => rank)).toEqual([1, 0]);
      expect(await running(lab)).toEqual(['firstlight-qwen3.5-122b-r0', 'firstlight-qwen3.5-122b-r1']);
      expect((await lab.run(['status'])).code).toBe(0);
    },
    LIMIT,
  );

  it(
    'the worker’s rank is ended: status is 1 whatever the head says, and up stops the half and launches both',
    async () => {
      const lab = await openLab('worker-killed');
      expect((await lab.run(UP)).code).toBe(0);
      await untilItHappened(lab);
      const status = await lab.run(['status', '--json']);
      expect(status.code).toBe(1);
      const [service] = statusOf(status).services;
      expect(service).toMatchObject({ serving: false });
      expect(service?.ranks.find(({ rank }) => rank === 1)).toMatchObject({
        state: 'ended',
        node: 'spark-b',
      });
      const again = await lab.run(UP);
      expect(endOf(again.events)).toMatchObject({ outcome: 'serving', exit: 0 });
      const started = of(again.events, 'rank-started');
      expect(started.map(({ rank, followed }) => ({ rank, followed }))).toEqual([
        { rank: 1, followed: false },
        { rank: 0, followed: false },
      ]);
      expect(await running(lab)).toEqual(['firstlight-qwen3.5-122b-r0', 'firstlight-qwen3.5-122b-r1']);
    },
    LIMIT,
  );
});

describe('a pair that somebody launched by hand', () => {
  it(
    'is diagnosed from its logs on the nodes, over SSH',
    async () => {
      const lab = await openLab('clean-start');
      const sample = (role: string): string =>
        readFileSync(`test/samples/logs/gloo-hostname-resolves-to-loopback/${role}.log`, 'utf8');
      await lab.on('spark-a', 'cat >sglang-head.log', sample('head'));
      await lab.on('spark-b', 'cat >sglang-worker.log', sample('worker'));
      const logs = [
        ...['--log', 'head=spark-a:/home/aurora/sglang-head.log'],
        ...['--log', 'worker=spark-b:sglang-worker.log'],
      ];
      const ended = await lab.run(['diagnose', ...logs, '--json']);
      expect(ended.stderr).toBe('');
      expect(ended.code).toBe(0);
      const answer: { readonly cause: string; readonly evidence: readonly unknown[] } = JSON.parse(
        ended.stdout,
      );
      expect(answer.cause).toBe('loopback-address-advertised');
      expect(answer.evidence.length).toBeGreaterThan(0);
      const absent = await lab.run(['diagnose', '--log', 'head=spark-b:/var/log/none.log']);
      expect(absent.code).toBe(2);
      expect(absent.stderr).toContain('there is no such file');
      expect((await lab.run(['diagnose', '--log', 'head=spark-z:/x.log'])).code).toBe(2);
      // Nothing of ours stays behind.
      expect((await lab.on('spark-b', 'ls -A .firstlight 2>/dev/null')).stdout).toBe('');
    },
    LIMIT,
  );
});
