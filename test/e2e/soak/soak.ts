import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { randomOf } from '../../../src/lab/random.ts';
import { whyNot } from '../fleet.ts';
import { GIB, WholeFleet } from '../whole/fleet.ts';
import { BYSTANDERS, type Bystander, identityOf } from './bystanders.ts';
import { playRound, type Round, type Soak } from './round.ts';

const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 600);
const SEED = process.env['SOAK_SEED'] ?? String(Math.floor(Math.random() * 1e6));
/** What is spare while nobody squats; a squatter takes more. */
const SPARE = 0.35 * GIB;

const HEAD = ['round', 'hosts', 'what befell', 'outcome', 'named', 'seconds', 'violations'] as const;
const WIDTHS = [5, 8, 64, 24, 40, 7, 10] as const;

test(
  'eight hosts, random faults, and a bring-up all the while',
  async () => {
    const why = whyNot();
    if (why !== undefined) throw new Error(`the soak cannot run here: ${why}`);
    console.log(`seed ${SEED}, ${SECONDS} s; the same again: SOAK_SEED=${SEED} npm run soak`);
    const fleet = new WholeFleet(8);
    const rounds: Round[] = [];
    try {
      const soak = await ready(fleet);
      const end = Date.now() + SECONDS * 1000;
      console.log(row(HEAD));
      for (let number = 1; Date.now() < end; number += 1) {
        const round = await playRound(soak, number);
        rounds.push(round);
        console.log(row(cellsOf(round)));
        for (const violation of round.violations) console.log(`      ! ${violation}`);
        if (round.violations.length > 0) console.log(`      all that was told: ${keep(round)}`);
      }
    } finally {
      fleet.down();
    }
    const bad = rounds.filter((round) => round.violations.length > 0);
    console.log(summary(rounds));
    expect(
      bad.map((round) => round.number),
      `rounds with violations, seed ${SEED}`,
    ).toEqual([]);
    expect(rounds.length).toBeGreaterThan(0);
  },
  (SECONDS + 900) * 1000,
);

async function ready(fleet: WholeFleet): Promise<Soak> {
  fleet.up();
  for (const host of ['a', 'b'] as const) fleet.must(host, 'root', 'docker import /srv/image.tar tiny');
  fleet.must('c', 'root', 'loginctl enable-linger aurora');
  fleet.login('c', 'podman import /srv/image.tar localhost/tiny');
  for (const bystander of BYSTANDERS) bystander.start(fleet);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const identities = new Map<Bystander, string | undefined>();
  for (const bystander of BYSTANDERS) {
    const identity = identityOf(fleet, bystander);
    if (identity === undefined) throw new Error(`${bystander.name} does not run on spark-${bystander.host}`);
    identities.set(bystander, identity);
  }
  const free = Math.min(...fleet.letters.map((host) => fleet.available(host)));
  const reserve = new Map<number, number>();
  for (const size of [2, 4, 8]) {
    fleet.writeRecipe({ nodes: fleet.letters.slice(0, size) });
    const { sum, error } = await fleet.need();
    reserve.set(size, Math.max(0, free - sum - error - SPARE));
  }
  return { fleet, random: randomOf(SEED), reserve, identities, left: [] };
}

/** Keeps the events of a round for whoever looks into it; the hosts will be gone by then. */
function keep({ number, told }: Round): string {
  const file = join(tmpdir(), `firstlight-soak-${SEED}-${number}.jsonl`);
  const events = told.flatMap((one) => [
    ...one.events.map((event) => JSON.stringify(event)),
    JSON.stringify({ exit: one.code, stderr: one.stderr }),
  ]);
  writeFileSync(file, `${events.join('\n')}\n`);
  return file;
}

function cellsOf(round: Round): readonly string[] {
  return [
    String(round.number),
    round.hosts.join(''),
    round.befell,
    round.outcome,
    round.named,
    round.seconds.toFixed(1),
    String(round.violations.length),
  ];
}

function row(cells: readonly string[]): string {
  return cells
    .map((cell, at) => cell.padEnd(WIDTHS[at] ?? 0))
    .join('  ')
    .trimEnd();
}

function summary(rounds: readonly Round[]): string {
  const count = (fits: (round: Round) => boolean) => rounds.filter(fits).length;
  return [
    '',
    `${rounds.length} rounds, seed ${SEED}:`,
    `  ended serving        ${count((round) => /(serving|nothing-to-do)$/.test(round.outcome) && !round.outcome.endsWith('not-serving'))}`,
    `  ended with a finding ${count((round) => round.outcome.endsWith('not-serving'))}`,
    `  asked for consent    ${count((round) => round.outcome.includes('consent-needed'))}`,
    `  with a violation     ${count((round) => round.violations.length > 0)}`,
  ].join('\n');
}
