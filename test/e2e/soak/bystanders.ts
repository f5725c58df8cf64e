import type { Letter, WholeFleet } from '../whole/fleet.ts';

/** Somebody else's work on a host, which no bring-up may touch unless it was allowed to. */
export type Bystander = {
  /** A word of its command line, by which hosts' own tools find it. */
  readonly name: string;
  readonly host: Letter;
  readonly what: string;
  /** A name that commands which stop it would use: its unit's or its container's. */
  readonly handle: string;
  readonly keptBy: 'systemd' | 'docker' | 'nobody';
  readonly start: (fleet: WholeFleet) => void;
};

const hold = (name: string): string => `/srv/bin/node /srv/hold.mjs ${name} mib 64`;
const box = (name: string): string => `-v /srv:/srv:ro tiny ${hold(name)}`;
/** Shell that makes and starts a unit which holds a little memory, and comes back with its host. */
export const unit = (name: string, more = ''): string =>
  `printf '%b' '[Service]\\nExecStart=${hold(name)}\\nRestart=always\\n${more}[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/${name}.service && systemctl daemon-reload && systemctl enable -q --now ${name}`;
/** Shell that starts the same by hand, as whoever runs it. */
export const loose = (name: string): string => `cd /tmp && setsid ${hold(name)} </dev/null >/dev/null 2>&1 &`;

/** One kind of holder on each host: containers, units, and processes of three users. */
export const BYSTANDERS: readonly Bystander[] = [
  {
    name: 'comfy',
    host: 'a',
    what: 'container, restart: always',
    handle: 'comfy',
    keptBy: 'docker',
    start: (fleet) =>
      void fleet.must('a', 'root', `docker run -d --name comfy --restart always ${box('comfy')}`),
  },
  {
    name: 'studio',
    host: 'b',
    what: 'container, restart: always',
    handle: 'studio',
    keptBy: 'docker',
    start: (fleet) =>
      void fleet.must('b', 'root', `docker run -d --name studio --restart always ${box('studio')}`),
  },
  {
    name: 'notes',
    host: 'c',
    what: 'podman container',
    handle: 'notes',
    keptBy: 'nobody',
    start: (fleet) =>
      void fleet.login('c', `podman run -d --replace --name notes --network host ${box('notes')}`),
  },
  {
    name: 'embedder',
    host: 'd',
    what: 'system unit',
    handle: 'embedder.service',
    keptBy: 'systemd',
    start: (fleet) => void fleet.must('d', 'root', unit('embedder', 'User=lab\\n')),
  },
  {
    name: 'thesis',
    host: 'e',
    what: 'other user’s process',
    handle: 'thesis',
    keptBy: 'nobody',
    start: (fleet) => void fleet.must('e', 'lab', loose('thesis')),
  },
  {
    name: 'night-job',
    host: 'f',
    what: 'root process',
    handle: 'night-job',
    keptBy: 'nobody',
    start: (fleet) => void fleet.must('f', 'root', loose('night-job')),
  },
  {
    name: 'own-job',
    host: 'g',
    what: 'process of the same user',
    handle: 'own-job',
    keptBy: 'nobody',
    start: (fleet) => void fleet.must('g', 'aurora', loose('own-job')),
  },
  {
    name: 'oracle',
    host: 'h',
    what: 'root unit',
    handle: 'oracle.service',
    keptBy: 'systemd',
    start: (fleet) => void fleet.must('h', 'root', unit('oracle')),
  },
];

/** Who it is, as its host tells: boot, pid and start of its process; undefined where it does not run. */
export function identityOf(fleet: WholeFleet, { name, host }: Bystander): string | undefined {
  const { stdout } = fleet.on(
    host,
    'root',
    `for p in $(pgrep -f '[h]old.mjs ${name} mib'); do echo "$(cat /proc/sys/kernel/random/boot_id) $p $(sed 's/.*) //' /proc/$p/stat | cut -d' ' -f20)"; done`,
  );
  return stdout.trim().split('\n').sort()[0] || undefined;
}

/**
 * What the host's own journals say was done to it since that moment by the user that firstlight logs in as, and what
 * docker was told about it: each a line; none where nobody laid a hand on it. A daemon that was restarted by the fault
 * itself tells of its own doing, and is not asked.
 */
export function deedsAgainst(
  fleet: WholeFleet,
  bystander: Bystander,
  before: string | undefined,
  sinceSeconds: number,
  restarted: boolean,
): readonly string[] {
  const { host, handle, keptBy } = bystander;
  const since = Math.floor(sinceSeconds);
  // A unit is stopped by its name and a process by its pid; sudo writes down every command with all its words.
  const pid = before?.split(' ')[1] ?? 'none';
  const journal = `journalctl -q --no-pager -o cat --since @${since} SYSLOG_IDENTIFIER=sudo | grep -E -- 'COMMAND=.*( |/)(${handle.replaceAll('.', '[.]')}|${pid})( |$)'`;
  const docker = `docker events --since ${since} --until "$(date +%s)" --filter container=${handle} --format '{{.Action}} {{.Actor.Attributes.name}}' | grep -E '^(kill|stop|pause|update|destroy|rename)'`;
  const { stdout } = fleet.on(
    host,
    'root',
    `{ ${journal}; ${keptBy === 'docker' && !restarted ? docker : 'true'}; } 2>/dev/null; true`,
  );
  return stdout.split('\n').filter((line) => line.trim() !== '');
}
