import { type Fact, type Gpu, type MemoryLines, type ReachedFacts, valueIf } from '../../domain/facts.ts';
import { type Ledger, ledgerOf } from '../../domain/ledger.ts';
import type { MemoryHolder, MemoryReport, NodeMemory } from '../../domain/report.ts';
import { age, clock, gib, gibNumber, list, plural } from '../../domain/units.ts';
import { memoryBar } from './memory-bar.ts';
import { dirtyWords, ownerWords } from './render-memory.ts';
import { finish, type Style } from './style.ts';
import { fill, width, wrap, wrapAdvice } from './width.ts';

const INDENT = ' '.repeat(10);
const NAME_COLUMNS = 18;
/** Smaller ones of other people are told together, unless all are asked for. */
const SMALL_BYTES = 2 ** 29;

/** Who holds how much on each node, what can be had, and what would have to go. */
export function renderMemory(report: MemoryReport, style: Style): string {
  return finish(memoryReportLines(report, style), style);
}

/** The same as lines, for a view that is drawn again and again. */
export function memoryReportLines(report: MemoryReport, style: Style): readonly string[] {
  const scaleBytes = Math.max(1, ...report.nodes.map(({ facts }) => ledgerOf(facts)?.totalBytes ?? 0));
  return report.nodes.flatMap((node, at) => [
    ...(at === 0 ? [] : ['']),
    ...nodeLines(node, { scaleBytes, needBytes: report.needBytes }, style),
  ]);
}

type About = { readonly scaleBytes: number; readonly needBytes: number | undefined };

function nodeLines(node: NodeMemory, about: About, style: Style): readonly string[] {
  const { glyphs, paint, columns } = style;
  const { facts } = node;
  if (!facts.reached)
    return [`${paint.strong(node.node)}  ${glyphs.unknown} not seen`, ...troubleLines(node, style)];
  const ledger = ledgerOf(facts);
  const total = ledger === undefined ? 'memory unknown' : `${gibNumber(ledger.totalBytes)} GiB`;
  const kind = node.unified.known && node.unified.value ? '  unified' : '';
  const left = `${node.node}  ${total}${kind}`;
  const right = `${clock(facts.at)} ${glyphs.dot} ${lookedWords(facts.at, style.now)}`;
  const cells = Math.max(20, Math.min(60, columns - 40));
  const bar = { cells, scaleBytes: about.scaleBytes, reserveBytes: node.reserveBytes, glyphs, paint };
  return [
    `${paint.strong(left)}${' '.repeat(Math.max(2, columns - width(left) - width(right)))}${paint.quiet(right)}`,
    ...(ledger === undefined
      ? []
      : [
          `${memoryBar(ledger, bar)}   ${gibNumber(ledger.availableBytes)} available, ${gibNumber(ledger.freeBytes)} free`,
        ]),
    ...cardLines(node, facts, style),
    ...holderLines(node, style),
    ...(ledger === undefined ? [] : systemLines(node, facts, ledger, style)),
    ...kernelLine(facts),
    ...canGetLines(node, about.needBytes, style),
    ...troubleLines(node, style),
    ...node.unknown.flatMap((text) => marked(paint.quiet(glyphs.unknown), `unknown: ${text}`, style)),
  ];
}

const NOW_SECONDS = 5;

/** "looked now", "looked 12 s ago" */
function lookedWords(iso: string, now: number): string {
  const seconds = (now - Date.parse(iso)) / 1000;
  return seconds <= NOW_SECONDS ? 'looked now' : `looked ${age(seconds)} ago`;
}

/** Cards with memory of their own, each with what is free on it; those that were seen, where some are missing. */
function cardLines(node: NodeMemory, facts: ReachedFacts, style: Style): readonly string[] {
  const gpus = valueIf(facts.gpus) ?? facts.driver?.trouble?.seen ?? [];
  if (node.unified.known && node.unified.value) return [];
  return gpus.map((gpu) => {
    const memory =
      gpu.totalBytes.known && gpu.freeBytes.known
        ? `${gibNumber(gpu.freeBytes.value)} free of ${gib(gpu.totalBytes.value)}`
        : `memory unknown: ${gpu.totalBytes.known ? '' : gpu.totalBytes.why}`;
    return fill(
      `GPU ${gpu.index}  ${gpu.name}  ${memory}${migWords(gpu)}`,
      style.columns,
      style.glyphs.ellipsis,
    ).trimEnd();
  });
}

