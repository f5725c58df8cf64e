import { type LogFold, type LogRow, placeText } from '../../../domain/log-rows.ts';
import { stopwatch, thousands } from '../../../domain/units.ts';

/** How rows are written now. */
export type RowLook = {
  /** When the run began, ms. */
  readonly started: number;
  /** Numbers of quoted lines on their card, by place. */
  readonly quoted: ReadonlyMap<string, number>;
  /** With the engine's own stamp and rank. */
  readonly raw: boolean;
  readonly selected: string | undefined;
  readonly flashed: string | undefined;
};

/** An empty row of the pool. */
export function newRow(): HTMLElement {
  const row = document.createElement('div');
  row.className = 'row';
  row.setAttribute('role', 'row');
  row.innerHTML =
    '<span role="cell" class="t"></span><span role="cell" class="r"></span><span role="cell" class="x"></span><span role="cell" class="f"><b></b><button type="button" tabindex="-1"></button></span>';
  return row;
}

/** What a row reads as; of frames that are folded away only their number is told. */
function rowText(row: LogRow, raw: boolean): string {
  return row.fold?.kind === 'frames' && !row.fold.open ? '' : row.text.slice(raw ? 0 : row.prefix);
}

/** "▸ 24 earlier of this bar", "▸ 38 frames". */
export function foldWords({ kind, count, open }: LogFold): string {
  const many = thousands(count);
  const what =
    kind === 'frames'
      ? `${many} ${count === 1 ? 'frame' : 'frames'}`
      : `${many} earlier ${kind === 'bar' ? 'of this bar' : 'like this'}`;
  return `${open ? '▾' : '▸'} ${what}`;
}

const LEVEL_SIGN = { error: ' ✕', warning: ' !', '': '' } as const;

/** Writes the row into an element of the pool; without a row it is one that is still asked for. */
export function writeRow(element: HTMLElement, row: LogRow | undefined, look: RowLook): void {
  const [time, rank, text, fold] = element.children;
  const [mark, button] = fold?.children ?? [];
  if (!(time && rank && text && mark && button instanceof HTMLButtonElement)) return;
  const marks = row?.marks?.join(', ') ?? '';
  mark.textContent = marks;
  mark.setAttribute('title', marks);
  button.hidden = row?.fold === undefined;
  if (row === undefined) {
    time.textContent = '';
    rank.textContent = '';
    text.textContent = '…';
    element.className = 'row';
    element.removeAttribute('data-place');
    return;
  }
  const place = placeText(row);
  const quote = look.quoted.get(place);
  time.textContent = `+${stopwatch(Math.max(0, row.at - look.started))}`;
  time.setAttribute('title', new Date(row.at).toISOString());
  rank.textContent = quote === undefined ? `${row.rank}${LEVEL_SIGN[row.level]}` : String(quote);
  rank.className = quote === undefined ? `r rank-${row.rank % 4}${row.rank > 3 ? ' dashed' : ''}` : 'r plate';
  text.textContent = rowText(row, look.raw);
  text.setAttribute('title', row.text.length > 200 ? row.text.slice(0, 2000) : '');
  const folded = row.fold?.kind === 'frames' && !row.fold.open ? ' frames' : '';
  element.className = `row ${row.level}${folded}${row.marks === undefined ? '' : ' marked'}${quote === undefined ? '' : ' quoted'}${place === look.flashed ? ' shown' : ''}${place === look.selected ? ' selected' : ''}`;
  element.id = `log-${row.rank}-${row.line}`;
  element.dataset['place'] = place;
  if (row.fold === undefined) return;
  button.textContent = foldWords(row.fold);
  button.setAttribute('aria-expanded', String(row.fold.open));
}
