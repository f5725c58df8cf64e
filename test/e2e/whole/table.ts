import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';

/** What became of one fault or holder. */
export type Row = {
  readonly what: string;
  readonly seen: string;
  readonly named: string;
  readonly done: string;
  readonly seconds: number;
};

const FILE = 'FIRSTLIGHT_E2E_TABLE';

/** Adds a row to the table that is printed when the suite has ended. */
export function tell(row: Row): void {
  const file = process.env[FILE];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(row)}\n`);
}

/** Where the rows of this run are kept; every worker of the suite has it in its environment. */
export function openTable(file: string): void {
  process.env[FILE] = file;
}

export function printTable(): void {
  const file = process.env[FILE];
  if (file === undefined || !existsSync(file)) return;
  const rows = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line): Row => JSON.parse(line));
  rmSync(file);
  const head = ['what', 'seen', 'named', 'done', 'seconds'];
  const cells = rows.map((row) => [row.what, row.seen, row.named, row.done, row.seconds.toFixed(1)]);
  const widths = head.map((_, at) =>
    Math.min(60, Math.max(...[head, ...cells].map((row) => row[at]?.length ?? 0))),
  );
  for (const row of [head, ...cells])
    console.log(
      row
        .map((cell, at) => cell.slice(0, 60).padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}
