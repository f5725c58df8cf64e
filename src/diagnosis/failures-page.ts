import type { Finding } from '../domain/finding.ts';
import { type Cause, causes, FAMILIES, furtherCauses } from '../knowledge/causes.ts';
import { remedies } from '../knowledge/remedies/index.ts';
import { signatures } from '../knowledge/signatures/index.ts';
import { evidenceOfTexts } from './offline.ts';
import { verdictOf } from './verdict.ts';

const SHOWN = 4;
const LONGEST = 240;
const PLACES: Readonly<Record<Cause['place'], string>> = {
  rank: 'on the node that shows it',
  launcher: 'where it was launched',
  network: 'between the nodes',
  client: 'at the client',
  both: 'on all nodes',
  none: 'nowhere',
};

/**
 * docs/failures.md: every cause, those beyond the closed list too, with how it looks, why and what ends it, made of the signatures and remedies; `samples`
 * are logs by name, of which the first that shows a cause is its example.
 */
export function failuresPage(samples: readonly Readonly<Record<string, Uint8Array>>[]): string {
  const examples = new Map<string, Finding>();
  const looks = signatures.flatMap((one) => (one.looks === undefined ? [] : [one.looks]));
  for (const texts of [
    ...samples,
    ...looks.map((lines) => ({ head: Buffer.from(`${lines.join('\n')}\n`) })),
  ]) {
    const { finding } = verdictOf(evidenceOfTexts(texts));
    if (finding !== undefined && !examples.has(finding.cause)) examples.set(finding.cause, finding);
  }
  const families = Object.entries(FAMILIES).map(([letter, name]) =>
    [
      `# ${letter}. ${name}`,
      ...[...causes, ...furtherCauses]
        .filter(({ family }) => family === letter)
        .map((cause) => entry(cause, examples.get(cause.slug))),
    ].join('\n\n'),
  );
  return `${[HEAD, ...families].join('\n\n')}\n`;
}

const HEAD = `<!-- Generated from the signatures and remedies by npm run docs. -->

What keeps a model from coming up on several hosts, by cause: how it looks, why, and what ends it. \`firstlight diagnose\` names one of these and prints the address of its entry here. The examples are lines of real logs with neutral names; values differ.`;

function entry(cause: Cause, example: Finding | undefined): string {
  const { slug, meaning } = cause;
  const known = signatures.filter((one) => one.causes.includes(slug));
  return [
    `## ${slug}`,
    meaning,
    ...looksOf(known, example),
    ...(example === undefined ? [] : [`**Why.** ${example.why}`]),
    cureOf(
      cause,
      example,
      known.flatMap(({ cure }) => cure ?? []),
    ),
    ...(known.length === 0
      ? ['No signature names it yet; it is told by facts of the hosts, or not at all.']
      : [`*Seen on: ${[...new Set(known.map(({ seenOn }) => seenOn))].join('; ')}.*`]),
  ].join('\n\n');
}

function looksOf(
  known: readonly {
    readonly looks?: readonly string[];
    readonly patterns: readonly { readonly literals: readonly string[] }[];
  }[],
  example: Finding | undefined,
): readonly string[] {
  const quoted = [...new Set((example?.quotes ?? []).map(({ text }) => text.trim()))];
  const looks = quoted.length > 0 ? quoted : known.flatMap((one) => one.looks ?? []);
  if (looks.length > 0)
    return ['**How it looks.**', `\`\`\`text\n${looks.slice(0, SHOWN).map(cut).join('\n')}\n\`\`\``];
  const literals = [...new Set(known.flatMap(({ patterns }) => patterns.flatMap((one) => one.literals)))];
  if (literals.length === 0) return [];
  return [
    `**How it looks.** Lines with ${literals
      .slice(0, SHOWN)
      .map((one) => `\`${one.trim()}\``)
      .join(', ')}.`,
  ];
}

function cut(line: string): string {
  return line.length > LONGEST ? `${line.slice(0, LONGEST)} …` : line;
}

function cureOf(cause: Cause, example: Finding | undefined, told: readonly string[]): string {
  const tried = remedies.filter((one) => one.causes.includes(cause.slug)).map(({ name }) => `\`${name}\``);
  const ours = tried.length === 0 ? '' : ` \`firstlight up\` tries by itself: ${tried.join(', ')}.`;
  const advice = [...new Set([...told, ...(example?.advice ?? [])])].filter(
    (one) => !one.startsWith('Read the whole'),
  );
  if (cause.cure === 'no-one')
    return `**Cure.** None is needed.${advice.length === 0 ? '' : `\n\n${bullets(advice)}`}`;
  const who = tried.length > 0 ? ours : cause.cure === 'person' ? ' A person has to.' : '';
  return `**Cure.** The fault lies ${PLACES[cause.place]}.${who}${advice.length === 0 ? '' : `\n\n${bullets(advice)}`}`;
}

function bullets(lines: readonly string[]): string {
  return lines.map((line) => `- ${line.replaceAll('\n', ' ')}`).join('\n');
}
