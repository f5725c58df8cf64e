import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Fleet, meminfoAvailable, whyNot } from './fleet.ts';

const GIB = 2 ** 30;
const HOLDS_GIB = 8;
/** What is spare without the holder: other work on this machine moves MemAvailable by as much. */
const SPARE_GIB = 2.5;

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);
if (why !== undefined) console.warn(`skipped: ${why}`);

type Json = Readonly<Record<string, unknown>>;

describe.skipIf(why !== undefined)('two hosts with real OpenSSH servers, the worker through the head', () => {
  const fleet = new Fleet();
  let consent = '';

  beforeAll(() => {
    fleet.up();
    fleet.writeRecipe(0);
  });

  afterAll(() => fleet.down());

  test('an unknown host key ends with exit 2, its fingerprint, and the command that accepts it', async () => {
    for (const command of ['check', 'up']) {
      const refused = await fleet.firstlight([command, fleet.file('recipe.yaml')]);
      expect(refused.code, refused.stdout + refused.stderr).toBe(2);
      expect(refused.stdout + refused.stderr).toContain(fingerprint(fleet, 'a'));
      expect(refused.stdout + refused.stderr).toContain('--accept-host-key');
    }
    const accept = (['a', 'b'] as const).flatMap((host) => [
      '--accept-host-key',
      `spark-${host}=${fingerprint(fleet, host)}`,
    ]);
    const accepted = await fleet.firstlight(['check', ...accept]);
    expect([0, 1], accepted.stdout + accepted.stderr).toContain(accepted.code);
  });

  test('the model fits while nobody is in the way', async () => {
    const { need, error } = await needOf(fleet);
    // There is room to spare now; not with the holder.
    fleet.writeRecipe(Math.max(0, Math.round(meminfoAvailable() - need - error - SPARE_GIB * GIB)));
    fleet.hold('b', 'root', HOLDS_GIB, 'reranker');
    fleet.listen('a', 'aurora', 30000);
    await until(() => used(fleet, 'b', 'reranker') > (HOLDS_GIB - 0.5) * GIB);
  });

  test('check names the holder and the port, and exits 1', async () => {
    const { code, stdout } = await fleet.firstlight(['check', fleet.file('recipe.yaml')]);
    expect(stdout).toContain('reranker');
    expect(stdout).toContain('30000');
    expect(code).toBe(1);
  });

  test('up without consent stops nothing and exits 2', async () => {
    const { code, stdout } = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    const events = eventsOf(stdout);
    const asked = events.find((event) => event['type'] === 'consent-asked');
    expect(asked, stdout).toBeDefined();
    const steps = asked?.['steps'];
    if (!Array.isArray(steps)) throw new Error('nothing was asked');
    consent = steps.map((step: Json) => step['id']).join(',');
    expect(events.at(-1)).toMatchObject({ type: 'run-ended', outcome: 'consent-needed' });
    expect(code).toBe(2);
    expect(used(fleet, 'b', 'reranker')).toBeGreaterThan((HOLDS_GIB - 0.5) * GIB);
  });

  test('up with consent but without the password on the worker stops nothing and says so', async () => {
    const { code, stdout } = await fleet.firstlight([
      'up',
      fleet.file('recipe.yaml'),
      '--json',
      '--consent',
      consent,
    ]);
    expect(eventsOf(stdout).at(-1)).toMatchObject({ type: 'run-ended', outcome: 'consent-needed' });
    expect(stdout).toContain('--sudo-password-file');
    expect(code).toBe(2);
    expect(used(fleet, 'b', 'reranker')).toBeGreaterThan((HOLDS_GIB - 0.5) * GIB);
  });

  test('up with both clears, launches and ends with an answer', async () => {
    const { code, stdout, stderr } = await fleet.firstlight([
      ...['up', fleet.file('recipe.yaml'), '--json', '--consent', consent],
      ...['--sudo-password-file', `spark-b=${fleet.file('password')}`],
    ]);
    const events = eventsOf(stdout);
    const why = events
      .filter((event) => event['type'] !== 'looked' && event['type'] !== 'planned')
      .map((event) => JSON.stringify(event));
    expect(events.at(-1), [...why, stderr].join('\n')).toMatchObject({
      type: 'run-ended',
      outcome: 'serving',
    });
    expect(code).toBe(0);
    expect(events.find((event) => event['type'] === 'serving')).toMatchObject({
      answer: expect.stringContaining('204'),
    });
    expect(events.find((event) => event['type'] === 'measured')).toBeDefined();
    expect(used(fleet, 'b', 'reranker')).toBe(0);
    expect(stdout).not.toContain('aurora-pw');
  });

  test('a second up finds nothing to do', async () => {
    const { code, stdout } = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    expect(eventsOf(stdout).at(-1)).toMatchObject({ type: 'run-ended', outcome: 'nothing-to-do' });
    expect(code).toBe(0);
  });

  test('status and chat answer through the SSH connection alone', async () => {
    const status = await fleet.firstlight(['status', '--json']);
    expect(status.code, status.stdout + status.stderr).toBe(0);
    const chat = await fleet.firstlight(['chat', 'What is 9 times 9?', '--json']);
    expect(chat.stdout).toContain('81');
  });

  test('nothing secret and nothing foreign is left on a host', () => {
    for (const host of ['a', 'b'] as const) {
      const found = fleet.on(host, 'root', [
        'grep',
        '-rl',
        'aurora-pw',
        '/srv/home/aurora',
        '/tmp',
        '/run',
      ]).stdout;
      expect(found).toBe('');
      const left = fleet
        .on(host, 'root', ['sh', '-c', 'ls -A /srv/home/aurora; ls -A /tmp'])
        .stdout.split('\n');
      expect(left.filter((name) => !/^(\.bash.*|\.profile|\.ssh|\.firstlight|\.cache|)$/.test(name))).toEqual(
        [],
      );
    }
  });

  test('a rank that is ended by hand is seen, and the job is one unit', async () => {
    fleet.on('b', 'root', ['sh', '-c', "pkill -9 -f 'engine/main.js' || true"]);
    const status = await fleet.firstlight(['status', '--json']);
    expect(status.code).toBe(1);
  });

  test('down --restore stops the rest and gives the holder and the listener back', async () => {
    const { code, stdout, stderr } = await fleet.firstlight([
      ...['down', '--restore', '--json'],
      ...['--sudo-password-file', `spark-b=${fleet.file('password')}`],
    ]);
    const ends = eventsOf(stdout).filter((event) => event['type'] === 'run-ended');
    expect(
      ends.map((event) => event['outcome']),
      stdout + stderr,
    ).toEqual(['stopped', 'restored']);
    expect(code).toBe(0);
    await until(() => used(fleet, 'b', 'reranker') > (HOLDS_GIB - 0.5) * GIB);
    const owner = fleet.on('b', 'root', ['sh', '-c', 'ps -o user= -p "$(pgrep -n reranker)"']).stdout.trim();
    expect(owner).toBe('root');
    await until(() =>
      fleet.on('a', 'root', ['sh', '-c', 'ss -ltnH "sport = :30000"']).stdout.includes(':30000'),
    );
    for (const host of ['a', 'b'] as const) {
      expect(fleet.on(host, 'root', ['sh', '-c', "pgrep -f '[e]ngine/main.js' | wc -l"]).stdout.trim()).toBe(
        '0',
      );
    }
  });
});

