// A process of its own for sqlite-journal.test.ts: FOLDER RUN COUNT NAME (COUNT 0: until it is ended).
import { openJournal } from '../../src/journal/sqlite-journal.ts';

const [folder = '', run = '', count = '0', name = ''] = process.argv.slice(2);
const journal = openJournal(folder);
const id = run === 'new' ? journal.newRun() : run;
for (let at = 1; count === '0' || at <= Number(count); at++) {
  const { seq } = journal.append(id, { type: 'note', level: 'info', node: name, text: `${at}` });
  if (count === '0' && seq % 5 === 0) process.stdout.write(`${at}\n`);
}
process.stdout.write(`run ${id}\n`);
journal.close();
