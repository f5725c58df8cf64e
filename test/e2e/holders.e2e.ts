import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import {
  eventOf,
  GIB,
  type Json,
  type Letter,
  outcomeOf,
  type Told,
  until,
  WholeFleet,
} from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);

const HOLDS = 0.5 * GIB;

/** One who holds memory on a host, started as people start such things. */
type Squatter = {
  readonly what: string;
  readonly host: Letter;
  readonly start: (fleet: WholeFleet) => void;
  /** What the plan must call it, how it must say whose it is, and the means it is stopped by. */
  readonly name: RegExp;
  readonly kind: 'container' | 'unit' | 'process';
  readonly user: string;
  /** Part of its command line, by which it is found past firstlight. */
  readonly mark: string;
  /** Taken for good: nothing can start it again as it was. */
  readonly lost?: true;
  /** Shell that ends with 0 on its host once it is again what it was. */
  readonly whole?: string;
};

const unit = (name: string, text: string): string =>
  `printf '%b' '${text.replaceAll('\n', '\\n')}' >/etc/systemd/system/${name}`;
const hold = (mark: string): string => `/srv/bin/node /srv/hold.mjs ${mark}`;
const box = (mark: string): string => `-v /srv:/srv:ro tiny /srv/bin/node /srv/hold.mjs ${mark}`;

const SQUATTERS: readonly Squatter[] = [
  {
    what: 'container, restart: always',
    host: 'a',
    start: (fleet) => fleet.must('a', 'root', `docker run -d --name comfy --restart always ${box('comfy')}`),
    name: /^comfy$/,
    kind: 'container',
    user: 'root',
    mark: 'hold.mjs comfy',
    whole: `[ "$(docker inspect -f '{{.HostConfig.RestartPolicy.Name}}' comfy)" = always ]`,
  },
  {
    what: 'compose service',
    host: 'a',
    start: (fleet) =>
      fleet.must(
        'a',
        'aurora',
        `mkdir -p ~/pictures && cd ~/pictures && printf 'version: "3"\\nservices:\\n  studio:\\n    image: tiny\\n    restart: unless-stopped\\n    network_mode: none\\n    volumes: [/srv:/srv:ro]\\n    command: [/srv/bin/node, /srv/hold.mjs, studio]\\n' >docker-compose.yml && docker-compose up -d`,
      ),
    name: /studio/,
    kind: 'container',
    user: 'root',
    mark: 'hold.mjs studio',
    whole: `[ "$(docker inspect -f '{{.HostConfig.RestartPolicy.Name}}' $(docker ps -q --filter label=com.docker.compose.project=pictures))" = unless-stopped ]`,
  },
  {
    what: 'system unit, Restart=always',
    host: 'b',
    start: (fleet) =>
      fleet.must(
        'b',
        'root',
        `${unit('embedder.service', `[Service]\nExecStart=${hold('embedder')}\nRestart=always\nUser=lab\n`)} && systemctl daemon-reload && systemctl start embedder`,
      ),
    name: /^embedder\.service$/,
    kind: 'unit',
    user: 'lab',
    mark: 'hold.mjs embedder',
    whole: 'systemctl is-active embedder.service',
  },
  {
    what: 'container, --rm',
    host: 'b',
    start: (fleet) => fleet.must('b', 'root', `docker run -d --rm --name scratch ${box('scratch')}`),
    name: /^scratch$/,
    kind: 'container',
    user: 'root',
    mark: 'hold.mjs scratch',
    lost: true,
  },
  {
    what: 'root process',
    host: 'b',
    start: (fleet) =>
      fleet.must(
        'b',
        'root',
        'cd /tmp && setsid /srv/bin/reranker /srv/hold.mjs night-job </dev/null >/dev/null 2>&1 &',
      ),
    name: /reranker/,
    kind: 'process',
    user: 'root',
    mark: 'hold.mjs night-job',
    whole: '[ "$(ps -o user= -p "$(pgrep -nf "[h]old.mjs night-job")")" = root ]',
  },
  {
    what: 'podman container',
    host: 'c',
    start: (fleet) => fleet.login('c', `podman run -d --network host --name notes ${box('notes')}`),
    name: /^notes$/,
    kind: 'container',
    user: 'aurora',
    mark: 'hold.mjs notes',
  },
  {
    what: 'user unit',
    host: 'c',
    start: (fleet) =>
      fleet.login(
        'c',
        `mkdir -p ~/.config/systemd/user && printf '[Service]\\nExecStart=${hold('tagger')}\\n' >~/.config/systemd/user/tagger.service && systemctl --user daemon-reload && systemctl --user start tagger`,
      ),
    name: /^tagger\.service$/,
    kind: 'unit',
    user: 'aurora',
    mark: 'hold.mjs tagger',
  },
  {
    what: 'other user’s process',
    host: 'c',
    start: (fleet) =>
      fleet.must(
        'c',
        'lab',
        'cd /tmp && setsid /srv/bin/trainer /srv/hold.mjs thesis </dev/null >/dev/null 2>&1 &',
      ),
    name: /trainer/,
    kind: 'process',
    user: 'lab',
    mark: 'hold.mjs thesis',
    whole: '[ "$(ps -o user= -p "$(pgrep -nf "[h]old.mjs thesis")")" = lab ]',
  },
  {
    what: 'socket-activated unit',
    host: 'd',
    start: (fleet) =>
      fleet.must(
        'd',
        'root',
        `${unit('oracle.socket', '[Socket]\nListenStream=127.0.0.1:11434\n')} && ${unit('oracle.service', `[Service]\nExecStart=${hold('oracle listen socket')}\n`)} && systemctl daemon-reload && systemctl start oracle.socket && bash -c 'exec 3<>/dev/tcp/127.0.0.1/11434'`,
      ),
    name: /^oracle\.service$/,
    kind: 'unit',
    user: 'root',
    mark: 'hold.mjs oracle',
    whole: 'systemctl is-active oracle.service && systemctl is-active oracle.socket',
  },
  {
    what: 'timer',
    host: 'd',
    start: (fleet) =>
      fleet.must(
        'd',
        'root',
        `${unit('digest.timer', '[Timer]\nOnActiveSec=1\nOnUnitInactiveSec=3\nAccuracySec=100ms\n')} && ${unit('digest.service', `[Service]\nExecStart=${hold('digest')}\n`)} && systemctl daemon-reload && systemctl start digest.timer`,
      ),
    name: /^digest\.service$/,
    kind: 'unit',
    user: 'root',
    mark: 'hold.mjs digest',
    whole: 'systemctl is-active digest.service && systemctl is-active digest.timer',
  },
];