function fingerprint(fleet: Fleet, host: 'a' | 'b'): string {
  const { stdout } = fleet.on(host, 'root', ['ssh-keygen', '-lf', '/etc/ssh/ssh_host_ed25519_key.pub']);
  return stdout.split(' ')[1] ?? 'none';
}

async function needOf(fleet: Fleet): Promise<{ readonly need: number; readonly error: number }> {
  const { stdout } = await fleet.firstlight(['plan', fleet.file('recipe.yaml'), '--json']);
  const report: {
    readonly plan: { readonly memory: readonly { readonly sumBytes: number; readonly errorBytes: number }[] };
  } = JSON.parse(stdout);
  const memory = report.plan.memory;
  return {
    need: Math.max(...memory.map((one) => one.sumBytes)),
    error: Math.max(...memory.map((one) => one.errorBytes)),
  };
}

/** Resident bytes of the processes of that name on a host. */
function used(fleet: Fleet, host: 'a' | 'b', name: string): number {
  const text = fleet.on(host, 'root', [
    'sh',
    '-c',
    `ps -o rss= -p "$(pgrep -d, -x ${name})" 2>/dev/null`,
  ]).stdout;
  return text.split('\n').reduce((sum, line) => sum + Number(line.trim() || 0) * 1024, 0);
}

function eventsOf(stdout: string): readonly Json[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1200; tries += 1) {
    if (holds()) return;
    execFileSync('sleep', ['0.1']);
  }
  throw new Error('it did not come to pass in 120 s');
}
