import { spawn } from 'node:child_process';

/** Shows an address in the browser of whoever sits at this machine; where there is no screen nothing happens. */
export function openPage(address: string): void {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  const mac = process.platform === 'darwin';
  if (!mac && !DISPLAY && !WAYLAND_DISPLAY) return;
  const child = spawn(mac ? 'open' : 'xdg-open', [address], { stdio: 'ignore', detached: true });
  // No such program: the address stands in the terminal all the same.
  child.on('error', () => undefined);
  child.unref();
}
