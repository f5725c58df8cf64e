import type { RunState } from '../../domain/run-state.ts';
import { KEY_HELP, type Panel } from './keys.ts';
import { table } from './labelled.ts';
import { liveLedgers } from './live-ledgers.ts';
import type { LiveState } from './live-state.ts';
import type { Pen } from './pen.ts';
import { memoryBlock } from './render-memory.ts';
import { planLines } from './render-plan.ts';
import type { Style } from './style.ts';

/** All rows of what a key opened; the log is part of the overview and has none here. */
export function panelLines(
  panel: Panel | undefined,
  state: RunState,
  live: LiveState,
  pen: Pen,
): readonly string[] {
  const style: Style = { ...pen, verbose: false };
  switch (panel) {
    case 'memory':
      return memory(state, live, style);
    case 'plan':
      return state.plan ? planLines(state.plan, style, { why: false }) : [noPlan(state)];
    case 'keys':
      return help(style);
    default:
      return [];
  }
}

function noPlan({ operation }: RunState): string {
  return operation === 'up' ? 'No plan yet: it follows the look' : `${operation ?? 'this'} goes by no plan`;
}

/** Who holds what on each node, as of the last look; what is available and ours moves on with the beats. */
function memory(state: RunState, live: LiveState, style: Style): readonly string[] {
  const { ledgers, scaleBytes } = liveLedgers(state, live);
  const reserveBytes = state.plan?.recipe.memory.reserve;
  const blocks = state.facts.map((facts) =>
    memoryBlock(facts, { scaleBytes, reserveBytes, ledger: ledgers.get(facts.node) }, style),
  );
  if (blocks.length === 0) return ['Not looked yet'];
  return blocks.flatMap((lines, at) => (at === 0 ? lines : ['', ...lines]));
}

function help({ glyphs, paint }: Style): readonly string[] {
  const marks = [
    `${paint.ok(glyphs.done)} done`,
    `${paint.working(glyphs.working)} working`,
    `${glyphs.ahead} to come`,
    `${paint.wait(glyphs.waits)} waits for you`,
    `${paint.wait(glyphs.slow)} slow or warning`,
    `${paint.bad(glyphs.failed)} failed`,
    `${glyphs.unknown} unknown`,
  ];
  return [
    ...table(
      KEY_HELP.map((row) => [...row]),
      3,
    ),
    'Keys only show; none changes anything on a host.',
    '',
    marks.slice(0, 4).join('   '),
    marks.slice(4).join('   '),
  ];
}
