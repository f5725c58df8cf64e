import { constants } from 'node:os';

/** As a shell and docker tell it: 128 + n for a signal. */
export function exitCode(bySignal: NodeJS.Signals | null, code: number | null): number {
  return bySignal === null ? (code ?? 137) : 128 + constants.signals[bySignal];
}

/** `TERM`, `SIGTERM` or `15` → the signal; throws in dockerd's words. */
export function signalNamed(text: string): NodeJS.Signals {
  const name = `SIG${text.toUpperCase().replace(/^SIG/, '')}`;
  const found = Object.entries(constants.signals).find(
    ([known, number]) => known === name || String(number) === text,
  )?.[0];
  if (found === undefined || !isSignal(found)) {
    throw new Error(`Error response from daemon: Invalid signal: ${text}`);
  }
  return found;
}

function isSignal(name: string): name is NodeJS.Signals {
  return name in constants.signals;
}
