/** What nvidia-smi printed as CSV, as a table that can be asked for other columns in another order. */
export type SmiTable = { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };

/** "name, memory.total [MiB]" and rows below → table; `columns` where the sample was taken without a header. */
export function readTable(csv: string, columns?: readonly string[]): SmiTable {
  const lines = csv.split('\n').filter((line) => line.trim() !== '');
  const header = columns ?? (lines.shift() ?? '').split(',').map((each) => each.trim());
  const names = header.map((each) => each.replace(/ \[.*\]$/, ''));
  const rows = lines.map((line) => {
    const cells = line.split(',').map((each) => each.trim());
    // A process name may hold commas and is the last but one column in these samples at most once.
    return cells.slice(0, names.length);
  });
  return { columns: names, rows };
}

/** The rows as `--format=csv,noheader,nounits` would print these fields; fields without a record get `fill`. */
export function answer(
  table: SmiTable,
  fields: readonly string[],
  fill: Readonly<Record<string, string>>,
): string {
  return table.rows
    .map((row, at) =>
      fields
        .map((field) => {
          if (field === 'index' && !table.columns.includes('index')) return String(at);
          const value = row[table.columns.indexOf(field)];
          return (value ?? fill[field] ?? '[N/A]').replace(/ (MiB|W|%|MHz)$/, '');
        })
        .join(', '),
    )
    .map((line) => `${line}\n`)
    .join('');
}
