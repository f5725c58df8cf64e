import type { Command, Word } from '../../domain/command.ts';
import type { Phase, Plan, Service, Step } from '../../domain/plan.ts';
import { quotePlainly } from '../../domain/quote.ts';
import type { PlanReport } from '../../domain/report.ts';
import { edit } from '../../domain/run-words.ts';
import { gibNumber, plural } from '../../domain/units.ts';
import { table } from './labelled.ts';
import type { Style } from './style.ts';
import { finish } from './style.ts';
import { fill, pad, width, wrap, wrapAdvice } from './width.ts';

/** What would be done: steps by phase and node, memory per node; with verbose every rank's exact command. */
export function renderPlan(report: PlanReport, style: Style, options: { readonly why: boolean }): string {
  return finish(planLines(report.plan, style, options), style);
}

/** The same as lines, for the live view. */
export function planLines(plan: Plan, style: Style, options: { readonly why: boolean }): readonly string[] {
  const why = options.why || style.verbose;
  return [
    ...heading(plan, style),
    ...blockers(plan, style),
    ...stepTable(plan, style),
    ...memory(plan, style, why),
    ...(why ? rules(plan, style) : []),
    ...plan.warnings.flatMap((warning) => [
      ...wrap(`${style.glyphs.slow} ${at(warning)}${warning.title}`, style.columns),
      ...wrapAdvice(`do: ${warning.advice}`, style.columns - 2).map((line) => `  ${line}`),
    ]),
    ...(style.verbose ? plan.phases.flatMap((phase) => phase.services.flatMap(serviceLines)) : []),
  ];
}

function heading(plan: Plan, style: Style): readonly string[] {
  const steps = plan.phases.flatMap((phase) => phase.steps);
  const count = steps.length + plan.phases.reduce((sum, phase) => sum + phase.services.length, 0);
  const asks = steps.filter((step) => step.needsConsent).length;
  const forever = steps.filter((step) => step.undo.kind === 'irreversible').length;
  const parts =
    plan.state === 'empty'
      ? ['nothing to do, its ranks run']
      : plan.state === 'blocked'
        ? [`${plural(plan.blockers.length, 'thing')} in the way that no step can mend`]
        : [
            plural(count, 'step'),
            asks === 0 ? 'none asks you' : `${asks} ${asks === 1 ? 'asks' : 'ask'} you`,
            forever === 0 ? undefined : `${forever} cannot be undone`,
          ];
  const said = parts.filter((part) => part !== undefined).join(', ');
  const edits =
    plan.edits.length > 0 ? [`recipe edited for this run: ${plan.edits.map(edit).join(', ')}`] : [];
  return [style.paint.strong(`plan ${plan.digest} for ${plan.recipe.recipe}: ${said}`), ...edits];
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

function rowsOf(phase: Phase, style: Style): readonly Row[] {
  const rows = [
    ...phase.steps.map((step) => ({
      node: step.node,
      mark: step.needsConsent ? `${style.glyphs.waits} ${step.id}` : '',
      title: step.title,
      undo: undoWords(step),
    })),
    ...phase.services.map((service) => ({
      node: service.node,
      mark: '',
      title: `rank ${service.rank}, ${service.engine}${service.role === 'head' ? ', head' : ''}`,
      undo: 'undo: stop',
    })),
  ];
  return rows.map((row, index) => ({ phase: index === 0 ? phase.kind : '', ...row }));
}

/** Steps by phase and node, in one table, so that columns stand under each other. */
function stepTable(plan: Plan, style: Style): readonly string[] {
  const rows = plan.phases.flatMap((phase) => rowsOf(phase, style));
  const widest = (of: (row: Row) => string): number => Math.max(0, ...rows.map((row) => width(of(row))));
  const nodes = widest((row) => row.node);
  const marks = widest((row) => row.mark);
  const lead = 8 + nodes + 2 + marks + (marks > 0 ? 2 : 0);
  const undos = Math.min(
    24,
    widest((row) => row.undo),
  );
  const titles = Math.min(
    widest((row) => row.title),
    Math.max(24, style.columns - lead - undos - 2),
  );
  return rows.flatMap((row) => {
    const mark = marks > 0 ? `${style.paint.wait(fill(row.mark, marks))}  ` : '';
    const head = `${fill(row.phase, 8)}${fill(row.node, nodes + 2)}${mark}`;
    const titleLines = wrap(row.title, titles);
    const undoLines = wrap(row.undo, Math.max(16, style.columns - lead - titles - 2));
    const height = Math.max(titleLines.length, undoLines.length);
    return Array.from({ length: height }, (_, line) =>
      `${line === 0 ? head : ' '.repeat(lead)}${pad(titleLines[line] ?? '', titles)}  ${undoLines[line] ?? ''}`.trimEnd(),
    );
  });
}

function undoWords(step: Step): string {
  if (step.undo.kind === 'command') return `undo: ${step.undo.title}`;
  return step.undo.kind === 'irreversible' ? 'irreversible' : 'nothing to undo';
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
  const right = (bytes: number): string => gibNumber(Math.max(0, bytes)).padStart(7);
  const rows = table([
    ['memory per node, GiB', 'weights', '     KV', ' engine', ' graphs', '    sum', 'can get', ''],
    ...plan.memory.map((node) => [
      `  ${node.node}`,
      // Unknown is not zero: what could not be reckoned is no number.
      ...[node.weightsBytes, node.kvBytes, node.engineBytes, node.graphsBytes, node.sumBytes].map((bytes) =>
        node.verdict === 'unknown' && bytes === 0 ? '?'.padStart(7) : right(bytes),
      ),
      node.verdict === 'unknown' && node.canGetAfterClearingBytes === 0
        ? '?'.padStart(7)
        : right(node.canGetAfterClearingBytes),
      node.verdict === 'fits'
        ? paint.ok(VERDICT.fits)
        : node.verdict === 'does-not-fit'
          ? paint.bad(VERDICT[node.verdict])
          : paint.wait(VERDICT[node.verdict]),
    ]),
  ]);
  const error = Math.max(...plan.memory.map((node) => node.errorBytes));
  return [
    ...rows,
    `  error bar ± ${gibNumber(error)}${why ? '' : `                        rules: firstlight plan RECIPE --why`}`,
  ];
}

function rules(plan: Plan, style: Style): readonly string[] {
  return plan.memory.flatMap((node) => [
    `${node.node}: where the numbers come from`,
    ...node.rules.flatMap((rule) =>
      wrap(rule, style.columns - 4).map((line, index) => `${index === 0 ? '  - ' : '    '}${line}`),
    ),
    `  now ${gibNumber(node.canGetBytes)} GiB can be had, ${gibNumber(node.canGetAfterClearingBytes)} after clearing`,
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
