import { type Holder, type NodeFacts, valueIf } from '../../domain/facts.ts';
import { type Ledger, ledgerOf } from '../../domain/ledger.ts';
import { age, gib, gibNumber, when } from '../../domain/units.ts';
import { memoryBar } from './memory-bar.ts';
import type { Style } from './style.ts';
import { fill, width, wrap } from './width.ts';

/** One node's memory: a bar, then who holds what. Unknown is said with its reason. */
export function memoryBlock(
  facts: NodeFacts,
  options: {
    readonly scaleBytes: number;
    readonly reserveBytes: number | undefined;
    /** Where it was moved on since the look. */
    readonly ledger?: Ledger | undefined;
  },
  style: Style,
): readonly string[] {
  const { glyphs, paint, columns } = style;
  const ledger = options.ledger ?? ledgerOf(facts);
  if (!facts.reached) return [`${facts.node}  ${glyphs.unknown} not seen: ${facts.failure.sentence}`];
  if (!ledger)
    return [`${facts.node}  ${glyphs.unknown} ${facts.memory.known ? 'unknown' : facts.memory.why}`];
  const left = `${facts.node}  ${gibNumber(ledger.totalBytes)} GiB${ledger.unified ? '  unified' : ''}`;
  const right = `looked ${when(facts.at, style.now)}`;
  const cells = Math.max(20, Math.min(60, columns - 40));
  const { scaleBytes, reserveBytes } = options;
  const bar = memoryBar(ledger, { cells, scaleBytes, reserveBytes, glyphs, paint });
  return [
    `${paint.strong(left)}${' '.repeat(Math.max(2, columns - width(left) - width(right)))}${paint.quiet(right)}`,
    `${bar}   ${gibNumber(ledger.availableBytes)} available, ${gibNumber(ledger.freeBytes)} free`,
    ...rows(ledger, style),
    ...wrap(
      [
        `swap ${sizeOrNot(ledger.swapFreeBytes)} free of ${sizeOrNot(ledger.swapTotalBytes)}`,
        ...gpuWords(facts),
      ].join('     '),
      columns,
    ),
  ];
}

function sizeOrNot(bytes: number | undefined): string {
  return bytes === undefined ? '?' : gibNumber(bytes);
}

/** "0.1 dirty", "52 MiB dirty", "nothing dirty" */
export function dirtyWords(bytes: number): string {
  if (bytes === 0) return 'nothing dirty';
  const small = gib(bytes);
  return `${small.endsWith('MiB') ? small : gibNumber(bytes)} dirty`;
}

/** "GPU 3 %, 46 °C, 18 W", as of the look. */
function gpuWords(facts: NodeFacts): readonly string[] {
  const gpus = facts.reached ? (valueIf(facts.gpus) ?? []) : [];
  return gpus.flatMap(({ index, heat }) => {
    const figures = [
      heat?.usePercent === undefined ? '' : `${Math.round(heat.usePercent)} %`,
      heat?.celsius === undefined ? '' : `${Math.round(heat.celsius)} °C`,
      heat?.watts === undefined ? '' : `${Math.round(heat.watts)} W`,
    ].filter((figure) => figure !== '');
    return figures.length === 0 ? [] : [`GPU${gpus.length > 1 ? ` ${index}` : ''} ${figures.join(', ')}`];
  });
}

function rows(ledger: Ledger, style: Style): readonly string[] {
  const { glyphs, columns } = style;
  const row = (bytes: number, glyph: string, name: string, about: string): string =>
    `${gibNumber(bytes).padStart(6)}  ${glyph} ${fill(name, 18, glyphs.ellipsis)} ${about}`.trimEnd();
  const lines = ledger.others.map((holder) =>
    fill(
      row(holder.bytes, glyphs.others, holder.name, ownerWords(holder)),
      columns,
      glyphs.ellipsis,
    ).trimEnd(),
  );
  if (ledger.oursBytes > 0)
    lines.push(row(ledger.oursBytes, glyphs.ours, 'ours', 'ranks that firstlight started'));
  lines.push(row(ledger.systemBytes, glyphs.system, 'system', ''));
  if (ledger.unaccountedBytes > 0) {
    lines.push(
      row(
        ledger.unaccountedBytes,
        glyphs.unaccounted,
        'unaccounted',
        'held by the driver or small processes',
      ),
    );
  }
  const { dirtyBytes } = ledger;
  const dirty = dirtyBytes === undefined ? '' : dirtyWords(dirtyBytes);
  lines.push(row(ledger.cacheBytes, glyphs.cache, 'page cache', dirty));
  return lines;
}

/** "system service, restarts always", "container of user lab, restart always", "process of root, pid 48122, for 9 h". */
export function ownerWords(holder: Holder): string {
  const ran = holder.ageSeconds.known ? `, for ${age(holder.ageSeconds.value)}` : '';
  switch (holder.owner.kind) {
    case 'container': {
      const policy = holder.owner.restartPolicy;
      return `container of user ${holder.user}${policy.known && policy.value !== 'no' ? `, restart ${policy.value}` : ''}`;
    }
    case 'unit': {
      const whose =
        holder.owner.userUnitUid === undefined ? 'system service' : `service of user ${holder.user}`;
      const restart = holder.owner.restart;
      return `${whose}${restart.known && restart.value !== 'no' ? ', restarts by itself' : ''}`;
    }
    case 'process':
      return `process of ${holder.user}, pid ${holder.pid}${ran}`;
    case 'rank':
      return holder.owner.orphan === undefined
        ? `rank of ours, ${holder.owner.name}`
        : `left by our rank ${holder.owner.name}, pid ${holder.pid}${ran}`;
    case 'untouchable':
      return `${holder.owner.what}, left alone`;
  }
}
