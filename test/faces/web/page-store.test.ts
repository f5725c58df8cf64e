/// <reference lib="dom" />
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { blank } from '../../../src/domain/run-state.ts';
import { HERE_NOW } from '../../../src/faces/web/data/address.ts';
import { PageStore } from '../../../src/faces/web/data/page.ts';

type Answer = { readonly status: number; readonly body: unknown };

const CLUSTER = { status: 200, body: { cluster: 'sparks', newestRun: '3', readOnly: false, scope: 'write' } };
const RUNS = { status: 200, body: { runs: [{ run: '3', outcome: 'open' }] } };
const NONE = { status: 200, body: { runs: [] } };
const RUN = { status: 200, body: { ...blank, run: '3', startedAt: '2026-11-30T10:00:00Z' } };
const LOOK = { status: 200, body: { at: '2026-11-30T10:00:00Z', facts: [] } };
const refused = (status: number, detail: string): Answer => ({ status, body: { detail, hint: '' } });

/** What the server answers by path; what is left out it does not know. */
let answers: Record<string, Answer | Promise<Answer>>;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('document', { hidden: false, addEventListener() {}, removeEventListener() {} });
  vi.stubGlobal('history', { pushState() {}, replaceState() {} });
  vi.stubGlobal('requestAnimationFrame', () => 1);
  vi.stubGlobal(
    'EventSource',
    class {
      addEventListener(): void {}
      close(): void {}
    },
  );
  vi.stubGlobal('fetch', async (path: string) => {
    const { status, body } = (await answers[path]) ?? refused(404, `there is no ${path}`);
    return new Response(JSON.stringify(body), { status });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** The page's memory at an address, once all that it asked at first is answered. */
async function openAt(pathname: string, known: typeof answers): Promise<PageStore> {
  answers = known;
  vi.stubGlobal('location', { pathname, search: '' });
  const store = new PageStore(() => {});
  void store.start();
  await vi.advanceTimersByTimeAsync(0);
  return store;
}

test('it goes on reading while the cluster is refused and the runs are not answered, then shows the newest', async () => {
  let answer = (_: Answer): void => {};
  const late = new Promise<Answer>((resolve) => {
    answer = resolve;
  });
  const store = await openAt('/', {
    '/api/cluster': refused(422, 'cluster.yaml cannot be read'),
    '/api/runs': late,
    '/api/runs/3': RUN,
  });
  expect(store.page).toMatchObject({ reading: true, connection: { state: 'connecting' } });
  expect(store.page.refused?.message).toBe('cluster.yaml cannot be read');
  answer(RUNS);
  await vi.advanceTimersByTimeAsync(0);
  expect(store.page).toMatchObject({ reading: false, live: { run: '3' } });
});

test('it goes on reading where everything is refused, until something is answered', async () => {
  const no = refused(401, 'this page has no token');
  const store = await openAt('/', { '/api/cluster': no, '/api/runs': no, '/api/look': no });
  await vi.advanceTimersByTimeAsync(11_000);
  expect(store.page).toMatchObject({ reading: true, connection: { state: 'connecting' }, runs: undefined });
  expect(store.page.refused?.message).toBe('this page has no token');
  answers = { '/api/cluster': CLUSTER, '/api/runs': NONE, '/api/look': LOOK };
  answers['/api/cluster'] = { status: 200, body: { ...CLUSTER.body, newestRun: undefined } };
  await vi.advanceTimersByTimeAsync(5000);
  expect(store.page).toMatchObject({ reading: false, connection: { state: 'live' }, runs: [] });
});

test('a run that does not exist stays refused whatever else is answered, until a person goes elsewhere', async () => {
  const store = await openAt('/run/999', {
    '/api/cluster': CLUSTER,
    '/api/runs': RUNS,
    '/api/runs/3': RUN,
    '/api/runs/999': refused(404, 'there is no run 999'),
    '/api/look': LOOK,
  });
  await vi.advanceTimersByTimeAsync(11_000);
  expect(store.page.look).toEqual(LOOK.body);
  expect(store.page.runs).toHaveLength(1);
  expect(store.page).toMatchObject({ unread: '999', refused: { message: 'there is no run 999' } });
  store.go({ ...HERE_NOW, run: '3' });
  expect(store.page).toMatchObject({ unread: undefined, refused: undefined, reading: true });
  await vi.advanceTimersByTimeAsync(0);
  expect(store.page).toMatchObject({ unread: undefined, refused: undefined, live: { run: '3' } });
});

test('a run that cannot be read leaves nothing of the run before it in sight', async () => {
  const store = await openAt('/run/3', { '/api/cluster': CLUSTER, '/api/runs': RUNS, '/api/runs/3': RUN });
  expect(store.page.shown.run).toBe('3');
  store.go({ ...HERE_NOW, run: '999' });
  await vi.advanceTimersByTimeAsync(0);
  expect(store.page).toMatchObject({ unread: '999', shown: { run: '' }, live: { run: '' } });
});

test('a refusal of something else is shown before that of the run, and gives way to it again', async () => {
  const known = {
    '/api/cluster': CLUSTER,
    '/api/runs': RUNS,
    '/api/runs/999': refused(404, 'there is no run 999'),
    '/api/look': LOOK,
  };
  const store = await openAt('/run/999', known);
  answers = { ...known, '/api/runs': refused(503, 'the journal is locked') };
  await vi.advanceTimersByTimeAsync(5000);
  expect(store.page.refused?.message).toBe('the journal is locked');
  answers = known;
  await vi.advanceTimersByTimeAsync(5000);
  expect(store.page.refused?.message).toBe('there is no run 999');
});

test('an answer for a run that a person has left says nothing about the one that is shown', async () => {
  let answer = (_: Answer): void => {};
  const late = new Promise<Answer>((resolve) => {
    answer = resolve;
  });
  const store = await openAt('/run/999', {
    '/api/cluster': CLUSTER,
    '/api/runs': RUNS,
    '/api/runs/3': RUN,
    '/api/runs/999': late,
    '/api/look': LOOK,
  });
  store.go({ ...HERE_NOW, run: '3' });
  await vi.advanceTimersByTimeAsync(0);
  answer(refused(404, 'there is no run 999'));
  await vi.advanceTimersByTimeAsync(0);
  expect(store.page).toMatchObject({ unread: undefined, refused: undefined, live: { run: '3' } });
});
