import type { Event } from '../../domain/event.ts';
import { edit, lowerFirst } from '../../domain/run-words.ts';
import { duration, plural } from '../../domain/units.ts';
import { paint } from './color.ts';
import { glyphs as glyphSet, plainAscii } from './glyphs.ts';
import { truncate } from './width.ts';

/** What of an event is final and stays above the live view: ended steps, findings, remedies, notes. */
export function finalLines(
  event: Event,
  options: { readonly columns: number; readonly color: boolean; readonly unicode: boolean },
): readonly string[] {
  const glyphs = glyphSet(options.unicode);
  const colours = paint(options.color);
  const lines = ((): readonly string[] => {
    switch (event.type) {
      case 'looked': {
        const unseen = event.facts.filter((facts) => !facts.reached);
        return unseen.length === 0
          ? []
          : unseen.map((facts) => `${glyphs.unknown} ${facts.node} was not reached`);
      }
      case 'consent-given': {
        const [allowed, refused] = [event.steps.length, event.refused.length];
        if (allowed === 0) return [`${glyphs.peer} nothing allowed, by ${event.by}`];
        const some = refused > 0 ? `, ${refused} refused` : '';
        return [`${colours.ok(glyphs.done)} ${plural(allowed, 'step')} allowed${some}, by ${event.by}`];
      }
      case 'step-ended': {
        const mark =
          event.result === 'done'
            ? colours.ok(glyphs.done)
            : event.result === 'skipped'
              ? glyphs.peer
              : colours.bad(glyphs.failed);
        const text = event.result === 'done' || event.text === '' ? '' : `: ${event.text}`;
        return [
          `${mark} ${event.node}  ${lowerFirst(event.title)}${event.result === 'done' ? '' : ` (${event.result})`}${text}  ${duration(event.milliseconds)}`,
        ];
      }
      case 'finding':
        if (!event.final) return [];
        return [
          `${colours.bad(glyphs.failed)} ${event.title}`,
          ...event.quotes
            .slice(0, 4)
            .map((quote) => `    rank ${quote.rank} line ${quote.line}  ${quote.text.trim()}`),
        ];
      case 'remedy-applied':
        return [
          `${colours.working(glyphs.working)} remedy applied, not yet proved: ${event.edits.map(edit).join(', ') || event.title}`,
        ];
      case 'remedy-proved':
        return [
          `${colours.ok(glyphs.done)} remedy proved: ${event.edits.map(edit).join(', ') || event.title}`,
        ];
      case 'remedy-failed':
        return [
          `${colours.bad(glyphs.failed)} remedy without effect: ${event.edits.map(edit).join(', ') || event.title}`,
        ];
      case 'engine-changed':
        return [`${glyphs.slow} ${event.from} → ${event.to}: ${event.why}`];
      case 'note':
        return [
          `${event.level === 'warning' ? glyphs.slow : glyphs.none} ${event.node ? `${event.node}: ` : ''}${event.text}`,
        ];
      default:
        return [];
    }
  })();
  return lines.map((line) => {
    const one = line.replace(/\s*\n\s*/g, ' ');
    return truncate(options.unicode ? one : plainAscii(one), options.columns, glyphs.ellipsis);
  });
}
