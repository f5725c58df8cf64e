import type { Command, Help } from 'commander';
import { pad, width, wrap } from './width.ts';

/** Columns that the terms of a list take at most, as a share of all: a longer one stands on a line of its own. */
const TERMS = 0.45;

/** What commander puts before the usage. */
const USAGE = 'Usage: ';

/** Lays help out in so many columns: lines break at spaces, and only a word that is longer than a line sticks out. */
export function layOut(program: Command, columns: number): void {
  const layout: Partial<Help> = {
    styleUsage: (text) => wrap(text, columns - USAGE.length).join(`\n${' '.repeat(USAGE.length)}`),
    boxWrap: (text, room) => wrap(text, Math.max(1, room)).join('\n'),
    formatItem(term, widest, description) {
      if (description === '') return `  ${term}`;
      const terms = Math.min(widest, Math.floor(columns * TERMS));
      const indent = ' '.repeat(terms + 4);
      const lines = wrap(description, columns - indent.length);
      return width(term) <= terms
        ? `  ${pad(term, terms)}  ${lines.join(`\n${indent}`)}`
        : [`  ${term}`, ...lines.map((line) => `${indent}${line}`)].join('\n');
    },
  };
  for (const command of [program, ...program.commands]) {
    command.configureHelp({ ...command.configureHelp(), ...layout });
    command.configureOutput({ getOutHelpWidth: () => columns, getErrHelpWidth: () => columns });
  }
}

/** A command to be copied, indented: what does not fit goes on behind a backslash, as a shell takes it. */
export function commandLines(command: string, columns: number): string {
  const whole = `  ${command}`;
  if (width(whole) <= columns) return whole;
  const joined = command.replace(/(--[\w-]+) (?=[^-])/g, '$1\u00a0'); // a flag and its value stay together
  const [first = '', ...more] = wrap(joined, columns - 6).map((line) => line.replaceAll('\u00a0', ' '));
  return [`  ${first}`, ...more.map((line) => `    ${line}`)].join(' \\\n');
}
