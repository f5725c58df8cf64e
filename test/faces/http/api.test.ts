import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answers } from '../../../src/faces/http/answers.ts';
import { openStream } from './read-stream.ts';
import { askedRun, openRig, type Rig, started } from './rig.ts';

const KEY = 'southern "dark" \\ ocean';
let rig: Rig;
beforeAll(async () => {
  rig = await openRig({ env: { TINY_KEY: KEY } });
});
afterAll(() => rig.close());

describe('the API', () => {
  it('shows the cluster and the recipes beside its file, and no other file', async () => {
    writeFileSync(join(rig.folder, 'other.yaml'), 'no: recipe\n');
    mkdirSync(join(rig.folder, 'more'), { recursive: true });
    writeFileSync(join(rig.folder, 'more', 'two.yaml'), readFileSync(join(rig.folder, 'recipe.yaml')));
    symlinkSync('/etc/hostname', join(rig.folder, 'link.yaml'));
    expect(answers.cluster.parse((await rig.get('/api/cluster')).json())).toMatchObject({
      cluster: 'sparks',
      scope: 'write',
      nodes: [{ name: 'spark-a' }],
    });
    expect((await rig.get('/api/recipes')).json()).toEqual({
      recipes: [
        { file: 'more/two.yaml', recipe: 'tiny', model: 'Tiny/Tiny' },
        { file: 'recipe.yaml', recipe: 'tiny', model: 'Tiny/Tiny' },
      ],
    });
    const link = await rig.post('/api/operations/plan', { recipe: 'link.yaml' });
    expect(link.status).toBe(422);
    expect(link.text).toContain('no recipe beside the cluster file');
  });

  it('shows runs of another process by their fold, and their events as a list', async () => {
    const run = askedRun(rig.journal);
    const state = answers.run.parse((await rig.get(`/api/runs/${run}`)).json());
    expect(state).toMatchObject({ run, phase: 'waiting', worksHere: false, asked: { plan: 'abcd' } });
    expect(state.now.sentence).toContain('spark-a');
    const list = (await rig.get(`/api/runs/${run}/events`)).json();
    expect(list).toEqual(JSON.parse(JSON.stringify(rig.journal.read(run))));
    expect((await rig.get(`/api/runs/${run}/events?after=1&limit=1`)).json()).toMatchObject([{ seq: 2 }]);
    const rows = answers.runs.parse((await rig.get('/api/runs?limit=1')).json());
    expect(rows.runs).toMatchObject([{ run, operation: 'up' }]);
    expect((await rig.post(`/api/runs/${run}/end`, {})).json()).toMatchObject({ code: 'works-elsewhere' });
  });

  it('writes the answer of a person where a run of any process finds it: ids that are asked for, and once', async () => {
    const run = askedRun(rig.journal);
    const answer = (body: object) => rig.post('/api/consent', { run, ...body });
    expect((await answer({ allowed: ['ffff'] })).json()).toMatchObject({ code: 'bad-input' });
    expect((await answer({ allowed: [] })).status).toBe(422);
    expect((await answer({ allowed: ['7f3a'], plan: 'dcba' })).json()).toMatchObject({
      code: 'plan-changed',
      status: 409,
    });
    expect(rig.journal.read(run)).toHaveLength(2);
    expect((await answer({ allowed: ['7f3a'], plan: 'abcd' })).json()).toEqual({
      text: `1 step of run ${run} allowed`,
    });
    expect(rig.journal.read(run).at(-1)).toMatchObject({
      type: 'consent-given',
      steps: ['7f3a'],
      by: expect.stringMatching(/through the API on /),
    });
    expect((await answer({ allowed: ['7f3a'] })).json()).toMatchObject({
      detail: expect.stringContaining('was answered already'),
    });
    const refused = askedRun(rig.journal);
    await rig.post('/api/consent', { run: refused, refused: ['7f3a'] });
    expect(rig.journal.read(refused).at(-1)).toMatchObject({ steps: [], refused: ['7f3a'] });
  });

  it('starts a run, says which at once, and lets it be followed to its end', async () => {
    const begun = await rig.post('/api/operations/up', { recipe: 'recipe.yaml' });
    expect(begun.status).toBe(202);
    const { run } = answers.begun.parse(begun.json());
    expect(begun.headers.location).toBe(`/api/runs/${run}`);
    const stream = await openStream(rig.port, `/api/runs/${run}/events`, {
      Authorization: `Bearer ${rig.addresses.read}`,
    });
    await stream.ended;
    // Nobody answers on that node, and that is how the run ends.
    expect(JSON.parse(stream.messages.at(-1)?.data ?? '')).toMatchObject({
      type: 'run-ended',
      outcome: 'not-serving',
    });
    const bad = await rig.post('/api/operations/up', { recipe: 'other.yaml' });
    expect(bad.status).toBe(422);
    expect(bad.json()).toMatchObject({ code: 'bad-recipe-file' });
  });

  it('answers what a terminal would, as a report with its exit code', async () => {
    const answer = answers.report.parse((await rig.post('/api/operations/status', {})).json());
    expect(answer).toMatchObject({ exit: 1, report: { kind: 'status', unreached: [{ node: 'spark-a' }] } });
    const look = answers.look.parse((await rig.get('/api/look')).json());
    expect(look.facts).toMatchObject([{ node: 'spark-a', reached: false }]);
    const chat = await rig.post('/api/operations/chat', { prompt: 'hello' });
    expect(chat.json()).toMatchObject({ code: 'not-serving', status: 503 });
    expect((await rig.get('/api/metrics-of-engine')).json()).toMatchObject({ samples: [] });
  });

  it('takes known secret values out of whatever it sends', async () => {
    writeFileSync(
      join(rig.folder, 'keyed.yaml'),
      `${readFileSync(join(rig.folder, 'recipe.yaml'), 'utf8')}serve: {apiKey: {env: TINY_KEY}}\n`,
    );
    // From here on its value is known.
    await rig.post('/api/operations/up', { recipe: 'keyed.yaml' });
    const run = rig.journal.newRun();
    rig.journal.append(run, started);
    rig.journal.append(run, { type: 'note', level: 'info', node: undefined, text: `Bearer ${KEY}` });
    rig.journal.append(run, { type: 'run-ended', outcome: 'stopped', why: KEY, exit: 0, owed: [] });
    for (const path of [`/api/runs/${run}`, `/api/runs/${run}/events`, '/api/runs']) {
      const { text, status } = await rig.get(path);
      expect(status).toBe(200);
      expect(text).not.toMatch(/southern|ocean/);
    }
    const stream = await openStream(rig.port, `/api/runs/${run}/events`, {
      Authorization: `Bearer ${rig.addresses.read}`,
    });
    await stream.ended;
    expect(stream.messages).toHaveLength(3);
    expect(JSON.stringify(stream.messages)).not.toMatch(/southern|ocean/);
  });

  it('compresses what is long for who takes it', async () => {
    const run = rig.journal.newRun();
    for (let at = 0; at < 50; at += 1)
      rig.journal.append(run, { type: 'note', level: 'info', node: undefined, text: `line ${at}` });
    const headers = { Authorization: `Bearer ${rig.addresses.read}`, 'Accept-Encoding': 'br' };
    const bytes = await fetch(`${rig.addresses.base}/api/runs/${run}/events`, { headers });
    expect(bytes.headers.get('content-encoding')).toBe('br');
    expect(await bytes.json()).toHaveLength(50);
    expect((await rig.get(`/api/runs/${run}/events`)).headers['content-encoding']).toBeUndefined();
  });

  it('gives Prometheus numbers, and none for what is unknown', async () => {
    const { text, headers } = await rig.get('/metrics');
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(text).toContain('firstlight_node_reached{node="spark-a"} 0\n');
    expect(text).not.toContain('firstlight_node_memory');
    expect(text).toMatch(/firstlight_requests_total\{status="200"\} \d+/);
    for (const line of text.trim().split('\n'))
      expect(line).toMatch(
        /^(# (HELP|TYPE) firstlight_\w+ .+|firstlight_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.e+-]+)$/,
      );
  });
});

describe('the document of the API', () => {
  const document = z.looseObject({
    openapi: z.literal('3.1.0'),
    paths: z.record(z.string(), z.record(z.string(), z.looseObject({ operationId: z.string() }))),
  });

  it('tells every address that there is, each once, and every operation', async () => {
    const { paths } = document.parse((await rig.get('/api/openapi.json')).json());
    const ids = Object.values(paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
    expect(new Set(ids).size).toBe(ids.length);
    for (const name of ['plan', 'up', 'check', 'status', 'down', 'restore', 'chat', 'consent', 'diagnose'])
      expect(Object.keys(paths)).toContain(`/api/operations/${name}`);
    for (const path of ['/api/cluster', '/api/runs', '/api/runs/{run}/events', '/api/consent', '/metrics'])
      expect(Object.keys(paths)).toContain(path);
  });
});

describe('the page', () => {
  it('is a placeholder without a build, and its views are one page', async () => {
    for (const path of ['/', '/runs', '/run/14?at=3']) {
      const { status, headers, text } = await rig.get(path);
      expect(status).toBe(200);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['cache-control']).toBe('no-cache');
      expect(text).toContain('firstlight');
    }
  });

  it('is served from its build: what has a hash for ever, the rest asked for anew, nothing beside it', async () => {
    const page = join(rig.folder, 'built');
    mkdirSync(join(page, 'assets'), { recursive: true });
    writeFileSync(join(page, 'index.html'), '<!doctype html><title>built</title>');
    writeFileSync(join(page, 'assets', 'main-Ab12Cd34.js'), `export const a = '${'a'.repeat(3000)}';`);
    writeFileSync(join(page, 'theme.js'), 'a');
    const built = await openRig({ page });
    try {
      expect((await built.get('/run/3')).text).toContain('built');
      const headers = { Authorization: `Bearer ${built.addresses.read}`, 'Accept-Encoding': 'gzip, br' };
      const script = await fetch(`${built.addresses.base}/assets/main-Ab12Cd34.js`, { headers });
      expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(script.headers.get('content-encoding')).toBe('br');
      expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
      expect(await script.text()).toContain('aaaa');
      expect((await built.get('/theme.js')).headers['cache-control']).toBe('no-cache');
      expect((await built.get('/package.json')).status).toBe(404);
      expect((await built.get('/assets/')).status).toBe(404);
    } finally {
      await built.close();
    }
  });
});
