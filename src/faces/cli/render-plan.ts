import type { Command, Word } from '../../domain/command.ts';
import type { Phase, Plan, Service, Step } from '../../domain/plan.ts';
import { runsAlready } from '../../domain/plan-words.ts';
import { quotePlainly } from '../../domain/quote.ts';
import type { PlanReport } from '../../domain/report.ts';
import { edit, lowerFirst } from '../../domain/run-words.ts';
import { gibNumber, plural } from '../../domain/units.ts';
import { table } from './labelled.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { fill, pad, width, wrap, wrapAdvice } from './width.ts';

/** What would be done: steps by phase and node, memory per node; with verbose every rank's exact command. */
export function renderPlan(report: PlanReport, style: Style, options: { readonly why: boolean }): string {
  const { plan, facts, allowed = [] } = report;
  const runs = plan.state === 'empty' ? runsAlready(plan, facts) : undefined;
  const by = new Map(allowed.map((one) => [one.id, one.by]));
  return finish(planLines(plan, style, { ...options, runs, allowed: by }), style);
}

type Shown = {
  readonly why: boolean;
  /** Of a plan whose ranks all run: whether they serve, where that was looked at. */
  readonly runs?: string | undefined;
  /** Where the owner allowed a step beforehand, by its id. */
  readonly allowed?: ReadonlyMap<string, string>;
};

/** The same as lines, for the live view. */
export function planLines(plan: Plan, style: Style, options: Shown): readonly string[] {
  const why = options.why || style.verbose;
  return [
    ...heading(plan, style, options),
    ...blockers(plan, style),
    ...stepTable(plan, style, options),
    ...memory(plan, style, why),
    ...(why ? rules(plan, style) : []),
    ...plan.warnings.flatMap((warning) => [
      ...wrap(`${at(warning)}${warning.title}`, style.columns - 4).map((line, index) =>
        index === 0 ? `${style.paint.wait(style.glyphs.slow)} ${line}` : `  ${line}`,
      ),
      ...wrapAdvice(`do: ${warning.advice}`, style.columns - 2).map((line) => `  ${line}`),
    ]),
    ...(style.verbose ? plan.phases.flatMap((phase) => phase.services.flatMap(serviceLines)) : []),
  ];
}

function heading(plan: Plan, style: Style, { runs, allowed }: Shown): readonly string[] {
  const steps = plan.phases.flatMap((phase) => phase.steps);
  const launched = plan.phases.flatMap(({ services }) => services).filter(({ running }) => running !== true);
  const count = steps.length + launched.length;
  const free = steps.filter((step) => allowed?.has(step.id)).length;
  const asks = steps.filter((step) => step.needsConsent).length - free;
  const forever = steps.filter((step) => step.undo.kind === 'irreversible').length;
  const parts =
    plan.state === 'empty'
      ? [runs ?? 'nothing to do, its ranks run']
      : plan.state === 'blocked'
        ? [`${plural(plan.blockers.length, 'thing')} in the way that no step can mend`]
        : [
            plural(count, 'step'),
            free === 0 ? undefined : `${free} allowed by policy.yaml`,
            asks === 0 ? 'none asks you' : `${asks} ${asks === 1 ? 'asks' : 'ask'} you`,
            forever === 0 ? undefined : `${forever} cannot be undone`,
          ];
  const said = parts.filter((part) => part !== undefined).join(', ');
  const edits =
    plan.edits.length > 0 ? [`recipe edited for this run: ${plan.edits.map(edit).join(', ')}`] : [];
  const title = wrap(`plan ${plan.digest} for ${plan.recipe.recipe}: ${said}`, style.columns);
  return [
    ...title.map((line) => style.paint.strong(line)),
    ...edits.flatMap((text) => wrap(text, style.columns)),
  ];
}

function blockers(plan: Plan, style: Style): readonly string[] {
  const { glyphs, paint, columns } = style;
  return plan.blockers.flatMap((blocker) => {
    const title = wrap(`${at(blocker)}${blocker.title}`, columns - 4);
    return [
      ...title.map((line, index) => (index === 0 ? `${paint.bad(glyphs.failed)} ${line}` : `  ${line}`)),
      ...blocker.advice.flatMap((advice) =>
        wrapAdvice(`do: ${advice}`, columns - 2).map((line) => `  ${line}`),
      ),
    ];
  });
}

/** "spark-a: ", where the sentence does not name its node itself. */
function at({ node, title }: { readonly node: string | undefined; readonly title: string }): string {
  return node === undefined || title.includes(node) ? '' : `${node}: `;
}

