import { FAULTS } from './faults.ts';
import type { Json, Letter, WholeFleet } from './fleet.ts';

type RecipeOptions = Omit<Parameters<WholeFleet['writeRecipe']>[0], 'nodes' | 'name'>;

/** Something that is broken for real on a host, and all that a bring-up has to make of it. */
export type Broken = {
  readonly what: string;
  readonly name: string;
  readonly recipe?: RecipeOptions;
  readonly strike: (fleet: WholeFleet) => void;
  /** The event of the run with which it breaks; before the run where left out. */
  readonly at?: (event: Json) => boolean;
  /** The host whose engine does not begin before it has broken, although its rank is started. */
  readonly holds?: Letter;
  readonly mend: (fleet: WholeFleet) => Promise<void> | void;
  readonly cause: string;
  readonly family: string;
  /** The node at fault; `undefined` where the fault lies between them. */
  readonly node: Letter | undefined;
  /** What must be quoted from a rank's log, or what the looks must have seen of the node at fault: once, or to change. */
  readonly shows: { readonly line: RegExp } | { readonly fact: RegExp } | { readonly changed: RegExp };
  /** The remedy that must be applied and proved, and what of the recipe it edits; or what a person is told to do. */
  readonly cure: { readonly remedy: string; readonly edits: readonly string[] } | { readonly advice: RegExp };
  /** The cure stops a holder, who is asked about by this name. */
  readonly asks?: RegExp;
  /** What ran on that host ends with the host itself. */
  readonly ends?: Letter;
};

const CABLE = 'enp1s0f0np0';
const OTHER_CAGE = 'enP2p1s0f0np0';
const SQUATTER = '/srv/bin/trainer /srv/hold.mjs thesis';
/** Somebody's server, which is there once this ends. */
const LISTENS =
  'cd /tmp && { setsid /srv/bin/node /srv/hold.mjs squat mib 32 listen 20000 </dev/null >/dev/null 2>&1 & } && for i in $(seq 600); do ss -ltnH "sport = :20000" | grep -q 20000 && exit 0; sleep 0.05; done; exit 1';
/** A launch that waits for its peer for seconds, not minutes: by the stand-in's clock these are an eighth. */
const IMPATIENT = 'args: {sglang: [--dist-timeout, "60"]}';

const startsRank =
  (rank: number) =>
  (event: Json): boolean =>
    event['type'] === 'step-started' &&
    event['kind'] === 'start-rank' &&
    String(event['id']).endsWith(`-r${rank}`);
const loads =
  (rank: number) =>
  (event: Json): boolean =>
    event['type'] === 'rank-stage' && event['stage'] === 'weights' && event['rank'] === rank;

const rename = (from: string, to: string): string =>
  `ip link set ${from} down && ip link set ${from} name ${to} && ip link set ${to} up`;

