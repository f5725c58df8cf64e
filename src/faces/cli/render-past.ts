import type { Event } from '../../domain/event.ts';
import type {
  DiagnoseReport,
  DiagnosisEarlier,
  LogsReport,
  RunsReport,
  ShowReport,
} from '../../domain/report.ts';
import { blank, fold } from '../../domain/run-state.ts';
import { STAGE_WORDS } from '../../domain/run-words.ts';
import { age, list, plural, stopwatch, when } from '../../domain/units.ts';
import { labelled, spread, table } from './labelled.ts';
import { plainLine } from './plain.ts';
import { quotedLine, quoteLines } from './quotes.ts';
import { renderRun } from './render-run.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { width, wrap } from './width.ts';

const TOOK = 4;

/** Past runs, newest first. */
export function renderRuns(report: RunsReport, style: Style): string {
  const { glyphs, paint } = style;
  if (report.remedies !== undefined) return renderRemedies(report.remedies, style);
  if (report.runs.length === 0) {
    return finish(['No run yet. Bring a model up with firstlight up RECIPE'], style);
  }
  const rows = report.runs.map((run) => {
    const good = ['serving', 'stopped', 'restored', 'nothing-to-do'].includes(run.outcome);
    const bad = run.outcome === 'not-serving';
    const ended = run.outcome.replaceAll('-', ' ').replace('no end: running', 'no end yet');
    return [
      run.run.padStart(4),
      run.operation,
      run.recipe ?? '',
      when(run.startedAt, style.now),
      run.seconds === undefined ? '' : stopwatch(run.seconds * 1000),
      good
        ? paint.ok(`${glyphs.done} ${ended}`)
        : bad
          ? paint.bad(`${glyphs.failed} ${ended}`)
          : paint.wait(`${glyphs.slow} ${ended}`),
    ];
  });
  const all = [[' run', 'what', 'recipe', 'began', 'took', 'ended'], ...rows];
  const whole = table(all);
  // In a narrow terminal how it ended matters more than how long it took.
  const shown =
    Math.max(...whole.map(width)) <= style.columns
      ? whole
      : table(all.map((cells) => cells.filter((_, index) => index !== TOOK))).flatMap((line) =>
          wrap(line, style.columns).map((part, index) => (index === 0 ? part : `      ${part}`)),
        );
  return finish([...shown, 'firstlight show RUN replays one'], style);
}

/** Remedies that runs proved: the next `up` of the same model and engine begins with them. */
function renderRemedies(remedies: NonNullable<RunsReport['remedies']>, style: Style): string {
  if (remedies.length === 0) return finish(['No run has proved a remedy yet.'], style);
  const rows = remedies.map((one) => [
    one.run.padStart(4),
    when(one.at, style.now),
    one.cluster,
    one.model,
    one.engine,
    one.cause,
    one.title,
  ]);
  return finish(
    [
      ...table([[' run', 'proved', 'cluster', 'model', 'engine', 'against', 'remedy'], ...rows]),
      'The next up begins with what still fits its recipe; --anew leaves it out',
    ],
    style,
  );
}

/** A past run as the plain lines that it had, then its end. */
export function renderShow(report: ShowReport, style: Style): string {
  let state = blank;
  const lines: string[] = [];
  for (const event of report.events) {
    const line = plainLine(event, state);
    if (line !== undefined) lines.push(line);
    if (event.type === 'finding') lines.push(...quotes(event));
    state = fold(state, event);
  }
  return finish(lines, style) + renderRun(state, style);
}

function quotes(event: Extract<Event, { type: 'finding' }>): readonly string[] {
  return event.quotes
    .slice(1, 4)
    .map((quote) => `${' '.repeat(25)}| rank ${quote.rank} line ${quote.line}: ${quote.text.trim()}`);
}

/** Lines of all ranks as one stream: time since the first line, rank, text; a mark where a stage begins. */
export function renderLogs(report: LogsReport, style: Style): string {
  const { glyphs, paint } = style;
  if (report.lines.length === 0)
    return finish([`run ${report.run}, attempt ${report.attempt}: no lines kept`], style);
  const first = report.lines[0]?.at ?? 0;
  const nodes = [...new Map(report.lines.map((line) => [line.rank, line.node]))].sort((a, b) => a[0] - b[0]);
  const out = [
    paint.quiet(
      `run ${report.run}, attempt ${report.attempt}: ${list(nodes.map(([rank, node]) => `rank ${rank} on ${node}`))}`,
    ),
  ];
  const stage = new Map<number, string>();
  const numbers = Math.max(...report.lines.map((line) => String(line.line).length));
  for (const line of report.lines) {
    if (stage.get(line.rank) !== line.stage) {
      stage.set(line.rank, line.stage);
      out.push(
        paint.quiet(`${glyphs.barRest.repeat(3)} rank ${line.rank} ${glyphs.dot} ${STAGE_WORDS[line.stage]}`),
      );
    }
    const since = `+${stopwatch(line.at - first)}`.padStart(7);
    out.push(
      `${paint.quiet(`${since} ${String(line.line).padStart(numbers)}`)} ${line.rank}${glyphs.gutter}${line.text}`,
    );
  }
  return finish(out, style);
}

