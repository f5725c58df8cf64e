import type { ClusterInfo } from '../../../domain/cluster.ts';
import type { EngineSample } from '../../../domain/engine-sample.ts';
import type { Event } from '../../../domain/event.ts';
import type { NodeFacts } from '../../../domain/facts.ts';
import type { LogFilter, LogStrip, LogWindow } from '../../../domain/log-rows.ts';
import type { Report, RunsReport } from '../../../domain/report.ts';
import type { RunState } from '../../../domain/run-state.ts';

export type RunSummary = RunsReport['runs'][number];

/** Which lines of which run are rows; folds that lie open as ATTEMPT-RANK-LINE. */
export type RunLog = Omit<LogFilter, 'fold' | 'open' | 'stage'> & {
  readonly run: string;
  readonly stage: string | undefined;
  readonly open: readonly string[];
};

type LogQuery = RunLog & {
  /** First row; the tail where left out. */
  readonly from?: number;
  readonly count: number;
  /** ATTEMPT-RANK-LINE: the window that begins with that row. */
  readonly around?: string;
};

/** What the server would not do, in its words (problem+json). */
export class Refused extends Error {
  readonly status: number;
  readonly hint: string;

  constructor(status: number, message: string, hint: string) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export async function getCluster(): Promise<ClusterInfo> {
  return get('/api/cluster');
}

export async function getRuns(): Promise<readonly RunSummary[]> {
  return (await get<{ readonly runs: readonly RunSummary[] }>('/api/runs')).runs;
}

/** The run as its events fold, without the events. */
export async function getRun(run: string): Promise<RunState> {
  return get(`/api/runs/${encodeURIComponent(run)}`);
}

/** All events of a run as one compressed list: for replay. */
export async function getEvents(run: string): Promise<readonly Event[]> {
  return get(`/api/runs/${encodeURIComponent(run)}/events`);
}

export async function getLog(query: LogQuery): Promise<LogWindow> {
  const params = filterParams(query);
  params.set('count', String(query.count));
  if (query.from !== undefined) params.set('from', String(query.from));
  if (query.around !== undefined) params.set('around', query.around);
  return get(`/api/runs/${encodeURIComponent(query.run)}/logs?${params}`);
}

function filterParams(filter: RunLog): URLSearchParams {
  const params = new URLSearchParams({ fold: 'yes' });
  if (filter.open.length > 0) params.set('open', filter.open.join(','));
  if (filter.ranks.length > 0) params.set('ranks', filter.ranks.join(','));
  if (filter.stage !== undefined) params.set('stage', filter.stage);
  if (filter.attempt !== undefined) params.set('attempt', String(filter.attempt));
  if (filter.level !== undefined) params.set('level', filter.level);
  if (filter.q !== '') params.set('q', filter.q);
  return params;
}

export async function getLogStrip(filter: RunLog, pieces: number): Promise<LogStrip> {
  const params = filterParams(filter);
  params.set('pieces', String(pieces));
  return get(`/api/runs/${encodeURIComponent(filter.run)}/logs/strip?${params}`);
}

/** The nodes as the server saw them last; `fresh` looks again. */
export async function getLook(
  fresh: boolean,
): Promise<{ readonly at: string; readonly facts: readonly NodeFacts[] }> {
  return get(`/api/look${fresh ? '?fresh=1' : ''}`);
}

/** The engine's own numbers, newest last. */
export async function getServing(): Promise<{
  readonly samples: readonly EngineSample[];
  readonly why?: string;
}> {
  return get('/api/metrics-of-engine');
}

/** The answer to a run that waits for a person; `plan` is the digest of what was looked at. */
export async function answerConsent(
  run: string,
  plan: string,
  allowed: readonly string[],
  refused: readonly string[],
): Promise<void> {
  await post('/api/consent', { run, plan, allowed, refused });
}

/** Starts an operation; the answer is its report, or the run it goes on in. */
export async function operate(
  name: string,
  input: Readonly<Record<string, unknown>>,
): Promise<{ readonly run?: string; readonly report?: Report }> {
  return post(`/api/operations/${name}`, input);
}

async function get<T>(path: string): Promise<T> {
  return read(await fetch(path, { headers: { accept: 'application/json' }, credentials: 'same-origin' }));
}

async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  return read(
    await fetch(path, { method: 'POST', headers, body: JSON.stringify(body), credentials: 'same-origin' }),
  );
}

async function read<T>(response: Response): Promise<T> {
  const body: unknown = response.status === 204 ? {} : await response.json().catch(() => ({}));
  if (!response.ok) throw refusal(response.status, body);
  // The server's answers are checked against the schemas of its own document by the server's tests.
  return body as T;
}

function refusal(status: number, body: unknown): Refused {
  const said = (key: string): string => {
    const value: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, key) : undefined;
    return typeof value === 'string' ? value : '';
  };
  return new Refused(
    status,
    said('detail') || said('title') || `the server answered ${status}`,
    said('hint'),
  );
}