describe.skipIf(why !== undefined)('everybody who holds memory, on whole hosts', () => {
  const fleet = new WholeFleet(4);
  const hosts = ['a', 'b', 'c', 'd'] as const;
  const password = ['--sudo-password-file', `spark-b=${fleet.file('password')}`];
  const named = new Map<Squatter, string>();
  const began = Date.now();
  let check: Told | undefined;
  let up: Told | undefined;
  let steps: readonly Json[] = [];
  let free = new Map<Letter, number>();

  beforeAll(async () => {
    fleet.up();
    fleet.writeRecipe({ nodes: hosts });
    for (const host of ['a', 'b'] as const) fleet.must(host, 'root', 'docker import /srv/image.tar tiny');
    fleet.must('c', 'root', 'loginctl enable-linger aurora');
    fleet.login('c', 'podman import /srv/image.tar localhost/tiny');
    const { sum, error } = await fleet.need();
    free = new Map(hosts.map((host) => [host, fleet.available(host)]));
    // A quarter GiB to spare while nobody is in the way; so whoever holds half a GiB or more has to go.
    const reserve = Math.min(...free.values()) - sum - error - 0.25 * GIB;
    fleet.writeRecipe({ nodes: hosts, reserve });
    for (const squatter of SQUATTERS) squatter.start(fleet);
    await until('everybody holds its memory', () => SQUATTERS.every((one) => held(one) > HOLDS), 180);
  });

  afterAll(() => fleet.down());

  /** Resident bytes of a squatter's processes, seen past firstlight. */
  function held({ host, mark }: Squatter): number {
    const { stdout } = fleet.on(
      host,
      'root',
      `ps -o rss= -p "$(pgrep -d, -f '[h]${mark.slice(1)}')" 2>/dev/null`,
    );
    return stdout.split('\n').reduce((sum, line) => sum + Number(line.trim() || 0) * 1024, 0);
  }

  test('check finds each of them and changes nothing', async () => {
    check = await fleet.firstlight(['check', fleet.file('recipe.yaml')]);
    expect(check.code, check.text).toBe(1);
    for (const squatter of SQUATTERS) expect(held(squatter), squatter.what).toBeGreaterThan(HOLDS);
  });

  test('up without consent asks for each by its name, owner and means, and stops nobody', async () => {
    const asked = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    expect(outcomeOf(asked), asked.text).toBe('consent-needed');
    expect(asked.code).toBe(2);
    const list = eventOf(asked, 'consent-asked')?.['steps'];
    if (!Array.isArray(list)) throw new Error(`nothing was asked: ${asked.text}`);
    steps = list;
    for (const squatter of SQUATTERS) {
      const step = steps.find(
        (one) => one['node'] === `spark-${squatter.host}` && squatter.name.test(targetOf(one).name),
      );
      expect(step, `${squatter.what} in ${steps.map((one) => one['title']).join('; ')}`).toBeDefined();
      if (step === undefined) continue;
      expect(targetOf(step), squatter.what).toMatchObject({ kind: squatter.kind, user: squatter.user });
      expect(JSON.stringify(step['undo']).includes('irreversible'), squatter.what).toBe(
        squatter.lost === true,
      );
      expect(held(squatter), squatter.what).toBeGreaterThan(HOLDS);
      named.set(squatter, `${targetOf(step).what}`);
    }
  });

  test('up with consent stops all of them, sees their memory come back, and serves', async () => {
    up = await fleet.firstlight(
      [
        'up',
        fleet.file('recipe.yaml'),
        '--json',
        ...password,
        '--consent',
        steps.map((one) => one['id']).join(','),
      ],
      { seconds: 240 },
    );
    expect(outcomeOf(up), up.text).toBe('serving');
    for (const squatter of SQUATTERS) expect(held(squatter), squatter.what).toBe(0);
    for (const host of hosts)
      expect(fleet.available(host), host).toBeGreaterThan((free.get(host) ?? 0) - 0.4 * GIB);
    // Whoever would start one of them again (a daemon, a socket, a timer) was told too.
    await new Promise((resolve) => setTimeout(resolve, 4000));
    fleet.on('d', 'root', `timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/11434'`);
    for (const squatter of SQUATTERS) expect(held(squatter), `${squatter.what} came back`).toBe(0);
  });

  test('dockerd restarts on the head and the worker reboots: what is owed is still owed', async () => {
    fleet.must('a', 'root', 'systemctl restart docker');
    fleet.host('power', 'b', 'reboot');
    fleet.host('ready', 'b', '120');
    const status = await fleet.firstlight(['status']);
    expect(status.code, status.text).toBe(1);
    expect(status.text).toContain('spark-b');
    for (const squatter of SQUATTERS) expect(held(squatter), squatter.what).toBe(0);
  });

  test('down --restore gives each of them back as it was, and says who is lost', async () => {
    const down = await fleet.firstlight(['down', '--restore', '--json', ...password]);
    expect(outcomeOf(down), down.text).toBe('restored');
    expect(down.code, down.text).toBe(0);
    for (const squatter of SQUATTERS) {
      if (squatter.lost) {
        expect(held(squatter)).toBe(0);
      } else {
        await until(
          `${squatter.what} holds its memory again: ${down.text}`,
          () => held(squatter) > HOLDS,
          120,
        );
        const whole = fleet.on(squatter.host, 'root', squatter.whole ?? 'true');
        expect(whole.code, `${squatter.what} is what it was: ${whole.stdout}${whole.stderr}`).toBe(0);
      }
      tell({
        what: squatter.what,
        seen: check?.text.includes(`spark-${squatter.host}`) ? `on spark-${squatter.host}` : 'no',
        named: named.get(squatter) ?? 'no',
        done: squatter.lost ? 'stopped; named as lost' : 'stopped, memory back, started again',
        seconds: up?.seconds ?? (Date.now() - began) / 1000,
      });
    }
    const again = await fleet.firstlight(['down', '--restore', '--json', ...password]);
    expect(again.code, again.text).toBe(0);
  });
});

function targetOf(step: Json): { readonly name: string; readonly what: string } {
  const target = step['target'];
  if (typeof target !== 'object' || target === null) throw new Error('a step without a target');
  const name: unknown = Reflect.get(target, 'name');
  return { ...target, name: String(name), what: String(Reflect.get(target, 'what')) };
}
