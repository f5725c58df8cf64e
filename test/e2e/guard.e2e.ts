import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { eventOf, type Json, outcomeOf, type Told, until, WholeFleet } from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);

const MIB = 2 ** 20;
const LIMIT = 2048 * MIB;
/** Somebody else's work, the largest process of the host when memory runs out: it is what the kernel takes first. */
const ARCHIVE_MIB = 1216;

describe.skipIf(why !== undefined)('a rank that eats the memory of a whole host', () => {
  const fleet = new WholeFleet(1);
  const recipe = fleet.file('recipe.yaml');

  beforeAll(() => {
    fleet.up();
    cpSync(join(import.meta.dirname, 'whole', 'eat.mjs'), join(fleet.folder, 'srv', 'eat.mjs'));
    fleet.host('limit', 'a', String(LIMIT));
  });

  afterEach(async () => {
    await fleet.firstlight(['down', '--json']);
    fleet.on('a', 'root', 'systemctl stop archive');
  });

  afterAll(() => fleet.down());

  /**
   * Runs as a service whose first process stays, so that its cgroup and what it counts stay too. Returns once it holds
   * all that it will.
   */
  function archive(): void {
    fleet.must(
      'a',
      'root',
      // The next attempt finds it running still.
      `systemctl is-active -q archive && exit 0; systemctl reset-failed archive 2>/dev/null; systemd-run -q --unit=archive --uid=lab -p OOMPolicy=continue sh -c '/srv/bin/node /srv/hold.mjs archive mib ${ARCHIVE_MIB} & wait; exec sleep 1000' || exit 1; until [ "$(ps -o rss= -p "$(pgrep -f "^/srv/bin/node /srv/hold.mjs archive")")" -ge ${ARCHIVE_MIB * 1024} ]; do sleep 0.1; done 2>/dev/null`,
    );
  }

  const startEating = (): void =>
    void fleet.must('a', 'root', 'pkill -USR2 -f "^/srv/bin/node /srv/eat.mjs"');

  const archived = (): boolean =>
    fleet.on('a', 'root', 'pgrep -f "^/srv/bin/node /srv/hold.mjs archive"').code === 0;
  const eaters = (): number =>
    fleet.on('a', 'root', 'pgrep -fc "^/srv/bin/node /srv/eat.mjs"').stdout.trim() === '0' ? 0 : 1;
  const guards = (): boolean => fleet.on('a', 'root', 'pgrep -f "^sh guard.sh"').code === 0;

  /** An engine that eats once it is told to. */
  const eater = (mibPerSecond: number): string => `  in: process
  command: {sglang: [/srv/bin/node, /srv/eat.mjs]}
args: {sglang: [--mib-per-second, "${mibPerSecond}", --on-signal]}`;

  function writeRecipe(guard: string, run: string): void {
    writeFileSync(
      recipe,
      `recipe: greedy
model: example/tiny
path: /srv/model
nodes: [spark-a]
engines: [sglang]
layout: {nodes: 1}
context: 1024
sequences: 1
memory: {fraction: 0.4, reserve: 0, guard: ${guard}}
run:
${run}
`,
    );
  }

  /**
   * The plan must not meet the archive, or it would ask about it: it begins once the rank has, and the rank eats once
   * the archive holds all of its own, so that whoever runs out of memory does not hang on who is faster.
   */
  const up = (withArchive = false): Promise<Told> => {
    const onceEach = eachAttempt(['rank-stage'], () => {
      archive();
      startEating();
    });
    return fleet.firstlight(['up', recipe, '--json'], {
      seconds: 240,
      ...(withArchive ? { onEvent: onceEach } : {}),
    });
  };

  test('is stopped by its guard before the limit ends anything', async () => {
    const before = killsIn(fleet);
    writeRecipe('256MiB', eater(32));
    const told = await up(true);
    expect(outcomeOf(told), told.text).toBe('not-serving');
    const finding = eventOf(told, 'finding');
    expect(finding, told.text).toMatchObject({
      cause: 'memory-exhausted-rank-stopped',
      node: 'spark-a',
      values: { why: expect.stringMatching(/reserve|falling/), stoppedBy: 'signal' },
    });
    expect(finding?.['title']).toContain('spark-a');
    expect(JSON.stringify(finding?.['values'])).toMatch(/-\d+:\d+ .*0:\d+/);
    expect(killsIn(fleet) - before).toBe(0);
    expect(archived()).toBe(true);
    expect(eaters()).toBe(0);
    await until('the guard is gone', () => !guards());
    const folder = fleet.must('a', 'aurora', 'cat ~/.firstlight/*/ranks/greedy-r0/guard.json');
    expect(JSON.parse(folder)).toMatchObject({ state: 'stopped', by: 'signal', oomKills: 0 });
    tell({
      what: 'memory eaten, guarded',
      seen: 'up',
      named: String(finding?.['cause']),
      done: 'rank stopped, nothing killed',
      seconds: told.seconds,
    });
  });

  test('does harm to others where it has no guard', async () => {
    const before = killsIn(fleet);
    writeRecipe('off', eater(64));
    const told = await up(true);
    expect(killsIn(fleet) - before).toBeGreaterThan(0);
    expect(archived()).toBe(false);
    expect(eventOf(told, 'guard')).toBeUndefined();
    tell({
      what: 'memory eaten, guard: off',
      seen: 'counters',
      named: `${killsIn(fleet) - before} killed for memory`,
      done: 'somebody else’s work is lost',
      seconds: told.seconds,
    });
  });

  test('in a container is stopped by docker while nobody watches, and whoever eats is left alone', async () => {
    fleet.must('a', 'root', 'docker import /srv/image.tar tiny');
    writeRecipe('256MiB', '  in: docker\n  image: {sglang: tiny}\n  volumes: ["/srv:/srv:ro"]');
    const served = await up();
    expect(outcomeOf(served), served.text).toBe('serving');
    expect(eventOf(served, 'guard')).toMatchObject({ guard: { state: 'guards', by: 'docker' } });
    const before = killsIn(fleet);
    fleet.must(
      'a',
      'aurora',
      'cd /tmp && setsid /srv/bin/node /srv/eat.mjs --mib-per-second 32 </dev/null >/dev/null 2>&1 &',
    );
    const record = (): string =>
      fleet.on('a', 'aurora', 'cat ~/.firstlight/*/ranks/greedy-r0/guard.json').stdout;
    await until('the guard has stopped its rank', () => record().includes('"state":"stopped"'), 180);
    const eaterLives = eaters();
    fleet.on('a', 'root', 'pkill -f "^/srv/bin/node /srv/eat.mjs"');
    expect(eaterLives).toBe(1);
    expect(JSON.parse(record())).toMatchObject({ by: 'docker', oomKills: 0 });
    expect(killsIn(fleet) - before).toBe(0);
    const state =
      "docker inspect -f '{{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}}' firstlight-greedy-r0";
    expect(fleet.must('a', 'root', state)).toBe('false 137 false');
    await until('the guard is gone', () => !guards());
    const status = await fleet.firstlight(['status']);
    expect(status.text).toMatch(/stopped by its guard with/);
    const again = await up();
    expect(outcomeOf(again), again.text).toBe('serving');
    expect(again.text).toMatch(/rank 0 of run \d+ was stopped by its guard/);
    tell({
      what: 'memory eaten beside a container',
      seen: 'status',
      named: 'stopped by its guard',
      done: 'docker kill, launched anew',
      seconds: served.seconds + again.seconds,
    });
  });

  test('is told to have been killed for memory by its own cgroup’s counter alone', async () => {
    // The kernel must come before the guard, and which of the two is faster hangs on what else the machine does. So the
    // guard is held from before the first MiB until the kernel has ended something, in this attempt and in the next.
    writeRecipe('1MiB', eater(700));
    let counted = killsIn(fleet);
    const release = setInterval(() => {
      const before = counted;
      // A cgroup that went took its count along.
      counted = killsIn(fleet);
      if (counted > before) fleet.must('a', 'root', 'pkill -CONT -f "^sh guard.sh"');
    }, 200);
    const told = await fleet
      .firstlight(['up', recipe, '--json'], {
        seconds: 240,
        onEvent: eachAttempt(['rank-stage', 'guard'], () => {
          fleet.must('a', 'root', 'pkill -STOP -f "^sh guard.sh"');
          startEating();
        }),
      })
      .finally(() => clearInterval(release));
    const finding = eventOf(told, 'finding');
    expect(finding, told.text).toMatchObject({
      cause: 'oom-killer-during-weight-load',
      node: 'spark-a',
      values: { oomKills: '1' },
    });
    tell({
      what: 'memory eaten, kernel first',
      seen: 'up',
      named: String(finding?.['cause']),
      done: 'counted by the cgroup',
      seconds: told.seconds,
    });
  });
});

