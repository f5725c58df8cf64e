import { inForeground } from './foreground.ts';
import { type KeyPress, pressesIn } from './keys.ts';
import type { SecretInput } from './secret.ts';

/** A terminal that is read key by key. Off, it is as it was before: line mode, echo, signals by the terminal. */
export type KeyInput = {
  readonly reads: () => boolean;
  readonly on: () => void;
  readonly off: () => void;
};

/** Reads keys once it is switched on; what is no terminal is never read. */
export function keyInput(input: SecretInput, pressed: (press: KeyPress) => void): KeyInput {
  let reads = false;
  const data = (chunk: Buffer | string): void => {
    for (const press of pressesIn(chunk.toString())) pressed(press);
  };
  const setRaw = (raw: boolean): boolean => {
    try {
      input.setRawMode?.(raw);
      return true;
    } catch {
      return false; // the terminal is gone, and its modes with it
    }
  };
  const off = (): void => {
    if (!reads) return;
    reads = false;
    input.removeListener('data', data);
    input.removeListener('end', off);
    input.pause();
    if (inForeground()) setRaw(false); // else the shell has set its own, and to touch them would stop this process
  };
  // A terminal that was closed gives an error; the run goes on without keys. It stays for what comes after `off`.
  if (input.isTTY === true) input.on('error', off);
  return {
    reads: () => reads,
    on: () => {
      if (reads || input.isTTY !== true || input.setRawMode === undefined) return;
      // Where a shell has changed the modes meanwhile, Node would take them for raw still.
      if (input.isRaw === true) setRaw(false);
      if (!setRaw(true)) return;
      reads = true;
      input.on('data', data);
      input.once('end', off);
      input.resume();
    },
    off,
  };
}
