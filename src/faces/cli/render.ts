import { guardWords } from '../../domain/guard-words.ts';
import type {
  AdoptReport,
  ChatReport,
  InitReport,
  LabReport,
  RankStatus,
  Report,
  StatusReport,
} from '../../domain/report.ts';
import { consentCommand, lowerFirst } from '../../domain/run-words.ts';
import { gib, list, plural, rate, when } from '../../domain/units.ts';
import { labelled, spread } from './labelled.ts';
import { nowMark } from './now-mark.ts';
import { renderCheck } from './render-check.ts';
import { renderFit } from './render-fit.ts';
import { renderMemory } from './render-memory-report.ts';
import { renderDiagnose, renderLogs, renderRuns, renderShow } from './render-past.ts';
import { renderPlan } from './render-plan.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { pad, width, wrap } from './width.ts';

export type RenderOptions = {
  /** `plan --why`: where each number comes from. */
  readonly why: boolean;
  /** The answer was written as it came; only what follows it is left. */
  readonly streamed: boolean;
};

/** The result of an operation as text. A run's end is `renderRun`, which needs the run's state. */
export function renderReport(report: Report, style: Style, options: RenderOptions): string {
  switch (report.kind) {
    case 'check':
      return renderCheck(report, style);
    case 'fit':
      return renderFit(report, style);
    case 'memory':
      return renderMemory(report, style);
    case 'plan':
      return renderPlan(report, style, options);
    case 'run':
      return finish([`run ${report.run} ended ${report.ended.outcome}: ${report.ended.why}`], style);
    case 'status':
      return renderStatus(report, style);
    case 'logs':
      return renderLogs(report, style);
    case 'runs':
      return renderRuns(report, style);
    case 'show':
      return renderShow(report, style);
    case 'diagnose':
      return renderDiagnose(report, style);
    case 'bundle':
      return finish(
        [
          `${style.paint.ok(style.glyphs.done)} ${report.file} holds run ${report.run}: ${plural(report.files.length, 'file')}, no secrets, no names of people`,
          ...labelled('Next', [`firstlight diagnose ${report.file}`], style),
        ],
        style,
      );
    case 'chat':
      return renderChat(report, style, options);
    case 'init':
      return renderInit(report, style);
    case 'adopt':
      return renderAdopt(report, style);
    case 'lab':
      return renderLab(report, style);
    case 'said':
      return report.text === '' ? '' : finish([report.text], style);
  }
}

/** What could be adopted, and the command for it. */
function renderAdopt({ ranks, command }: AdoptReport, style: Style): string {
  if (command === undefined)
    return finish(
      ['No rank that was started by hand was found: sglang or vllm with --nnodes and --node-rank'],
      style,
    );
  const rows = ranks.map(({ rank, node, target, text }) => `rank ${rank}  ${node}  ${target}  ${text}`);
  return finish(
    [...rows, 'Nothing was touched. Adopt them, so that firstlight down may stop them:', `  ${command}`],
    style,
  );
}

function renderStatus(report: StatusReport, style: Style): string {
  const { glyphs, paint } = style;
  const unreached = report.unreached.map(
    (node) => `${glyphs.unknown} ${node.node} was not reached: ${node.why}`,
  );
  const told = unreached.flatMap((text) =>
    wrap(text, style.columns - 2).map((line, index) => (index === 0 ? line : `  ${line}`)),
  );
  const owed = report.owed.map((thing) => `${thing.id}  ${thing.node}: ${lowerFirst(thing.title)}`);
  const nodes = [...new Set(report.owed.map((thing) => thing.node))];
  const owing =
    report.owed.length > 0
      ? [
          `${plural(report.owed.length, 'thing')} on ${list(nodes)} can be given back: ${report.services.length > 0 ? 'firstlight down --restore' : 'firstlight restore'}`,
          ...owed,
        ]
      : [];
  const busy = (report.busy ?? []).map(
    ({ nodes: on, owner, run, since }) =>
      `${owner} works on ${list(on)} since ${when(since, style.now)}, run ${run}`,
  );
  const stopped = (report.stopped ?? []).map(
    ({ node, recipe, rank, run, guard }) =>
      `${node}: rank ${rank} of ${recipe}, run ${run}, ${guardWords(guard)}`,
  );
  const nothing =
    unreached.length === 0
      ? `Nothing serves on ${report.cluster}. Bring a model up with firstlight up RECIPE`
      : `${glyphs.unknown} What serves on ${report.cluster} is not known: ${plural(unreached.length, 'node')} not reached`;
  const atWork = (report.busy ?? []).flatMap(({ now, run, asks }) =>
    now ? [{ now, run, asks: asks ?? [] }] : [],
  );
  const empty = report.services.length === 0 && atWork.length === 0 ? [nothing] : [];
  return finish(
    [
      ...empty,
      ...atWork.flatMap(({ now, run, asks }) => {
        const mark = nowMark(now.glyph, style);
        const left = `${mark === '' ? '' : `${mark} `}${paint.strong(now.sentence)}`;
        return [
          ...spread(left, paint.quiet(`run ${run}`), style),
          ...wrap(now.next, style.columns).map((line) => paint.quiet(line)),
          ...asked(run, asks, style),
        ];
      }),
      ...report.services.flatMap((service) => {
        const since = service.since ? ` since ${when(service.since, style.now)}` : '';
        const left = service.serving
          ? `${paint.ok(glyphs.done)} ${paint.strong(`Serving ${service.recipe}${since}`)}`
          : `${paint.bad(glyphs.failed)} ${paint.strong(`Not serving: ${service.recipe}`)}`;
        const port =
          service.port === undefined ? '' : `port ${service.port} on ${service.head}, ${service.engine}`;
        const names = Math.max(...service.ranks.map((rank) => width(rank.node)), 0);
        return [
          ...spread(left, paint.quiet(`run ${service.run}`), style),
          ...labelled('API', [port === '' ? '' : `${port}      from here: firstlight chat`], style),
          ...service.ranks.map((rank) => {
            const ok = rank.health === 'answers' || (rank.state === 'running' && rank.health === 'none');
            const mark = ok
              ? paint.ok(glyphs.done)
              : rank.state === 'ended' || rank.health === 'does-not-answer'
                ? paint.bad(glyphs.failed)
                : rank.state === 'starting'
                  ? paint.working(glyphs.working)
                  : glyphs.unknown;
            const health = HEALTH[rank.health];
            const said = [rank.state, health, rank.text].filter((part) => part !== '').join(', ');
            return `${pad(`rank ${rank.rank}`, 9)}${pad(rank.node, names)}  ${pad(rank.role, 6)}  ${mark} ${said}`;
          }),
          ...labelled(
            'Why',
            (service.why ?? []).map(({ title }) => title),
            style,
          ),
          ...labelled(
            'Next',
            (service.why ?? []).flatMap(({ advice }) => advice),
            style,
          ),
          ...labelled('Memory', service.ranks.map(guardLine), style),
          ...labelled('Edited', service.edits.length > 0 ? [service.edits.join(', ')] : [], style),
        ];
      }),
      ...told,
      ...labelled('Guard', stopped, style),
      ...labelled('Busy', busy, style),
      ...labelled('Owed', owing, style),
    ],
    style,
  );
}

