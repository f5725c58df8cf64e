import { type Fact, known, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { firstLine } from './output.ts';

/** How root can be had. `sudo -n` never asks, and never reads a password. */
export const sudoProbe: Probe = {
  name: 'sudo',
  timeoutSeconds: 12,
  script: String.raw`
[ "${'$'}{FL_UID:-$(id -u)}" = 0 ] && { echo root; exit 0; }
command -v sudo >/dev/null 2>&1 || { echo missing; exit 0; }
out=$(sudo -n true 2>&1); printf 'code %s\n%s\n' "$?" "$out"
`,
};

/** What `sudo -n true` said → free, password, or none. */
export function parseSudo(output: ProbeOutput | undefined): Fact<'free' | 'password' | 'none'> {
  const text = output?.stdout ?? '';
  if (/^root$/m.test(text)) return known('free');
  if (/^missing$/m.test(text)) return known('none');
  if (/^code 0$/m.test(text)) return known('free');
  if (/password is required|authentication is required/i.test(text)) return known('password');
  if (
    /not in the sudoers|may not run sudo|not allowed to|no new privileges|must be owned by uid 0|must have a tty|command not found|: not found/i.test(
      text,
    )
  ) {
    return known('none');
  }
  if (output?.timedOut) return unknown('sudo gave no answer in time');
  return unknown(firstLine(text.replace(/^code \d+$/m, '')) || 'sudo said nothing');
}