/**
 * Acts once in each attempt, when all of these have been told in it: that the rank reads its weights, from when on it
 * waits for its signal; that its guard guards.
 */
function eachAttempt(wanted: readonly ('rank-stage' | 'guard')[], act: () => void): (event: Json) => void {
  const told = new Set<string>();
  return ({ type, attempt, stage, guard }) => {
    const news =
      (type === 'rank-stage' && stage === 'weights') ||
      (type === 'guard' && JSON.stringify(guard).includes('"state":"guards"'));
    const key = `${String(type)} ${String(attempt)}`;
    if (!news || told.has(key)) return;
    told.add(key);
    if (wanted.some((one) => one === type) && wanted.every((one) => told.has(`${one} ${String(attempt)}`)))
      act();
  };
}

/** Kills for memory that all cgroups of the host count, v2 or v1. */
function killsIn(fleet: WholeFleet): number {
  const v1 = `/sys/fs/cgroup/memory/${fleet.prefix}/a`;
  return existsSync(v1)
    ? files(v1, 'memory.oom_control').reduce((sum, file) => sum + killsOf(file), 0)
    : killsOf(`/sys/fs/cgroup/${fleet.prefix}/a/memory.events`);
}

function killsOf(file: string): number {
  const text = unlessGone(() => readFileSync(file, 'utf8'), '');
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}

function files(folder: string, name: string): readonly string[] {
  const entries = unlessGone(() => readdirSync(folder, { withFileTypes: true }), []);
  return entries.flatMap((entry) =>
    entry.isDirectory()
      ? files(join(folder, entry.name), name)
      : entry.name === name
        ? [join(folder, name)]
        : [],
  );
}

/** Cgroups come and go while they are read. */
function unlessGone<T>(read: () => T, gone: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && /^(ENOENT|ENODEV)/.test(error.message)) return gone;
    throw error;
  }
}
