import type { Letter, WholeFleet } from '../whole/fleet.ts';
import type { Bystander } from './bystanders.ts';

/** Somebody who comes for one round and is in the way: the port that the head wants, or too much of its memory. */
export type Squatter = Bystander & { readonly gone: (fleet: WholeFleet) => void };

export const SQUATS = ['port', 'unit', 'process'] as const;

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
      : `/srv/bin/node /srv/hold.mjs ${name} mib 768`;
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