function migWords({ mig }: Gpu): string {
  if (mig === undefined) return '';
  if (!mig.known) return `, MIG on: ${mig.why}`;
  return mig.value.length === 0
    ? ', MIG on and no instance made'
    : `, MIG: ${list(mig.value.map(({ profile }) => profile))}`;
}

function holderLines(node: NodeMemory, style: Style): readonly string[] {
  const holders = valueIf(node.holders) ?? [];
  const small = style.verbose
    ? []
    : holders.filter(({ holder, stop }) => holder.bytes < SMALL_BYTES && stop !== 'ours');
  const rest = small.reduce((bytes, { holder }) => bytes + holder.bytes, 0);
  return [
    ...holders.filter((one) => !small.includes(one)).flatMap((one) => holderBlock(one, style)),
    ...(small.length === 0
      ? []
      : [
          row(
            gibNumber(rest),
            style.glyphs.others,
            `${plural(small.length, 'smaller one')}`,
            'see --verbose',
            style,
          ),
        ]),
  ];
}

/** "  31.2  ▓ ollama.service    system service", under it how it is stopped and comes back. */
function holderBlock({ holder, stop, how, back }: MemoryHolder, style: Style): readonly string[] {
  const { glyphs, paint, columns } = style;
  const glyph = holder.owner.kind === 'rank' ? glyphs.ours : glyphs.others;
  const said = [
    stop === 'leave' ? `left alone: ${how}` : `stop: ${how}`,
    ...(back === undefined || back === '' ? [] : [`back: ${back.charAt(0).toLowerCase()}${back.slice(1)}`]),
  ];
  const returns = (holder.returns ?? [])
    .filter(({ by }) => by !== 'parent')
    .map(
      ({ what, keepAway, handled }) =>
        `comes back by ${what}${handled ? '' : `; to keep it away: ${keepAway}`}`,
    );
  const more = style.verbose
    ? [`${gpuWords(holder.gpuBytes)}, ${gpuWords(holder.residentBytes, 'resident')}; ${holder.command}`]
    : [];
  return [
    row(gibNumber(holder.bytes), glyph, holder.name, ownerWords(holder), style),
    ...[...said, ...returns, ...more].flatMap((text) =>
      wrap(text, columns - INDENT.length).map((line) => `${INDENT}${paint.quiet(line)}`),
    ),
  ];
}

function gpuWords(bytes: Fact<number>, what = 'on the GPU'): string {
  return bytes.known ? `${gib(bytes.value)} ${what}` : `${what} unknown: ${bytes.why}`;
}

function row(size: string, glyph: string, name: string, about: string, { columns, glyphs }: Style): string {
  const text = `${size.padStart(6)}  ${glyph} ${fill(name, NAME_COLUMNS, glyphs.ellipsis)} ${about}`;
  return fill(text.trimEnd(), columns, glyphs.ellipsis).trimEnd();
}

/** The rest of the account: what the system, the driver and the page cache take. */
function systemLines(node: NodeMemory, facts: ReachedFacts, ledger: Ledger, style: Style): readonly string[] {
  const { glyphs } = style;
  const lines = valueIf(facts.memory)?.lines;
  const parts = systemWords(lines);
  const driver = node.driverBytes;
  const lost = ledger.unaccountedBytes;
  const cached = lines?.cachedBytes;
  return [
    row(gibNumber(ledger.systemBytes), glyphs.system, 'system', parts, style),
    ...(driver.known && node.unified.known && node.unified.value
      ? [
          row(
            gibNumber(driver.value),
            glyphs.unaccounted,
            'driver',
            'held by the GPU driver, by no process',
            style,
          ),
        ]
      : []),
    ...(lost > 0 && !driver.known
      ? [row(gibNumber(lost), glyphs.unaccounted, 'unaccounted', 'by nothing that shows', style)]
      : []),
    cached !== undefined && !cached.known
      ? row('?', glyphs.cache, 'page cache', `unknown: ${cached.why}`, style)
      : row(gibNumber(ledger.cacheBytes), glyphs.cache, 'page cache', cacheWords(lines, facts), style),
  ];
}

function systemWords(lines: MemoryLines | undefined): string {
  if (lines === undefined) return '';
  const parts: readonly (readonly [string, Fact<number>])[] = [
    ['slab', lines.slabBytes],
    ['kernel', lines.kernelBytes],
    ['shared', lines.sharedBytes],
  ];
  return parts
    .flatMap(([name, bytes]) => (bytes.known ? [`${name} ${gibNumber(bytes.value)}`] : []))
    .join(', ');
}