type Row = {
  readonly phase: string;
  readonly node: string;
  readonly mark: string;
  readonly title: string;
  readonly undo: string;
};

function rowsOf(phase: Phase, plan: Plan, style: Style, { allowed }: Shown): readonly Row[] {
  const rows = [
    ...together(
      phase.steps.map((step) => ({
        node: step.node,
        mark: markOf(step, style, allowed),
        title: titleOf(step, allowed),
        undo: undoWords(step),
      })),
      new Set(plan.ranks).size,
    ),
    ...phase.services.map((service) => ({
      node: service.node,
      mark: '',
      title: `rank ${service.rank}, ${service.engine}${service.role === 'head' ? ', head' : ''}`,
      undo: service.running ? 'runs already' : 'undo: stop',
    })),
  ];
  return rows.map((row, index) => ({ phase: index === 0 ? phase.kind : '', ...row }));
}

/** Its id, where it stops somebody's work: to be asked about, or allowed beforehand. */
function markOf({ id, needsConsent }: Step, { glyphs }: Style, allowed: Shown['allowed']): string {
  return needsConsent ? `${allowed?.has(id) ? ' ' : glyphs.waits} ${id}` : '';
}

function titleOf({ id, title }: Step, allowed: Shown['allowed']): string {
  const by = allowed?.get(id);
  return by === undefined ? lowerFirst(title) : `${lowerFirst(title)}, allowed by ${by}`;
}

/** What is done alike on every node is one row: "both", "all 8". What asks somebody stays a row of its own. */
function together(rows: readonly Omit<Row, 'phase'>[], nodes: number): readonly Omit<Row, 'phase'>[] {
  const alike = (row: Omit<Row, 'phase'>): string => `${row.title}\n${row.undo}`;
  const everywhere = (row: Omit<Row, 'phase'>): boolean =>
    nodes > 1 &&
    row.mark === '' &&
    new Set(rows.filter((other) => alike(other) === alike(row)).map((other) => other.node)).size === nodes;
  return rows.flatMap((row, index) => {
    if (!everywhere(row)) return [row];
    const first = rows.findIndex((other) => alike(other) === alike(row)) === index;
    return first ? [{ ...row, node: nodes === 2 ? 'both' : `all ${nodes}` }] : [];
  });
}

/** Columns that a title and an undo need beside each other. */
const LEAST_TITLE = 24;
const LEAST_UNDO = 16;

/** Steps by phase and node, in one table, so that columns stand under each other. */
function stepTable(plan: Plan, style: Style, shown: Shown): readonly string[] {
  const rows = plan.phases.flatMap((phase) => rowsOf(phase, plan, style, shown));
  const widest = (of: (row: Row) => string): number => Math.max(0, ...rows.map((row) => width(of(row))));
  const nodes = widest((row) => row.node);
  const marks = widest((row) => row.mark);
  const lead = 8 + nodes + 2 + marks + (marks > 0 ? 2 : 0);
  const beside = lead + LEAST_TITLE + 2 + LEAST_UNDO <= style.columns;
  const undos = Math.min(
    24,
    widest((row) => row.undo),
  );
  const titles = beside
    ? Math.min(
        widest((row) => row.title),
        Math.max(LEAST_TITLE, style.columns - lead - undos - 2),
      )
    : Math.max(LEAST_UNDO, style.columns - lead);
  return rows.flatMap((row) => {
    const mark = marks > 0 ? `${style.paint.wait(fill(row.mark, marks))}  ` : '';
    const head = `${fill(row.phase, 8)}${fill(row.node, nodes + 2)}${mark}`;
    const titleLines = wrap(row.title, titles);
    const undoLines = wrap(
      row.undo,
      beside ? Math.max(LEAST_UNDO, style.columns - lead - titles - 2) : titles,
    );
    if (!beside)
      return [...titleLines, ...(row.undo === NO_UNDO ? [] : undoLines)].map((line, index) =>
        `${index === 0 ? head : ' '.repeat(lead)}${line}`.trimEnd(),
      );
    const height = Math.max(titleLines.length, undoLines.length);
    return Array.from({ length: height }, (_, line) =>
      `${line === 0 ? head : ' '.repeat(lead)}${pad(titleLines[line] ?? '', titles)}  ${undoLines[line] ?? ''}`.trimEnd(),
    );
  });
}

const NO_UNDO = 'nothing to undo';

function undoWords(step: Step): string {
  if (step.undo.kind === 'command') return `undo: ${lowerFirst(step.undo.title)}`;
  return step.undo.kind === 'irreversible' ? 'irreversible' : NO_UNDO;
}

