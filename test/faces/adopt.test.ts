import { expect, test } from 'vitest';
import type { AdoptReport } from '../../src/domain/report.ts';
import { operation, run, Terminal } from './run-cli.ts';

const adopts = { rank: ['0=spark-a:4711', '1=spark-b:hand'], engine: 'sglang', port: 30000 } as const;
const FOUND: AdoptReport = {
  kind: 'adopt',
  ranks: [
    { rank: 0, node: 'spark-a', target: '4711', text: 'sglang serve --nnodes 2 --node-rank 0' },
    { rank: 1, node: 'spark-b', target: 'hand', text: 'sglang serve --nnodes 2 --node-rank 1' },
  ],
  adopts,
  command: 'firstlight adopt --rank 0=spark-a:4711 --rank 1=spark-b:hand --engine sglang --port 30000',
};
const NONE: AdoptReport = { kind: 'adopt', ranks: [], adopts: undefined, command: undefined };

/** Finds a pair where it is told nothing, and remembers what it was told. */
function adopting(found: AdoptReport) {
  const told: unknown[] = [];
  const adopt = operation('adopt', async (input) => {
    told.push(input);
    return told.length === 1 ? { report: found, exit: 0 } : { report: NONE, exit: 0 };
  });
  return { told, adopt };
}

async function answered(
  word: string,
): Promise<{ readonly told: readonly unknown[]; readonly stdout: string }> {
  const { told, adopt } = adopting(FOUND);
  const stdin = new Terminal();
  stdin.write(`${word}\n`);
  const { stdout } = await run(['adopt'], [adopt], { stdin, stderr: new Terminal() });
  return { told, stdout };
}

test('what was found is asked about on a terminal, and only yes adopts it', async () => {
  const yes = await answered('yes');
  expect(yes.told).toMatchObject([{ rank: [] }, { ...adopts, recipe: 'by-hand' }]);
  expect(yes.stdout).toContain('rank 1  spark-b  hand  sglang serve');
  expect((await answered('y')).told).toHaveLength(1);
  expect((await answered('')).told).toHaveLength(1);
});

test('in a pipe nobody is asked: the command that adopts it is printed', async () => {
  const { told, adopt } = adopting(FOUND);
  const { stdout } = await run(['adopt'], [adopt]);
  expect(told).toHaveLength(1);
  expect(stdout).toContain(`  ${FOUND.command}`);
});

test('flags of a rank and its log come apart in lists, and stay together', async () => {
  const { told, adopt } = adopting(NONE);
  await run(
    ['adopt', '--rank', '0=spark-a:1,log=/a.log', '--rank', '1=spark-b:2', '--engine', 'vllm'],
    [adopt],
  );
  expect(told).toMatchObject([{ rank: ['0=spark-a:1', 'log=/a.log', '1=spark-b:2'], engine: 'vllm' }]);
});
