import type { NodeFacts } from '../../domain/facts.ts';
import { ledgerOf } from '../../domain/ledger.ts';
import type { CheckItem, CheckReport } from '../../domain/report.ts';
import { gibNumber } from '../../domain/units.ts';

/** A verdict with what stands below it: who holds how much. */
export type ShownItem = CheckItem & { readonly more?: string };

/**
 * The verdicts as they are shown: where memory is to be cleared for the recipe, what is there, what is needed and who
 * holds it are one verdict of each node, and not one per holder; where it fits, one line and not two.
 */
export function memoryTogether(report: CheckReport): readonly ShownItem[] {
  return [
    ...report.facts.flatMap((facts) =>
      ofNode(
        facts,
        report,
        report.items.filter((item) => item.node === facts.node),
      ),
    ),
    ...report.items.filter((item) => !report.facts.some((facts) => facts.node === item.node)),
  ];
}

function ofNode(facts: NodeFacts, report: CheckReport, items: readonly CheckItem[]): readonly ShownItem[] {
  const ledger = ledgerOf(facts);
  const needed = report.memory.find((one) => one.node === facts.node);
  if (ledger === undefined || needed === undefined || needed.verdict === 'unknown') return items;
  const holders = items.filter((item) => item.level === 'blocks' && item.topic === 'holders');
  const fine = items.filter((item) => item.level === 'fine' && item.topic === 'memory');
  const title = `${gibNumber(ledger.availableBytes)} of ${gibNumber(ledger.totalBytes)} GiB available, the recipe needs ${gibNumber(needed.sumBytes)} ± ${gibNumber(needed.errorBytes)}`;
  const held = holders.map((item) => {
    const holder = ledger.others.find(({ name }) => item.title.startsWith(`${name} (`));
    const forever = item.remedy?.includes('cannot be brought back') === true;
    return holder && `${holder.name} ${gibNumber(holder.bytes)}${forever ? ' (cannot be brought back)' : ''}`;
  });
  if (holders.length > 0 && held.every((words) => words !== undefined)) {
    const them = holders.length === 1 ? 'it' : 'any of them';
    const remedy = `firstlight up asks before it stops ${them}`;
    const one = { level: 'blocks', topic: 'memory', node: facts.node, title, remedy } as const;
    return [
      { ...one, more: held.join(', ') },
      ...items.filter((item) => !holders.includes(item) && !fine.includes(item)),
    ];
  }
  if (fine.length < 2) return items;
  const one = { level: 'fine', topic: 'memory', node: facts.node, title, remedy: undefined } as const;
  return [...items.filter((item) => !fine.includes(item)), one];
}
