import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Fleet, whyNot } from './fleet.ts';

/** Not among what runs by itself: Ray is some 280 MB. `npm run e2e -- --ray` */
const wanted = process.env['FIRSTLIGHT_E2E_RAY'] === '1';
const why = wanted ? whyNot() : 'it runs with --ray only';
if (wanted && why !== undefined) console.warn(`skipped: ${why}`);

/** Real Ray in an environment that every user of this machine can run; kept from one run to the next. */
const VENV = '/var/cache/firstlight-e2e/ray';
const PYTHON = '/usr/bin/python3';
const DRIVER = '/srv/ray-driver.py';

type Json = Readonly<Record<string, unknown>>;

describe.skipIf(why !== undefined)('real Ray on two hosts, the worker through the head', () => {
  const fleet = new Fleet();

  beforeAll(() => {
    installRay();
    fleet.up();
    const driver = readFileSync(join(import.meta.dirname, 'ray-driver.py'), 'utf8');
    for (const host of ['a', 'b'] as const)
      fleet.on(host, 'root', ['sh', '-c', 'printf %s "$1" >"$2"', 'sh', driver, DRIVER]);
    writeFileSync(
      fleet.file('recipe.yaml'),
      `recipe: tiny
model: example/tiny
path: /srv/model
engines: [vllm-ray]
layout: {nodes: 2, tensor: 2}
context: 4096
sequences: 4
memory: {reserve: 0}
run: {in: process, venv: ${VENV}, command: {vllm: [${VENV}/bin/python, ${DRIVER}]}}
serve: {port: 30000}
`,
    );
  });

  afterAll(() => fleet.down());

  test('up joins both nodes, places a rank on each, and ends with an answer', async () => {
    const keys = (['a', 'b'] as const).flatMap((host) => [
      '--accept-host-key',
      `spark-${host}=${fingerprint(fleet, host)}`,
    ]);
    await fleet.firstlight(['check', ...keys]);
    const { code, stdout, stderr } = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    const events = eventsOf(stdout);
    const logs = (['a', 'b'] as const).map((host) => log(fleet, host));
    expect(events.at(-1), [stderr, stdout.slice(-3000), ...logs].join('\n')).toMatchObject({
      type: 'run-ended',
      outcome: 'serving',
    });
    expect(code).toBe(0);
    expect(events.find((event) => event['type'] === 'serving')).toMatchObject({ engine: 'vllm-ray' });
    expect(logs[0]).toContain('Ray has 2 of 2 nodes: 192.168.200.12, 192.168.200.13');
  });

  test('each worker has the environment of its own node, and the driver none of a single node', () => {
    const lines = log(fleet, 'a').split('\n');
    const told = (mark: string): readonly Json[] =>
      lines.flatMap((line) => (line.startsWith(`${mark} `) ? [JSON.parse(line.slice(mark.length + 1))] : []));
    const workers = told('WORKER').toSorted((a, b) => String(a['host']).localeCompare(String(b['host'])));
    const common = { RAY_memory_monitor_refresh_ms: '0' };
    expect(workers).toEqual([
      {
        ...common,
        host: 'spark-a',
        address: '192.168.200.12',
        VLLM_HOST_IP: '192.168.200.12',
        GLOO_SOCKET_IFNAME: 'enp1s0f0np0',
        NCCL_SOCKET_IFNAME: 'enp1s0f0np0',
      },
      {
        ...common,
        host: 'spark-b',
        address: '192.168.200.13',
        VLLM_HOST_IP: '192.168.200.13',
        GLOO_SOCKET_IFNAME: 'enp1s0f1np1',
        NCCL_SOCKET_IFNAME: 'enp1s0f1np1',
      },
    ]);
    expect(told('DRIVER')).toEqual([
      { NCCL_SOCKET_IFNAME: null, NCCL_IB_HCA: null, RAY_ADDRESS: '192.168.200.12:20000' },
    ]);
  });

  test('what the worker says in the head’s log is counted to the worker', async () => {
    const { stdout } = await fleet.firstlight(['runs', '--json']);
    const head = log(fleet, 'a');
    expect(head).toMatch(/\(RayWorkerProc pid=\d+, ip=192\.168\.200\.13\).*Loading weights took/);
    expect(stdout).toContain('tiny');
    const again = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    const stages = eventsOf(again.stdout).filter((event) => event['type'] === 'rank-stage');
    expect(stages, again.stdout).toContainEqual(
      expect.objectContaining({ node: 'spark-b', rank: 1, stage: 'weights' }),
    );
    expect(eventsOf(again.stdout).at(-1)).toMatchObject({ outcome: 'nothing-to-do' });
  });

  test('down leaves nothing of Ray on either host, and somebody else’s Ray alone', async () => {
    // Its own port, so that the two do not meet; `ray stop` would end it along with ours.
    const other = fleet.on('b', 'aurora', [
      'env',
      `PATH=${VENV}/bin:/usr/bin:/bin`,
      ...['ray', 'start', '--head', '--port=7777', '--node-ip-address=192.168.200.13', '--num-cpus=1'],
      ...['--include-dashboard=false', '--disable-usage-stats'],
    ]);
    expect(other.code, other.stdout + other.stderr).toBe(0);
    const { code, stdout, stderr } = await fleet.firstlight(['down', '--json']);
    expect(eventsOf(stdout).at(-1), stdout + stderr).toMatchObject({ outcome: 'stopped' });
    expect(code).toBe(0);
    expect(rayOn(fleet, 'a')).toEqual([]);
    const left = rayOn(fleet, 'b');
    expect(left.some((line) => line.includes('gcs_server'))).toBe(true);
    expect(left.filter((line) => line.includes('192.168.200.12'))).toEqual([]);
  });
});

/** Installs Ray once and says what that cost. */
function installRay(): void {
  const cached = existsSync(join(VENV, 'bin', 'ray'));
  const began = Date.now();
  if (!cached) {
    run(PYTHON, ['-m', 'venv', '--without-pip', VENV]);
    const python = join(VENV, 'bin', 'python');
    run('python3', [
      '-m',
      'pip',
      '--python',
      python,
      'install',
      '--quiet',
      '--disable-pip-version-check',
      'ray',
    ]);
  }
  const version = run(join(VENV, 'bin', 'ray'), ['--version']).trim();
  const size = run('du', ['-sm', VENV]).split('\t')[0];
  const cost = cached ? 'kept from before' : `installed in ${Math.round((Date.now() - began) / 1000)} s`;
  console.info(`${version}: ${size} MB, ${cost}`);
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The log of the rank on that host. */
function log(fleet: Fleet, host: 'a' | 'b'): string {
  return fleet.on(host, 'root', ['sh', '-c', 'cat /srv/home/aurora/.firstlight/*/ranks/*/log']).stdout;
}

/** Command lines of Ray's processes on that host. */
function rayOn(fleet: Fleet, host: 'a' | 'b'): readonly string[] {
  const { stdout } = fleet.on(host, 'root', ['ps', '-eo', 'args=', '-ww']);
  return stdout
    .split('\n')
    .filter((line) => line.includes('/site-packages/ray/') || /^ray(::|let| start)/.test(line));
}

function fingerprint(fleet: Fleet, host: 'a' | 'b'): string {
  const { stdout } = fleet.on(host, 'root', ['ssh-keygen', '-lf', '/etc/ssh/ssh_host_ed25519_key.pub']);
  return stdout.split(' ')[1] ?? 'none';
}

function eventsOf(stdout: string): readonly Json[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}
