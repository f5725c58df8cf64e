import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Service } from '../../src/domain/plan.ts';
import type { Host } from '../../src/remote/host.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import { followRank, markServing, startRank, stopRank } from '../../src/remote/rank-runner.ts';
import {
  clusterOf,
  done,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
  until,
} from '../pretend/far-side.ts';

const START = { run: '7', attempt: 2, startedAt: '2026-01-02T03:04:05.000Z' };

/** A docker, or podman, of shell and files, as far as the rank runner asks it. */
const DOCKER = `#!/bin/sh
D="$HOME/$(basename "$0")"; mkdir -p "$D"; command=$1; shift
c() { for n; do :; done; printf %s "$D/$n"; }
case $command in
  run)
    n= ; e=
    while [ $# -gt 0 ]; do case $1 in --name) n=$2; shift;; --label) shift;; --env-file) e=$2; shift;; -*) ;; *) break;; esac; shift; done
    [ "$1" = missing ] && { echo "Unable to find image 'missing'" >&2; exit 125; }
    shift; mkdir "$D/$n" || exit 125
    [ -z "$e" ] || cp "$e" "$D/$n/env"
    setsid sh -c 'f=$1; shift; "$@" 2>&1 </dev/null | while IFS= read -r l; do printf "2026-01-01T00:00:00Z %s\\\\n" "$l"; done >"$f/log" & echo $! >"$f/pid"; wait $!; [ -e "$f/code" ] || echo 3 >"$f/code"' sh "$D/$n" "$@" </dev/null >/dev/null 2>&1 &
    while ! [ -s "$D/$n/pid" ]; do sleep 0.05; done; echo 0123456789ab;;
  logs) f=$(c "$@"); tail -c +1 -f "$f/log" & t=$!; while ! [ -e "$f/code" ]; do sleep 0.05; done; sleep 0.2; kill $t;;
  wait) f=$(c "$@"); [ -d "$f" ] || exit 1; while ! [ -e "$f/code" ]; do sleep 0.05; done; cat "$f/code";;
  inspect) f=$(c "$@"); [ -d "$f" ] || exit 1; if [ -e "$f/code" ]; then echo false; else echo true; fi;;
  stop|kill) f=$(c "$@"); echo 137 >"$f/code"; kill -KILL -$(ps -o sid= -p $(cat "$f/pid") | tr -d ' ');;
  rm) rm -rf "$(c "$@")";;
esac
`;

