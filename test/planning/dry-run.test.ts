import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Plan } from '../../src/domain/plan.ts';
import { gib } from '../../src/domain/units.ts';
import { plan } from '../../src/planning/plan.ts';
import { sparkNodes, sparkRecipe, sparks, storyFacts } from '../pretend/facts.ts';

/** The dry run as data: everything a person would be shown before saying yes. */
function shown(made: Plan): unknown {
  return {
    digest: made.digest,
    state: made.state,
    phases: made.phases.map((phase) => ({
      kind: phase.kind,
      steps: phase.steps.map(({ command, guard, undo, ...step }) => ({
        ...step,
        guard: guard?.argv,
        command: [command.sudo === true ? 'as root' : 'as the user', ...command.argv.slice(3)],
        undo: undo.kind === 'command' ? { title: undo.title, args: undo.command.argv.slice(3) } : undo,
      })),
      services: phase.services,
    })),
    memory: made.memory.map(({ node, verdict, rules, ...bytes }) => ({
      node,
      verdict,
      ...Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, gib(value)])),
      rules,
    })),
    blockers: made.blockers,
    warnings: made.warnings,
  };
}

test('the dry run of the two-sparks story is the one that was read in review', () => {
  const made = plan({
    cluster: sparks,
    nodes: sparkNodes,
    recipe: sparkRecipe({ network: 'engine' }),
    recipeDigest: 'aaaabbbbccccdddd',
    edits: [],
    engine: 'sglang',
    facts: storyFacts(),
    sudo: { 'spark-a': true, 'spark-b': true },
    replace: false,
  });
  const file = new URL('../samples/plans/two-sparks.json', import.meta.url);
  const text = `${JSON.stringify(shown(made), null, 2)}\n`;
  if (process.env['UPDATE'] === '1') writeFileSync(file, text);
  expect(text).toBe(readFileSync(file, 'utf8'));
});