const VERDICT = {
  fits: 'fits',
  'may-boot': 'may boot',
  'does-not-fit': 'does not fit',
  unknown: 'unknown',
} as const;

function memory(plan: Plan, style: Style, why: boolean): readonly string[] {
  if (plan.memory.length === 0) return [];
  const { paint } = style;
  // Unknown is not zero: what could not be reckoned is no number.
  const number = (bytes: number, unknown: boolean): string => (unknown ? '?' : gibNumber(Math.max(0, bytes)));
  const cells = plan.memory.map((node) => {
    const unknown = node.verdict === 'unknown';
    const parts = [node.weightsBytes, node.kvBytes, node.engineBytes, node.graphsBytes, node.sumBytes];
    return [
      ...parts.map((bytes) => number(bytes, unknown && bytes === 0)),
      number(node.canGetAfterClearingBytes, unknown && node.canGetAfterClearingBytes === 0),
    ];
  });
  const heads = ['weights', 'KV', 'engine', 'graphs', 'sum', 'can get'];
  const widths = heads.map((head, at) =>
    Math.max(5, head.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const right = (row: readonly string[]): readonly string[] =>
    row.map((cell, at) => cell.padStart(widths[at] ?? 0));
  const made = (title: string): readonly string[] =>
    table([
      [title, ...right(heads), ''],
      ...plan.memory.map((node, at) => [
        `  ${node.node}`,
        ...right(cells[at] ?? []),
        node.verdict === 'fits'
          ? paint.ok(VERDICT.fits)
          : node.verdict === 'does-not-fit'
            ? paint.bad(VERDICT[node.verdict])
            : paint.wait(VERDICT[node.verdict]),
      ]),
    ]);
  const fits = (lines: readonly string[]): boolean => Math.max(...lines.map(width)) <= style.columns;
  const rows = ['memory per node, GiB', 'memory, GiB'].map(made).find(fits);
  const error = Math.max(...plan.memory.map((node) => node.errorBytes));
  if (rows === undefined) return memoryInWords(plan, error, style);
  return [
    ...rows,
    why
      ? `  error bar ± ${gibNumber(error)}`
      : `${pad(`  error bar ± ${gibNumber(error)}`, 41)}rules: firstlight plan RECIPE --why`,
  ];
}

/** The same where the table has no room. */
function memoryInWords(plan: Plan, error: number, { columns }: Style): readonly string[] {
  const number = (bytes: number): string => gibNumber(Math.max(0, bytes));
  return [
    `memory per node, GiB, ± ${gibNumber(error)}`,
    ...plan.memory.flatMap((node) => {
      const parts = `weights ${number(node.weightsBytes)} + KV ${number(node.kvBytes)} + engine ${number(node.engineBytes)} + graphs ${number(node.graphsBytes)} = ${number(node.sumBytes)}; can get ${number(node.canGetAfterClearingBytes)}`;
      const said =
        node.verdict === 'unknown' && node.sumBytes === 0 ? 'unknown' : `${parts}: ${VERDICT[node.verdict]}`;
      return wrap(`${node.node}  ${said}`, columns - 4).map(
        (line, index) => `${index === 0 ? '  ' : '    '}${line}`,
      );
    }),
  ];
}

function rules(plan: Plan, style: Style): readonly string[] {
  return plan.memory.flatMap((node) => [
    `${node.node}: where the numbers come from`,
    ...node.rules.flatMap((rule) =>
      wrap(rule, style.columns - 4).map((line, index) => `${index === 0 ? '  - ' : '    '}${line}`),
    ),
    ...(node.verdict === 'unknown' && node.canGetBytes === 0
      ? []
      : [
          `  now ${gibNumber(Math.max(0, node.canGetBytes))} GiB can be had, ${gibNumber(Math.max(0, node.canGetAfterClearingBytes))} after clearing`,
        ]),
  ]);
}

/** A rank's exact command and environment, one argument group a line, to be read and run by hand. */
function serviceLines(service: Service): readonly string[] {
  return [
    '',
    `rank ${service.rank} on ${service.node}, ${service.engine}, in ${service.in}:`,
    ...Object.entries(service.env).map(([name, value]) => `  ${name}=${quotePlainly(value)}`),
    ...Object.keys(service.secretEnv).map((name) => `  ${name}=(secret, by a file of mode 0600)`),
    `  ${commandWords({ argv: service.argv })}`,
  ];
}

/** A command for reading: quoted where a shell would need it; secrets by name. */
function commandWords(command: Pick<Command, 'argv'>): string {
  return command.argv
    .map((word: Word) => (typeof word === 'string' ? quotePlainly(word) : `(secret ${word.secret})`))
    .join(' ');
}