describe('the rank runner', () => {
  let far: FarSide;
  let host: Host;
  let farHost: FarHost;
  const ranks = () => join(farHost.home, '.firstlight/machine-a/ranks');
  const service = (more: Partial<Service> = {}): Service => ({
    name: 'tiny-r0',
    node: 'a',
    rank: 0,
    role: 'head',
    engine: 'sglang',
    in: 'process',
    argv: ['sh', '-c', 'echo "$1"; echo "$A $KEY"; sleep 98761 & exec sleep 98762', 'sh', 'it\'s a {"b": 1}'],
    env: { A: 'x y' },
    secretEnv: { KEY: 'API' },
    recipe: 'tiny',
    recipeDigest: 'd1',
    effectiveDigest: 'd2',
    edits: [],
    servedName: 'tiny',
    ...more,
  });
  const follow = async (name: string, from = 0, signal = never) => {
    let text = '';
    const beats: unknown[] = [];
    const end = await followRank(host, name, from, {
      signal,
      lines: (bytes) => {
        text += bytes.toString();
      },
      beat: (beat) => beats.push(beat),
    });
    return { end, text, beats };
  };
  const start = (it: Service) => startRank(host, it, START, { signal: never });
  const stop = (name: string) => stopRank(host, name, { graceSeconds: 2 }, { signal: never });
  const running = async (what: string) => (await done(['pgrep', '-f', what])).stdout !== '';

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    farHost = await far.host('a', { keys: [far.publicKey(key)] });
    for (const runtime of ['docker', 'podman'])
      writeFileSync(join(farHost.bin, runtime), DOCKER, { mode: 0o755 });
    const [first] = openHosts(clusterOf(far, key, [{ name: 'a', host: farHost }]), {
      secrets: secretsOf({ API: "k'1 $x" }),
      socketFolder: join(far.folder, 's'),
    }).all;
    if (first === undefined) throw new Error('no host');
    host = first;
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    await far.close();
  });

  it('starts a rank once, follows it, and stops all that it started', async () => {
    expect(await start(service())).toMatchObject({ kind: 'ran', code: 0, stdout: 'started\n' });
    expect(await start(service())).toMatchObject({ kind: 'ran', code: 0, stdout: 'already\n' });
    const folder = join(ranks(), 'tiny-r0');
    const record: unknown = JSON.parse(readFileSync(join(folder, 'service.json'), 'utf8'));
    expect(record).toMatchObject({ name: 'tiny-r0', run: '7', attempt: 2, effectiveDigest: 'd2' });
    expect(statSync(join(folder, 'secrets.env')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'command.sh'), 'utf8')).not.toContain("k'1");
    expect((await done(['ps', '-A', '-o', 'args'])).stdout).not.toContain("k'1");
    const following = follow('tiny-r0');
    await until(() => readFileSync(join(folder, 'log'), 'utf8').includes('x y'));
    expect(await running('sleep 9876[12]')).toBe(true);
    expect(await markServing(host, 'tiny-r0', '2026-01-01T00:00:00Z', { signal: never })).toMatchObject({
      code: 0,
    });
    expect(readFileSync(join(folder, 'serving'), 'utf8')).toBe('2026-01-01T00:00:00Z\n');
    expect(await stop('tiny-r0')).toMatchObject({ kind: 'ran', code: 0, stdout: 'stopped\n' });
    expect(await running('sleep 9876[12]')).toBe(false);
    const { end, text, beats } = await following;
    expect(text).toBe('it\'s a {"b": 1}\nx y k\'1 $x\n');
    expect(end).toEqual({ kind: 'ended', code: 143, bytes: text.length });
    expect(beats[0]).toMatchObject({ availableBytes: 900 * 1024 });
    expect(existsSync(join(folder, 'secrets.env'))).toBe(false);
    expect(await stop('tiny-r0')).toMatchObject({ kind: 'ran', code: 0 });
    expect(await stop('never-r0')).toMatchObject({ kind: 'ran', code: 0, stdout: 'absent\n' });
  });

  it('says what the system says where a rank’s folder cannot be made', async () => {
    writeFileSync(join(ranks(), 'stuck-r0'), 'a file of somebody');
    const ran = await start(service({ name: 'stuck-r0' }));
    expect(ran).toMatchObject({ kind: 'ran', code: 1 });
    expect(ran.kind === 'ran' ? ran.stderr : '').toMatch(/ranks\/stuck-r0 cannot be made: File exists$/m);
    rmSync(join(ranks(), 'stuck-r0'));
  });

  it('moves a dead claim aside and tells the exit code', async () => {
    const short = service({ argv: ['sh', '-c', 'echo once more; exit 9'], secretEnv: {} });
    expect(await start(short)).toMatchObject({ kind: 'ran', code: 0, stdout: 'started\n' });
    expect(await follow('tiny-r0')).toMatchObject({ end: { kind: 'ended', code: 9 }, text: 'once more\n' });
    expect(readdirSync(ranks())).toEqual(['tiny-r0', 'tiny-r0~1']);
    expect((await follow('tiny-r0', 5)).text).toBe('more\n');
  });

  // As NCCL does, cut holds its lines back in C's stdio while its output is a file.
  it.runIf(spawnSync('stdbuf', ['-oL', 'true']).status === 0)(
    'has a line of C’s stdio in the log while its program runs on',
    async () => {
      const argv = ['sh', '-c', '{ echo Using network Socket; exec sleep 98764; } | cut -c 1-'];
      expect(await start(service({ name: 'buffered-r0', argv, secretEnv: {} }))).toMatchObject({ code: 0 });
      const log = join(ranks(), 'buffered-r0/log');
      await until(() => readFileSync(log, 'utf8') === 'Using network Socket\n');
      expect(await running('sleep 98764')).toBe(true);
      expect(await stop('buffered-r0')).toMatchObject({ code: 0, stdout: 'stopped\n' });
    },
  );

  it('finds children that made sessions of their own, and ends those that ignore TERM', async () => {
    const stubborn = service({
      name: 'stubborn-r0',
      argv: [
        'sh',
        '-c',
        `trap '' TERM; setsid sh -c 'sleep 98763; sleep 98763' & while :; do sleep 98764; done`,
      ],
      secretEnv: {},
    });
    await start(stubborn);
    while (!(await running('sleep 98763'))) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await stopRank(host, 'stubborn-r0', { graceSeconds: 1 }, { signal: never })).toMatchObject({
      kind: 'ran',
      code: 0,
    });
    expect(await running('sleep 9876[34]')).toBe(false);
  });

  it('hands a line on well under 300 ms, resumes at a byte, and leaves no tail behind', async () => {
    const log = join(far.folder, 'feed');
    writeFileSync(log, '');
    const fed = service({ name: 'fed-r0', argv: ['tail', '-f', log], secretEnv: {} });
    await start(fed);
    let text = '';
    let at = 0;
    const controller = new AbortController();
    const end = followRank(host, 'fed-r0', 0, {
      signal: controller.signal,
      lines: (bytes) => {
        text += bytes.toString();
        at = performance.now();
      },
      beat: () => undefined,
    }).catch(() => undefined);
    writeFileSync(log, 'warm\n');
    await until(() => text === 'warm\n');
    // Each is written once the one before has come, so a look each second would be late every time.
    const late: number[] = [];
    for (const line of ['one\n', 'two\n', 'three\n', 'four\n', 'five\n']) {
      const written = performance.now();
      writeFileSync(log, line, { flag: 'a' });
      await until(() => text.endsWith(line));
      late.push(at - written);
    }
    const [, , middle] = late.sort((a, b) => a - b);
    expect(middle).toBeLessThan(300);
    controller.abort(new Error('left'));
    await end;
    writeFileSync(log, 'last\n', { flag: 'a' });
    while (await running(`tail -c \\+[0-9]* -f ${ranks()}/fed-r0/log`))
      await new Promise((go) => setTimeout(go, 50));
    farHost.ssh.dropConnections();
    const again = follow('fed-r0', text.length);
    await stop('fed-r0');
    expect(await again).toMatchObject({ text: 'last\n', end: { kind: 'ended' } });
  });

  it('tells at first, and at each change, whether the interface beside a rank has its carrier', async () => {
    const net = join(farHost.folder, 'sys/class/net/enp1s0f0np0');
    mkdirSync(net, { recursive: true });
    const state = (word: string) => writeFileSync(join(net, 'operstate'), `${word}\n`);
    state('up');
    await start(service({ name: 'dark-r0', argv: ['sleep', '98767'], secretEnv: {} }));
    const told: boolean[] = [];
    const following = followRank(host, 'dark-r0', 0, {
      signal: never,
      lines: () => undefined,
      beat: () => undefined,
      link: { name: 'enp1s0f0np0', tell: (up) => told.push(up) },
    });
    await until(() => told.length === 1);
    state('lowerlayerdown');
    await until(() => told.length === 2);
    // Nothing is known of a state that the kernel does not know.
    state('unknown');
    await new Promise((go) => setTimeout(go, 1500));
    state('up');
    await until(() => told.length === 3);
    expect(told).toEqual([true, false, true]);
    await stop('dark-r0');
    expect(await following).toMatchObject({ kind: 'ended' });
  });

  it('says where to go on when the link breaks', async () => {
    const fed = service({
      name: 'cut-r0',
      argv: ['sh', '-c', 'echo first; exec sleep 98765'],
      secretEnv: {},
    });
    await start(fed);
    let seen = '';
    const following = followRank(host, 'cut-r0', 0, {
      signal: never,
      lines: (bytes) => {
        seen += bytes.toString();
      },
      beat: () => undefined,
    });
    await until(() => seen === 'first\n');
    farHost.ssh.dropConnections();
    expect(await following).toMatchObject({ kind: 'lost', bytes: 6, failure: { why: 'closed' } });
    await stop('cut-r0');
  });

  it('says that a rank is gone whose runner was ended from outside', async () => {
    await start(service({ name: 'gone-r0', argv: ['sleep', '98766'], secretEnv: {} }));
    const [runner] = readFileSync(join(ranks(), 'gone-r0/runner'), 'utf8').split(' ');
    const following = follow('gone-r0');
    process.kill(Number(runner), 'SIGKILL');
    expect((await following).end).toEqual({ kind: 'gone', bytes: 0 });
    expect(await stop('gone-r0')).toMatchObject({ code: 0 });
    expect(await running('sleep 98766')).toBe(false);
  });

  it.each(['docker', 'podman'] as const)(
    'runs a rank in %s, takes it up again after its runner died, and removes the container',
    async (runtime) => {
      const inDocker = service({
        name: 'box-r1',
        in: runtime,
        argv: [
          runtime,
          'run',
          '--gpus=all',
          'image',
          'sh',
          '-c',
          'echo one; while ! [ -e "$HOME/go-$0" ]; do sleep 0.1; done; echo two; sleep 98767',
          runtime,
        ],
      });
      expect(await start(inDocker)).toMatchObject({ stdout: 'started\n' });
      const folder = join(ranks(), 'box-r1');
      const command = readFileSync(join(folder, 'command.sh'), 'utf8');
      expect(command).toContain(`${runtime} run \\\n  -d \\\n  --name firstlight-box-r1`);
      expect(command).toContain('--label firstlight.digest=d2');
      await until(() => readFileSync(join(folder, 'log'), 'utf8').includes('one'));
      expect(readFileSync(join(farHost.home, `${runtime}/firstlight-box-r1/env`), 'utf8')).toBe(
        "KEY=k'1 $x\n",
      );
      const [runner] = readFileSync(join(folder, 'runner'), 'utf8').split(' ');
      await done(['pkill', '-KILL', '-s', String(runner)]);
      expect((await follow('box-r1')).end.kind).toBe('gone');
      expect(await start(inDocker)).toMatchObject({ stdout: 'attached\n' });
      const following = follow('box-r1');
      writeFileSync(join(farHost.home, `go-${runtime}`), '');
      await until(() => readFileSync(join(folder, 'log'), 'utf8').includes('two'));
      expect(await stop('box-r1')).toMatchObject({ kind: 'ran', code: 0, stdout: 'stopped\n' });
      expect(await following).toMatchObject({
        text: '2026-01-01T00:00:00Z one\n2026-01-01T00:00:00Z two\n',
        end: { kind: 'ended', code: 137 },
      });
      expect(readdirSync(join(farHost.home, runtime))).toEqual([]);
      expect(await running('sleep 98767')).toBe(false);
    },
  );

  it.skipIf(!existsSync('/usr/bin/busybox'))('works with busybox alone', async () => {
    const key = far.key('box-client');
    const box = await far.host('box', {
      keys: [far.publicKey(key)],
      env: { PATH: join(far.folder, 'box/bin') },
    });
    const { stdout } = await done(['busybox', '--list']);
    for (const tool of stdout.trim().split('\n')) symlinkSync('/usr/bin/busybox', join(box.bin, tool));
    const [inBox] = openHosts(clusterOf(far, key, [{ name: 'box', host: box }]), {
      secrets: secretsOf(),
      socketFolder: join(far.folder, 's'),
    }).all;
    if (inBox === undefined) throw new Error('no host');
    const rank = service({
      name: 'box-r0',
      argv: ['sh', '-c', 'echo in the box; setsid sleep 98768 & sleep 98769'],
      secretEnv: {},
    });
    expect(await startRank(inBox, rank, START, { signal: never })).toMatchObject({ stdout: 'started\n' });
    expect(await startRank(inBox, rank, START, { signal: never })).toMatchObject({ stdout: 'already\n' });
    while (!(await running('sleep 98768'))) await new Promise((go) => setTimeout(go, 20));
    const ended = await stopRank(inBox, 'box-r0', { graceSeconds: 2 }, { signal: never });
    expect(ended).toMatchObject({ kind: 'ran', code: 0, stdout: 'stopped\n' });
    expect(await running('sleep 9876[89]')).toBe(false);
    let text = '';
    const lines = (bytes: Buffer) => {
      text += bytes.toString();
    };
    const end = await followRank(inBox, 'box-r0', 3, { signal: never, lines, beat: () => undefined });
    expect([end.kind, text]).toEqual(['ended', 'the box\n']);
  });

  it('tells in the log why docker did not start a container', async () => {
    mkdirSync(join(farHost.home, 'docker'), { recursive: true });
    await start(
      service({ name: 'none-r0', in: 'docker', argv: ['docker', 'run', 'missing'], secretEnv: {} }),
    );
    expect(await follow('none-r0')).toMatchObject({
      text: "Unable to find image 'missing'\n",
      end: { kind: 'ended', code: 125 },
    });
  });
});