/** Why a run failed: cause, node, quoted lines, what followed from it, what to do. */
export function renderDiagnose(report: DiagnoseReport, style: Style): string {
  if (report.logs !== undefined) return renderLogFiles(report, report.logs, style);
  const { run, findings, answer } = report;
  const { earlier } = answer;
  if (earlier !== undefined)
    return finish(
      [
        `${style.paint.ok(style.glyphs.done)} Run ${run} serves; ${plural(findings.length, 'failure')} on the way`,
        ...findings.flatMap((finding, index) => [
          '',
          ...findingLines(finding, run, style, endedBy(earlier[index])),
        ]),
      ],
      style,
    );
  if (findings.length === 0) {
    const served = answer.cause === 'no-fault';
    return finish(
      [
        served
          ? `${style.paint.ok(style.glyphs.done)} Run ${run} serves; nothing failed in it`
          : `run ${run} has no finding: nothing failed in it, or it ended before anything did`,
      ],
      style,
    );
  }
  return finish(
    findings.flatMap((finding, index) => [...(index > 0 ? [''] : []), ...findingLines(finding, run, style)]),
    style,
  );
}

/** What ended a failure that is over: a remedy with its edits, or another engine. */
function endedBy(earlier: DiagnosisEarlier | undefined): readonly string[] {
  if (earlier === undefined) return [];
  const { remedy, engine } = earlier;
  if (remedy === null) return engine === undefined ? [] : [`${engine} was taken instead`];
  return [remedy.cost === 'nothing' ? remedy.title : `${remedy.title} (${remedy.cost})`];
}

/** Logs of a pair launched by hand: how far each rank came, and why it failed where it did. */
function renderLogFiles(
  { findings, engine, answer }: DiagnoseReport,
  logs: NonNullable<DiagnoseReport['logs']>,
  style: Style,
): string {
  const { glyphs } = style;
  const rows = logs.map((log) => [
    `rank ${log.rank} ${log.role}`,
    log.source,
    plural(log.lines, 'line'),
    `${STAGE_WORDS[log.stage]}${log.percent === undefined ? '' : ` ${Math.round(log.percent)} %`}`,
    log.silentSeconds < 5 ? '' : `last written ${age(log.silentSeconds)} ago`,
  ]);
  const [first, before] = findings;
  const said = first === undefined ? [] : findingLines(first, '', style);
  const over = answer.cause === 'no-fault' && answer.earlier !== undefined;
  const quoted = findings[0]?.quotes[0];
  const source =
    quoted?.log === undefined ? logs.find(({ node }) => node === quoted?.node)?.source : quoted.log;
  return finish(
    [
      ...(over ? [`${style.paint.ok(glyphs.done)} It serves now; what an earlier start failed of:`] : []),
      ...(said.length > 0 ? said : [`${glyphs.done} No failure in these logs of ${engine}`]),
      ...labelled('Cure', cureOf(answer.remedy), style),
      ...labelled('Before', before === undefined ? [] : [`another start: ${before.title}`], style),
      ...(quoted && source ? labelled('More', [`${source} line ${quoted.line}`], style) : []),
      ...table(rows),
    ],
    style,
  );
}

/** What this tool would change by itself, were the job its own. */
function cureOf(remedy: DiagnoseReport['answer']['remedy']): readonly string[] {
  return remedy === null ? [] : [`${remedy.title}; it costs: ${remedy.cost}`];
}

type Found = DiagnoseReport['findings'][number];

/** Where the catalogue tells more of a cause; nothing for one that is no cause of the closed list. */
function catalogued(cause: string): readonly string[] {
  return cause === 'unknown' ? [] : [`docs/failures.md#${cause}`];
}

const PLACES: Readonly<Record<NonNullable<Found['atFault']>, string>> = {
  both: 'all nodes',
  launcher: 'where it was launched',
  network: 'the network between the nodes',
  client: 'the client',
  none: 'nowhere',
};

/** One finding as the parts a person reads; `run` is empty where it was none of ours. */
function findingLines(
  finding: Found,
  run: string,
  style: Style,
  ended: readonly string[] = [],
): readonly string[] {
  const { glyphs, paint } = style;
  const unknown = finding.cause === 'unknown';
  const mark = unknown ? glyphs.unknown : paint.bad(glyphs.failed);
  const title =
    unknown && !/unknown/i.test(finding.title) ? `Cause unknown: ${finding.title}` : finding.title;
  const sure = unknown ? '' : finding.confidence >= 0.9 ? 'sure, ' : 'likely, ';
  const where = [
    finding.atFault === undefined ? finding.node : PLACES[finding.atFault],
    finding.rank === undefined
      ? undefined
      : `rank ${finding.rank}${finding.role ? ` (${finding.role})` : ''}`,
    finding.stage ? `during ${STAGE_WORDS[finding.stage]}` : undefined,
  ].filter((part) => part !== undefined);
  return [
    ...spread(`${mark} ${paint.strong(title)}`, paint.quiet(run === '' ? 'by hand' : `run ${run}`), style),
    ...labelled(
      'Cause',
      [`${finding.cause} ${glyphs.dot} ${sure}${finding.final ? 'final' : 'provisional'}`],
      style,
    ),
    ...labelled('Where', [where.join(', ')], style),
    ...labelled('Why', [finding.why], style),
    ...quoteLines(finding.quotes, style),
    ...labelled('Then', finding.consequences, style),
    ...labelled('Cured', ended, style),
    ...(ended.length > 0 ? [] : labelled('Do', finding.advice, style)),
    ...labelled(
      'More',
      [...(run === '' ? [] : [quotedLine(run, finding)]), ...catalogued(finding.cause)],
      style,
    ),
  ];
}
