import { unknown } from '../../domain/facts.ts';
import type { ProbeOutput } from '../../domain/probe.ts';

/** Why a probe gave nothing to read, as a Fact: it ran too long, or was not run, or failed with what it said. */
export function gaveNothing(output: ProbeOutput | undefined, what: string) {
  if (output === undefined) return unknown(`${what}: this part of the look brought nothing back`);
  if (output.timedOut) return unknown(`${what}: no answer in time`);
  const said = firstLine(output.stderr) || firstLine(output.stdout);
  return unknown(`${what}: ${said || `nothing to read (exit ${output.code})`}`);
}

/** What a probe printed up to its last line end: a line that was cut off may end in half a number. */
export function wholeLines(output: ProbeOutput | undefined): string {
  const text = output?.stdout ?? '';
  return text.slice(0, text.lastIndexOf('\n') + 1);
}

/** Lines of a text without the empty ones; carriage returns dropped. */
export function linesOf(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => line !== '');
}

/** The first line that says something, control characters gone, 200 characters at most. */
export function firstLine(text: string): string {
  const line = text.split(/\r?\n/).find((each) => each.trim() !== '') ?? '';
  return printable(line).slice(0, 200);
}

/** Text from a host as it may be shown: no control, format or direction characters. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]+/gu, ' ').trim();
}

/** "key rest of the line" → [key, rest]; no blank: [line, '']. */
export function headAndRest(line: string): readonly [string, string] {
  const at = line.indexOf(' ');
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

/** A whole number of at most 15 digits, or undefined. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