/** What a run waits to be allowed, each with its id, and how to answer from here. */
function asked(
  run: string,
  asks: NonNullable<NonNullable<StatusReport['busy']>[number]['asks']>,
  style: Style,
): readonly string[] {
  if (asks.length === 0) return [];
  const steps = asks.map(
    ({ id, node, title, bytes }) => `${id}  ${node}: ${lowerFirst(title)} (${gib(bytes)})`,
  );
  const ids = asks.map(({ id }) => id);
  return [
    ...labelled('Asks', steps, style),
    ...labelled('Allow', [consentCommand(run, ids)], style),
    ...labelled('Refuse', [`firstlight consent ${run} --refuse`], style),
  ];
}

/** "spark-b: lowest 9.1 GiB available; guarded, stopped by docker kill under 3.0 GiB available" */
function guardLine({ node, state, guard, text }: RankStatus): string {
  const runs = state === 'running' || state === 'starting';
  if (guard === undefined) return runs && !text.startsWith('adopted') ? `${node}: no guard` : '';
  const words =
    runs && !guard.alive && guard.state === 'guards' ? 'unguarded: its guard is gone' : guardWords(guard);
  return `${node}: lowest ${gib(guard.lowestBytes)} available; ${runs || guard.state !== 'guards' ? words : 'its guard went with it'}`;
}

const HEALTH = {
  answers: 'answers',
  'does-not-answer': 'does not answer',
  unknown: 'health unknown',
  none: '',
} as const;

function renderChat(report: ChatReport, style: Style, options: RenderOptions): string {
  const { paint, glyphs } = style;
  const facts = [
    report.firstTokenSeconds === undefined
      ? undefined
      : `first token ${report.firstTokenSeconds.toFixed(2)} s`,
    report.tokensPerSecond === undefined ? undefined : `${rate(report.tokensPerSecond)} tok/s`,
    report.outputTokens === undefined
      ? 'tokens unknown'
      : `${report.outputTokens} tokens by the server's usage`,
    FINISH[report.finish] ?? `ended: ${report.finish}`,
  ].filter((part) => part !== undefined);
  const reasoning =
    report.reasoning === '' || options.streamed
      ? []
      : [
          'Reasoning',
          ...report.reasoning
            .trim()
            .split('\n')
            .map((line) => `${glyphs.gutter}${line}`),
          '',
        ].map((line) => (line === '' ? line : paint.quiet(line)));
  const answer = options.streamed ? [] : report.answer.trim().split('\n');
  const told = wrap(facts.join(` ${glyphs.dot} `), style.columns).map((line) => paint.quiet(line));
  return finish([...reasoning, ...answer, ...told], style);
}

const FINISH: Readonly<Record<string, string | undefined>> = {
  stop: 'ended by itself',
  length: 'cut at the limit (--max-tokens)',
};

function renderInit(report: InitReport, style: Style): string {
  return finish(
    [
      `${style.paint.ok(style.glyphs.done)} ${report.file} written with ${plural(report.nodes, 'node')}`,
      ...labelled('Next', ['firstlight check      firstlight up RECIPE'], style),
    ],
    style,
  );
}

function renderLab(report: LabReport, style: Style): string {
  return finish(
    [
      ...report.text.split('\n'),
      ...(report.folder === undefined ? [] : [`Folder   ${report.folder}`]),
      ...report.next.map((line, index) => `${pad(index === 0 ? 'Next' : '', 9)}${line}`),
    ],
    style,
  );
}
