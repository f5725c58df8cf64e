import { type Cause, causes, FAMILIES, furtherCauses, unknownEntry } from './causes.ts';

/** docs/causes.md: the closed list, by family, then the slugs beyond it. */
export function causesPage(): string {
  const families = Object.entries(FAMILIES).map(
    ([letter, name]) =>
      `## ${letter}. ${name}\n\n${rows(causes.filter((cause) => cause.family === letter))}\n`,
  );
  return [
    '# Causes',
    '',
    'The closed list of causes that a finding may name, with what each means; generated from `src/knowledge/causes.ts`. A finding names one, and where the fault lies. Where none is recognised the cause is `unknown`: the finding then shows the lines that matter and says where to look.',
    '',
    rows([unknownEntry]),
    '',
    ...families,
    '## Beyond the list',
    '',
    'What planning and following the hosts see by themselves; no log names these.',
    '',
    rows(furtherCauses),
    '',
  ].join('\n');
}

function rows(all: readonly Cause[]): string {
  return all.map(({ slug, meaning }) => `- \`${slug}\`: ${meaning}`).join('\n');
}