/** "0.1 dirty; can be dropped with sudo" */
function cacheWords(lines: MemoryLines | undefined, facts: ReachedFacts): string {
  const clean = valueIf(lines?.cleanBytes);
  const dirty = valueIf(lines?.dirtyBytes);
  const root = valueIf(facts.sudo);
  const means = root === undefined || root === 'none' ? 'can be dropped by root' : 'can be dropped with sudo';
  return [
    dirty === undefined ? undefined : dirtyWords(dirty),
    clean === undefined ? undefined : `${gibNumber(clean)} ${means}`,
  ]
    .filter((part) => part !== undefined)
    .join('; ');
}

/** "swap 16.0 free of 16.0     pressure 0.0 %     CMA counted" */
function kernelLine(facts: ReachedFacts): readonly string[] {
  const memory = valueIf(facts.memory);
  if (memory === undefined) return [];
  const { lines } = memory;
  const [swap, free] = [valueIf(lines?.swapTotalBytes), valueIf(lines?.swapFreeBytes)];
  const pressure = valueIf(lines?.pressure);
  const [cma, cmaFree] = [valueIf(lines?.cmaTotalBytes), valueIf(lines?.cmaFreeBytes)];
  const parts = [
    swap === 0
      ? 'no swap'
      : `swap ${free === undefined ? '?' : gibNumber(free)} free of ${swap === undefined ? '?' : gibNumber(swap)}`,
    `pressure ${pressure === undefined ? '?' : `${pressure.some10.toFixed(1)} %`}`,
    cma === undefined ? 'CMA ?' : cma === 0 && (cmaFree ?? 0) > 0 ? 'CMA not counted' : 'CMA counted',
  ];
  return [parts.join('     ')];
}

function canGetLines(node: NodeMemory, needBytes: number | undefined, style: Style): readonly string[] {
  const { paint } = style;
  const { canGetBytes, canGetAfterBytes } = node;
  if (!canGetBytes.known) return wrap(`can get ?  ${canGetBytes.why}`, style.columns);
  if (!canGetAfterBytes.known) return [];
  const now = Math.max(0, canGetBytes.value);
  const onCards = node.unified.known && !node.unified.value;
  const rule = onCards ? 'free on its cards' : `available less the reserve of ${gib(node.reserveBytes)}`;
  const after = canGetAfterBytes.value - canGetBytes.value;
  const more =
    after > 0 ? `; ${gib(Math.max(0, canGetAfterBytes.value))} once all that may be stopped is stopped` : '';
  const said = wrap(`can get ${paint.strong(gib(now))} now, ${rule}${more}`, style.columns);
  if (needBytes === undefined || node.wouldGo === undefined || !node.wouldGo.known) return said;
  return [
    ...said,
    ...wrap(
      needWords(needBytes, canGetBytes.value, canGetAfterBytes.value, node.wouldGo.value),
      style.columns,
    ),
  ];
}

function needWords(
  need: number,
  now: number,
  after: number,
  go: readonly { readonly name: string; readonly bytes: number }[],
): string {
  if (now >= need) return `for ${gib(need)} nothing would have to go`;
  const names = list(go.map(({ name, bytes }) => `${name} (${gib(bytes)})`));
  if (after < need)
    return `for ${gib(need)} it does not do, ${gib(need - after)} short even without ${names || 'anybody'}`;
  return go.length === 0
    ? `for ${gib(need)} only what earlier ranks of ours left would have to go`
    : `for ${gib(need)} would have to go: ${names}`;
}

function troubleLines(node: NodeMemory, style: Style): readonly string[] {
  const { glyphs, paint, columns } = style;
  return node.troubles.flatMap(({ level, title, remedy }) => {
    const mark =
      level === 'blocks'
        ? paint.bad(glyphs.failed)
        : level === 'unknown'
          ? paint.quiet(glyphs.unknown)
          : paint.wait(glyphs.slow);
    const advice =
      remedy === undefined ? [] : wrapAdvice(`do: ${remedy}`, columns - 4).map((line) => `    ${line}`);
    return [...marked(mark, title, style), ...advice];
  });
}

function marked(mark: string, text: string, { columns }: Style): readonly string[] {
  return wrap(text, columns - 4).map((line, at) => (at === 0 ? `  ${mark} ${line}` : `    ${line}`));
}
