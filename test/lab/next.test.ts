import { expect, test } from 'vitest';
import { findStory } from '../../src/lab/stories/index.ts';
import { listed, nextInLab } from '../../src/lab-run.ts';

test('what to type next works from where one stands, with npx where npx was used', () => {
  expect(nextInLab('/tmp/lab', { npm_command: 'exec' })).toEqual([
    'export FIRSTLIGHT_CLUSTER=/tmp/lab/cluster.yaml',
    'export FIRSTLIGHT_HOME=/tmp/lab/home',
    'export FIRSTLIGHT_SUDO_PASSWORD_FILE=/tmp/lab/sudo-password',
    'npx firstlight up /tmp/lab/recipe.yaml',
    'npx firstlight lab down --dir /tmp/lab',
  ]);
  expect(nextInLab('/tmp/lab', {})).toContain('firstlight up /tmp/lab/recipe.yaml');
});

test('a folder with spaces is quoted for the shell', () => {
  expect(nextInLab("/tmp/my lab's", {})).toContain(`firstlight up '/tmp/my lab'\\''s/recipe.yaml'`);
});

test('stories are listed with their titles under each other', () => {
  const lines = listed([
    { name: 'short', title: 'One.' },
    { name: 'a-longer-name', title: 'Two.' },
  ]).split('\n');
  expect(lines.map((line) => line.indexOf('.') - 3)).toEqual([15, 15]);
});

test('a slip in the name of a story is told with the one that was meant', () => {
  expect(() => findStory('two-spraks')).toThrow('there is no story "two-spraks"; did you mean two-sparks?');
  expect(() => findStory('something else')).toThrow('there is no story "something else"');
});