export const BROKEN: readonly Broken[] = [
  {
    what: 'host name leads to loopback',
    name: 'loopback',
    recipe: { more: 'network: engine' },
    // Debian gives every host's own name to 127.0.1.1: here the head's leads where it should, the worker's does not.
    strike: (fleet) =>
      void fleet.must('a', 'root', `sed -i 's/^127.0.1.1 .*/${fleet.fabric('a')} spark-a/' /etc/hosts`),
    mend: (fleet) =>
      void fleet.must('a', 'root', `sed -i 's/^${fleet.fabric('a')} .*/127.0.1.1 spark-a/' /etc/hosts`),
    cause: 'loopback-address-advertised',
    family: 'C',
    node: 'b',
    shows: { line: /remote=\[127\.0\.1\.1\]/ },
    cure: { remedy: 'use-node-addresses', edits: ['network'] },
  },
  {
    what: 'interface that one node lacks',
    name: 'interface',
    recipe: { env: `GLOO_SOCKET_IFNAME: ${CABLE}` },
    strike: (fleet) => void fleet.must('b', 'root', rename(CABLE, OTHER_CAGE)),
    mend: (fleet) => void fleet.must('b', 'root', rename(OTHER_CAGE, CABLE)),
    cause: 'wrong-socket-interface',
    family: 'C',
    node: 'b',
    shows: { line: new RegExp(`Unable to find address for: ${CABLE}`) },
    cure: { remedy: 'use-node-addresses', edits: ['env.GLOO_SOCKET_IFNAME'] },
  },
  {
    what: 'rendezvous port taken',
    name: 'port',
    // Whoever is there before is seen by the look; this one comes while the ranks are started, and before the head's
    // engine gets so far.
    at: startsRank(1),
    holds: 'a',
    strike: (fleet) => void fleet.must('a', 'lab', LISTENS),
    mend: (fleet) => void fleet.must('a', 'root', "pkill -f '[h]old.mjs squat'"),
    cause: 'port-already-in-use',
    family: 'C',
    node: 'a',
    shows: { line: /failed to listen on any local network address\. port: 20000/ },
    cure: { remedy: 'other-port', edits: ['rendezvousPort'] },
  },
  {
    what: 'rendezvous port taken before',
    name: 'port-before',
    strike: (fleet) => void fleet.must('a', 'lab', LISTENS),
    mend: (fleet) => void fleet.must('a', 'root', "pkill -f '[h]old.mjs squat'"),
    cause: 'port-already-in-use',
    family: 'C',
    node: 'a',
    shows: { fact: /"port":20000,"pid":\{"known":false/ },
    cure: { remedy: 'other-port', edits: ['rendezvousPort'] },
  },
  {
    what: 'holder of memory',
    name: 'holder',
    recipe: { env: 'SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK: "1"' },
    // It comes after the look, and has its memory before the worker asks how much is free.
    at: startsRank(0),
    holds: 'b',
    strike: (fleet) =>
      void fleet.must(
        'b',
        'lab',
        `cd /tmp && { setsid ${SQUATTER} mib 1216 </dev/null >/dev/null 2>&1 & } && until [ "$(ps -o rss= -C trainer | tr -d ' ')" -gt 1200000 ]; do sleep 0.05; done 2>/dev/null`,
      ),
    mend: (fleet) => void fleet.must('b', 'root', "pkill -f '[h]old.mjs thesis'"),
    cause: 'leftover-process-holds-gpu-memory',
    family: 'A',
    node: 'b',
    // It is the head that complains, since it has more than the worker is left with.
    shows: { line: /The memory capacity is unbalanced/ },
    cure: { remedy: 'look-again', edits: [] },
    asks: /trainer/,
  },
  {
    what: 'model missing on the worker',
    name: 'model',
    recipe: { path: '/var/models/tiny' },
    strike: (fleet) => void fleet.must('b', 'root', 'mv /var/models/tiny /var/models/elsewhere'),
    mend: (fleet) => void fleet.must('b', 'root', 'mv /var/models/elsewhere /var/models/tiny'),
    cause: 'model-path-missing-on-worker',
    family: 'I',
    node: 'b',
    shows: { fact: /"model":\{"known":true,"value":\{"present":false/ },
    cure: {
      advice:
        /^On spark-a: rsync -a --info=progress2 --mkpath \/var\/models\/tiny\/ aurora@192\.168\.77\.13:\/var\/models\/tiny\/$/,
    },
  },
  {
    what: 'disk full',
    name: 'disk',
    strike: (fleet) => FAULTS.diskFull.strike(fleet, 'b'),
    mend: (fleet) => FAULTS.diskFull.mend(fleet, 'b'),
    cause: 'disk-full',
    family: 'I',
    node: 'b',
    shows: { fact: /"path":"\/home\/aurora","totalBytes":\d+,"freeBytes":0\b/ },
    cure: { advice: /^make room, on spark-b: df -h ~; du -xh --max-depth=1 ~$/ },
  },
  {
    what: 'sshd drops logins (MaxStartups)',
    name: 'logins',
    strike: (fleet) => FAULTS.maxStartups.strike(fleet, 'b'),
    mend: (fleet) => FAULTS.maxStartups.mend(fleet, 'b'),
    cause: 'ssh-server-limits-connections',
    family: 'J',
    node: 'b',
    shows: { fact: /"reached":false.*"why":"too-many-connections"/ },
    cure: { advice: /raise MaxStartups in \/etc\/ssh\/sshd_config on spark-b$/ },
  },
  {
    what: 'worker killed while loading',
    name: 'killed',
    recipe: { speed: 1 },
    at: loads(1),
    strike: (fleet) => void fleet.must('b', 'root', "pkill -9 -f '[e]ngine/main.js'"),
    mend: () => undefined,
    cause: 'worker-died-head-still-healthy',
    family: 'K',
    node: 'b',
    shows: { line: /Connection closed by peer \[192\.168\.77\.13\]/ },
    cure: { remedy: 'launch-anew', edits: [] },
  },
  {
    what: 'fabric link down',
    name: 'cable',
    strike: (fleet) => FAULTS.fabricDown.strike(fleet, 'b'),
    mend: (fleet) => FAULTS.fabricDown.mend(fleet, 'b'),
    cause: 'fabric-link-down',
    family: 'E',
    node: 'b',
    shows: { fact: new RegExp(`"name":"${CABLE}","up":false`) },
    cure: { advice: new RegExp(`on spark-b: ip link show ${CABLE}; sudo ip link set ${CABLE} up$`) },
  },
  {
    what: 'firewall on the fabric',
    name: 'firewall',
    recipe: { speed: 8, more: IMPATIENT },
    // A kernel that gives up a connection after three seconds, not after two minutes.
    strike: (fleet) => {
      fleet.must('b', 'root', 'echo 1 >/proc/sys/net/ipv4/tcp_syn_retries');
      fleet.must('a', 'root', `iptables -I INPUT -i ${CABLE} -p tcp --dport 20000 -j DROP`);
    },
    mend: (fleet) =>
      void fleet.must('a', 'root', `iptables -D INPUT -i ${CABLE} -p tcp --dport 20000 -j DROP`),
    cause: 'firewall-blocks-ports',
    family: 'C',
    node: undefined,
    shows: { line: /while trying to connect to \(192\.168\.77\.12, 20000\)/ },
    cure: {
      advice:
        /^On spark-a: sudo ufw status; sudo nft list ruleset; then allow all between the nodes: sudo ufw allow from 192\.168\.77\.13$/,
    },
  },
  {
    what: 'head restarted while loading',
    name: 'reboot',
    recipe: { speed: 1 },
    at: loads(0),
    strike: (fleet) => FAULTS.reboot.strike(fleet, 'a'),
    mend: (fleet) => FAULTS.reboot.mend(fleet, 'a'),
    cause: 'host-restarted',
    family: 'L',
    node: 'a',
    shows: { changed: /"bootId":"([\w-]+)"/ },
    cure: { remedy: 'launch-anew', edits: [] },
    ends: 'a',
  },
];
