import { quote } from '../../domain/quote.ts';

/**
 * One line of sh that gives a variable its value and lets child processes see it. The value arrives as it is,
 * whatever it holds; a NUL, which no shell can hold, or a name that is none is our bug and throws.
 */
export function assign(name: string, value: string): string {
  if (!/^[A-Z_][A-Z0-9_]*$/.test(name)) throw new Error(`${name} is no name of a shell variable`);
  return `${name}=${quote(value)}\nexport ${name}\n`;
}
