import { placesOf, placeText } from '../../../domain/log-rows.ts';

/** Where a person is on the page: everything that a copied address must show again. */
export type Address = {
  readonly view: 'run' | 'runs';
  /** Undefined: what goes on now. */
  readonly run: string | undefined;
  /** Replay: as of that event. */
  readonly at: number | undefined;
  readonly ranks: readonly number[];
  readonly stage: string | undefined;
  readonly attempt: number | undefined;
  readonly level: 'warning' | 'error' | undefined;
  readonly q: string;
  /** Folds of the log that lie open, as ATTEMPT-RANK-LINE. */
  readonly open: readonly string[];
};

/** Folds that may lie open at once; the first ones close. */
export const MOST_OPEN = 50;

export const HERE_NOW: Address = {
  view: 'run',
  run: undefined,
  at: undefined,
  ranks: [],
  stage: undefined,
  attempt: undefined,
  level: undefined,
  q: '',
  open: [],
};

/** Reads path and query: `/`, `/runs`, `/run/14?at=1732&ranks=1&stage=weights&q=gloo`. */
export function readAddress(path: string, query: string): Address {
  if (path === '/runs') return { ...HERE_NOW, view: 'runs' };
  const params = new URLSearchParams(query);
  const level = params.get('level');
  return {
    view: 'run',
    run: /^\/run\/([\w.-]+)$/.exec(path)?.[1],
    at: whole(params.get('at')),
    ranks: (params.get('ranks') ?? '')
      .split(',')
      .map(whole)
      .filter((rank) => rank !== undefined),
    stage: params.get('stage') ?? undefined,
    attempt: whole(params.get('attempt')),
    level: level === 'warning' || level === 'error' ? level : undefined,
    q: params.get('q') ?? '',
    open: placesOf(params.get('open') ?? '')
      .map(placeText)
      .slice(-MOST_OPEN),
  };
}

/** The address as path and query. */
export function writeAddress(address: Address): string {
  if (address.view === 'runs') return '/runs';
  const params = new URLSearchParams();
  if (address.at !== undefined) params.set('at', String(address.at));
  if (address.ranks.length > 0) params.set('ranks', address.ranks.join(','));
  if (address.stage !== undefined) params.set('stage', address.stage);
  if (address.attempt !== undefined) params.set('attempt', String(address.attempt));
  if (address.level !== undefined) params.set('level', address.level);
  if (address.q !== '') params.set('q', address.q);
  if (address.open.length > 0) params.set('open', address.open.join(','));
  const query = params.toString().replaceAll('%2C', ','); // lists stay readable
  return `${address.run === undefined ? '/' : `/run/${address.run}`}${query === '' ? '' : `?${query}`}`;
}

function whole(text: string | null): number | undefined {
  return text !== null && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}
