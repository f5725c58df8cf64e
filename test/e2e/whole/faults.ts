import type { Letter, WholeFleet } from './fleet.ts';

/** What breaks on a host, how it is mended, and what may be said of it. */
export type Fault = {
  readonly what: string;
  /** Hosts on which it can be made; all, where left out. */
  readonly hosts?: readonly Letter[];
  readonly strike: (fleet: WholeFleet, host: Letter) => void;
  readonly mend: (fleet: WholeFleet, host: Letter) => Promise<void> | void;
  /** What a finding may call it, by the closed list. */
  readonly causes: readonly string[];
  /** Whose work it ends by itself, ranks and foreign work alike: all of the host's, or what runs in its docker. */
  readonly ends?: 'host' | 'docker';
  /** No bring-up may fail of it. */
  readonly harmless?: true;
  /** A bring-up that begins while it lasts cannot come to serve. */
  readonly surely?: true;
  /** Ranks that meet it wait for many minutes, as real ones do: in a launch it is mended before that. */
  readonly brief?: true;
};

/** What a connection that stands already would not meet. */
const HANG_UP = `for p in $(pgrep -x sshd); do [ "$p" = "$(systemctl show -p MainPID --value ssh)" ] || kill -9 $p; done`;

/** Whether sshd greets whoever knocks now. */
const ADMITS = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/22; read -t 10 -r line <&3; [[ $line == SSH-* ]]' 2>/dev/null`;

/** What a rank says whose peer went silent: which of these depends on the moment. */
const PEER_SILENT = ['fabric-link-down', 'firewall-blocks-ports', 'worker-died-head-still-healthy'];
const AWAY = ['host-unreachable'];
const RESTARTED = ['host-restarted', ...AWAY];

export const FAULTS = {
  linkDown: {
    what: 'management link down',
    strike: (fleet, host) => void fleet.host('port', host, 'mgmt', 'down'),
    mend: (fleet, host) => void fleet.host('port', host, 'mgmt', 'up'),
    causes: AWAY,
  },
  fabricDown: {
    what: 'fabric link down',
    strike: (fleet, host) => void fleet.host('port', host, 'fab', 'down'),
    mend: (fleet, host) => void fleet.host('port', host, 'fab', 'up'),
    causes: PEER_SILENT,
    brief: true,
  },
  sshFrozen: {
    what: 'sshd frozen',
    strike: (fleet, host) => void fleet.must(host, 'root', 'pkill -STOP -x sshd'),
    mend: (fleet, host) => void fleet.must(host, 'root', 'pkill -CONT -x sshd'),
    causes: AWAY,
  },
  hostFrozen: {
    what: 'host frozen',
    strike: (fleet, host) => void fleet.host('freeze', host),
    mend: (fleet, host) => void fleet.host('thaw', host),
    causes: AWAY,
  },
  powerCut: {
    what: 'power cut',
    strike: (fleet, host) => void fleet.host('power', host, 'cut'),
    mend: (fleet, host) => void fleet.host('power', host, 'on'),
    causes: RESTARTED,
    ends: 'host',
  },
  reboot: {
    what: 'reboot',
    strike: (fleet, host) => void fleet.host('power', host, 'reboot'),
    mend: (fleet, host) => void fleet.host('ready', host, '120'),
    causes: RESTARTED,
    ends: 'host',
  },
  diskFull: {
    what: 'disk full',
    hosts: ['b'],
    strike: (fleet, host) =>
      void fleet.on(
        host,
        'root',
        'for size in 64k 4k 512; do dd if=/dev/zero bs=$size 2>/dev/null >>/home/filler; done; sync',
      ),
    mend: (fleet, host) => void fleet.must(host, 'root', 'rm -f /home/filler'),
    causes: ['disk-full'],
    surely: true,
  },
  hostKeyChanged: {
    what: 'host key changed',
    strike: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        `cd /etc/ssh && mkdir -p /root/keys && cp -p ssh_host_* /root/keys && rm ssh_host_* && ssh-keygen -q -t ed25519 -N "" -f ssh_host_ed25519_key && systemctl restart ssh && ${HANG_UP}`,
      ),
    mend: (fleet, host) =>
      void fleet.must(host, 'root', 'cp -p /root/keys/* /etc/ssh && systemctl restart ssh'),
    causes: ['ssh-host-key-changed'],
    surely: true,
  },
  maxStartups: {
    what: 'MaxStartups reached',
    strike: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        `echo 'MaxStartups 1:100:1' >/etc/ssh/sshd_config.d/few.conf && systemctl restart ssh && ${HANG_UP} && (setsid bash -c 'exec 3<>/dev/tcp/127.0.0.1/22; exec 4<>/dev/tcp/127.0.0.1/22; echo $$ >/run/knocks; sleep 600' </dev/null >/dev/null 2>&1 &) && for i in $(seq 300); do if [ -s /run/knocks ] && ! ${ADMITS}; then exit 0; fi; sleep 0.1; done; exit 1`,
      ),
    mend: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        'kill "$(cat /run/knocks)"; rm /etc/ssh/sshd_config.d/few.conf; systemctl restart ssh',
      ),
    causes: ['ssh-server-limits-connections'],
  },
  maxSessions: {
    what: 'MaxSessions 1',
    strike: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        `echo 'MaxSessions 1' >/etc/ssh/sshd_config.d/one.conf && systemctl restart ssh && ${HANG_UP}`,
      ),
    mend: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        `rm /etc/ssh/sshd_config.d/one.conf && systemctl restart ssh && ${HANG_UP}`,
      ),
    causes: [],
    harmless: true,
  },
  hungUp: {
    what: 'all logins cut',
    strike: (fleet, host) => void fleet.must(host, 'root', HANG_UP),
    mend: () => undefined,
    causes: [],
    harmless: true,
  },
  rankKilled: {
    what: 'rank killed',
    strike: (fleet, host) => void fleet.on(host, 'root', "pkill -9 -f '[e]ngine/main.js'"),
    mend: () => undefined,
    causes: ['worker-died-head-still-healthy'],
  },
  dockerRestarted: {
    what: 'dockerd restarted',
    hosts: ['a', 'b'],
    strike: (fleet, host) => void fleet.must(host, 'root', 'systemctl restart docker'),
    mend: () => undefined,
    causes: [],
    ends: 'docker',
    harmless: true,
  },
  tmpFull: {
    what: '/tmp full',
    hosts: ['d', 'e', 'f', 'g', 'h'],
    strike: (fleet, host) =>
      void fleet.must(
        host,
        'root',
        'mount -t tmpfs -o size=16k,mode=1777 tmpfs /tmp && { dd if=/dev/zero of=/tmp/filler bs=512 2>/dev/null || true; }',
      ),
    mend: (fleet, host) => void fleet.must(host, 'root', 'umount -l /tmp'),
    causes: ['disk-full'],
    surely: true,
  },
} as const satisfies Readonly<Record<string, Fault>>;
