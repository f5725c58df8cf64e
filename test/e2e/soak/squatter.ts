import type { Letter, WholeFleet } from '../whole/fleet.ts';
import type { Bystander } from './bystanders.ts';

/** Somebody who comes for one round and is in the way: the port that the head wants, or too much of its memory. */
export type Squatter = Bystander & { readonly gone: (fleet: WholeFleet) => void };

export const SQUATS = ['port', 'unit', 'process'] as const;

const MIB = 768;

/** Starts one on that host, under a name of its own. */
export function squat(
  fleet: WholeFleet,
  kind: (typeof SQUATS)[number],
  host: Letter,
  round: number,
): Squatter {
  const name = `guest-${round}`;
  const command =
    kind === 'port'
      ? `/srv/bin/node /srv/hold.mjs ${name} mib 32 listen 30000`
      : `/srv/bin/node /srv/hold.mjs ${name} mib ${MIB}`;
  const start =
    kind === 'unit'
      ? () =>
          void fleet.must(
            host,
            'root',
            `printf '%b' '[Service]\\nExecStart=${command}\\nRestart=always\\n' >/run/systemd/system/${name}.service && systemctl daemon-reload && systemctl start ${name}`,
          )
      : // Whose a port of another user is cannot be seen without root, so that is nothing to consent to.
        () =>
          void fleet.must(
            host,
            kind === 'port' ? 'aurora' : 'lab',
            `cd /tmp && setsid ${command} </dev/null >/dev/null 2>&1 &`,
          );
  start();
  // It is in the way once it has all of it.
  const has =
    kind === 'port'
      ? "ss -ltnH 'sport = :30000' | grep -q ."
      : `[ "$(awk '/^VmRSS/ {print $2}' "/proc/$(pgrep -of '[h]old.mjs ${name} mib')/status")" -gt ${MIB * 1024} ]`;
  fleet.must(host, 'root', `for _ in $(seq 100); do ${has} 2>/dev/null && exit 0; sleep 0.1; done; exit 1`);
  return {
    name,
    host,
    what: kind,
    handle: kind === 'unit' ? `${name}.service` : name,
    keptBy: 'nobody',
    start,
    gone: () =>
      void fleet.on(
        host,
        'root',
        kind === 'unit'
          ? `systemctl stop ${name}; rm -f /run/systemd/system/${name}.service; systemctl daemon-reload`
          : `pkill -f '[h]old.mjs ${name} mib'`,
      ),
  };
}
