import type { MemoryReport } from '../../domain/report.ts';
import { cleanAll, safeJson } from './clean.ts';
import { mayDraw } from './may-draw.ts';
import { memoryReportLines } from './render-memory-report.ts';
import { finish, type Style } from './style.ts';
import { truncate, width } from './width.ts';

type Screen = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly rows?: number };

/** Shows look after look: in place on a terminal, below each other in plain, a line of JSON each with --json. */
export function watchMemory(
  screen: Screen,
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly json: boolean;
    readonly plain: boolean;
    readonly style: () => Style;
  },
): { readonly show: (report: MemoryReport) => void; readonly showed: () => boolean } {
  let drawn: readonly string[] = [];
  let shown = false;
  const draws = !options.json && mayDraw(screen, options.env, options.plain);
  return {
    show: (raw) => {
      if (options.json) screen.write(`${safeJson(raw)}\n`);
      else if (draws) {
        const style = options.style();
        const rows = (screen.rows || 24) - 2;
        const lines = memoryReportLines(cleanAll<MemoryReport>(raw), style);
        const kept = lines.length > rows ? [...lines.slice(0, rows - 1), style.paint.quiet('…')] : lines;
        const shownLines = [...kept, style.paint.quiet('Ctrl-C ends the watch; nothing is changed')].map(
          (line) => truncate(line, style.columns),
        );
        const text = finish(shownLines, style);
        // Row by row over the last drawing: what is erased whole would flicker.
        const over = text.replace(/^/gm, '\x1b[2K').replace(/\x1b\[2K$/, '');
        // A window that was made narrower has wrapped what stands there.
        const before = drawn.reduce(
          (sum, line) => sum + Math.max(1, Math.ceil(width(line) / style.columns)),
          0,
        );
        const left = Math.max(0, before - shownLines.length);
        const rest = left === 0 ? '' : `${'\x1b[2K\n'.repeat(left)}\x1b[${left}A`;
        screen.write(`${before === 0 ? '' : `\x1b[${before}A\r`}${over}${rest}`);
        drawn = shownLines;
      } else {
        const style = options.style();
        screen.write(
          finish([...(shown ? [''] : []), ...memoryReportLines(cleanAll<MemoryReport>(raw), style)], style),
        );
      }
      shown = true;
    },
    showed: () => shown,
  };
}
