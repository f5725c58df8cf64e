import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findLab, labDown, labUp } from '../../src/lab/lab.ts';
import { allPids, environmentOf, signal } from '../../src/lab/real-process.ts';
import { GIB } from '../../src/lab/story.ts';
import { type OpenLab, openLab, until } from './world-ssh.ts';

const PASSWORD = 'northern-light\n';
/** sudo with the password on the first line of the input, as the product does it. */
const AS_ROOT = `sudo -S -p '' -v && sudo -n`;

const available = (lab: OpenLab) => lab.worker.ledger.snapshot.availableBytes;

describe('two-sparks', () => {
  let lab: OpenLab;
  beforeAll(async () => {
    lab = await openLab('two-sparks');
  });
  afterAll(async () => {
    await lab.close();
  });

  it('reaches the head directly, and the worker through it', async () => {
    expect((await lab.on('spark-a', 'hostname')).stdout).toBe('spark-a\n');
    expect((await lab.on('spark-b', 'hostname; echo $HOME')).stdout).toBe(
      `spark-b\n${join(lab.worker.root, 'home/aurora')}\n`,
    );
  });

  it('knows the worker’s address on the worker’s own network only', () => {
    const { network } = lab.world;
    expect(network.find('spark-a', '192.168.200.13', 22)).toMatchObject({ host: 'spark-b' });
    expect(network.find('spark-a', '10.1.231.181', 22)).toBe('EHOSTUNREACH');
    expect(readFileSync(join(lab.folder, 'ssh_config'), 'utf8')).not.toMatch(
      /Host 192\.168\.200\.13[\s\S]*127\.0\.0\.1/,
    );
  });

  it('lets 127.x lead to the host itself, and tells addresses on loopback apart', () => {
    const { network } = lab.world;
    const wish = { host: 'spark-b', realPort: 1, pid: 0, program: 'x', uid: 0 };
    const listener = network.listen({ ...wish, address: '127.0.1.1', port: 7777 });
    expect(network.find('spark-b', '127.0.1.1', 7777)).toMatchObject({ host: 'spark-b' });
    expect(network.find('spark-b', '127.0.0.1', 7777)).toBe('ECONNREFUSED');
    expect(network.find('spark-a', '127.0.1.1', 7777)).toBe('ECONNREFUSED');
    expect(network.listen({ ...wish, address: '0.0.0.0', port: 7777 })).toBe('EADDRINUSE');
    expect(network.listen({ ...wish, address: '192.168.200.12', port: 7 })).toBe('EADDRNOTAVAIL');
    if (typeof listener !== 'string') network.forget(listener);
  });

  it('is out of reach over a cable that is pulled', () => {
    const { network } = lab.world;
    const carrier = () => readFileSync(join(lab.head.root, 'sys/class/net/enp1s0f0np0/carrier'), 'utf8');
    lab.world.cable('spark-a', 'enp1s0f0np0', false);
    expect(network.find('spark-a', '192.168.200.13', 22)).toBe('EHOSTUNREACH');
    expect(carrier()).toBe('0\n');
    lab.world.cable('spark-a', 'enp1s0f0np0', true);
    expect(carrier()).toBe('1\n');
    expect(network.find('spark-a', '192.168.200.13', 22)).toMatchObject({ host: 'spark-b' });
  });

  it('brings a unit with Restart=always back after a kill, under another pid', async () => {
    const unit = lab.worker.systemd.find('ollama', false);
    const before = unit?.pid ?? 0;
    await lab.on('spark-b', `${AS_ROOT} sh -c 'kill ${before}'`, PASSWORD);
    const after = await until(
      () => unit?.pid ?? 0,
      (pid) => pid !== 0 && pid !== before,
    );
    expect(existsSync(join(lab.worker.root, 'proc', String(before)))).toBe(false);
    expect(readFileSync(join(lab.worker.root, 'proc', String(after), 'comm'), 'utf8')).toBe('ollama\n');
  });

  it('brings a container with restart policy back after a kill, and not after docker stop', async () => {
    const container = lab.worker.docker.find('comfyui');
    if (container === undefined) throw new Error('no container');
    const before = container.pid;
    await lab.on(
      'spark-b',
      `${AS_ROOT} kill -9 ${before} 2>/dev/null || ${AS_ROOT} sh -c 'kill -9 ${before}'`,
      PASSWORD.repeat(2),
    );
    await until(
      () => container.pid,
      (pid) => pid !== 0 && pid !== before,
    );
    expect(container.restartCount).toBe(1);
    const said = await lab.on('spark-b', 'docker update --restart=no comfyui && docker stop comfyui');
    expect(said).toMatchObject({ code: 0, stdout: 'comfyui\ncomfyui\n' });
    expect(container.state).toBe('exited');
    expect(
      (await lab.on('spark-b', 'docker start comfyui && docker ps --format "{{.Names}} {{.State}}"')).stdout,
    ).toBe('comfyui\ncomfyui running\n');
    await lab.on('spark-b', 'docker update --restart=always comfyui');
  });

  it('gives the memory of a stopped holder back late, and takes it again when it starts', async () => {
    const before = await until(
      () => available(lab),
      (bytes) => bytes > 40 * GIB && bytes < 42 * GIB,
    );
    const unit = lab.worker.systemd.find('ollama', false);
    const stopped = lab.on('spark-b', `${AS_ROOT} systemctl stop ollama.service`, PASSWORD);
    // Looked at when it has ended: its memory may be back before the command is, on a busy machine.
    await until(
      () => unit?.pid,
      (pid) => pid === 0,
    );
    expect(available(lab)).toBeLessThan(before + GIB);
    await stopped;
    await until(
      () => available(lab),
      (bytes) => bytes > before + 31 * GIB,
    );
    expect((await lab.on('spark-b', 'systemctl is-active ollama')).stdout).toBe('inactive\n');
    await lab.on('spark-b', `${AS_ROOT} systemctl start ollama.service`, PASSWORD);
    await until(
      () => available(lab),
      (bytes) => bytes < before + GIB,
    );
  });

  it('drops the page cache for root, and for nobody else', async () => {
    const drop = `sync; echo 3 >"$FIRSTLIGHT_ROOT/proc/sys/vm/drop_caches"`;
    await until(
      () => lab.head.sudo.rootNow,
      (root) => !root,
    );
    await lab.on('spark-a', drop);
    await until(
      () => lab.head.trespasses.length,
      (count) => count > 0,
    );
    expect(lab.head.ledger.snapshot.cacheBytes).toBeGreaterThan(100 * GIB);
    await lab.on('spark-a', `${AS_ROOT} sh -c '${drop}'`, PASSWORD);
    await until(
      () => lab.head.ledger.snapshot,
      ({ cacheBytes, freeBytes }) => cacheBytes < GIB && freeBytes > 115 * GIB,
    );
    const { stdout } = await lab.on('spark-a', 'grep ^MemFree "$FIRSTLIGHT_ROOT/proc/meminfo"');
    expect(Number(/\d+/.exec(stdout)?.[0]) / 2 ** 20).toBeGreaterThan(115);
  });

  it('does not let a user end root’s process, and lets root', async () => {
    const pids = () =>
      lab.worker.processes.list.filter(({ comm }) => comm === 'llama-server').map(({ pid }) => pid);
    await until(
      () => lab.worker.sudo.rootNow,
      (root) => !root,
    );
    const [first = 0] = pids();
    await lab.on('spark-b', `kill ${first}`);
    await until(pids, ([pid]) => pid !== undefined && pid !== first);
    expect(lab.worker.trespasses).toHaveLength(1);
    const [second = 0] = pids();
    await lab.on('spark-b', `${AS_ROOT} sh -c 'kill ${second}'`, PASSWORD);
    await until(pids, (list) => list.length === 0);
    const undo = `cd "$FIRSTLIGHT_ROOT/srv/gguf" && setsid llama-server --model /srv/gguf/qwen3-32b-q4_k_m.gguf --port 8080 </dev/null >/dev/null 2>&1 &`;
    await lab.on('spark-b', `${AS_ROOT} sh -c '${undo}'`, PASSWORD);
    const [third = 0] = await until(pids, (list) => list.length === 1);
    expect(lab.worker.processes.find(third)).toMatchObject({ user: 'root', uid: 0 });
    await until(
      () => lab.worker.processes.gpuBytesOf(third),
      (bytes) => bytes > 20 * GIB,
    );
  });

  it('shows a session’s process in the host’s own /proc at once', async () => {
    const { stdout } = await lab.on(
      'spark-b',
      `setsid sh -c 'R=$FIRSTLIGHT_ROOT; cut -d" " -f1 $R/proc/$$/stat; echo $$; cat $R/proc/$$/cgroup'`,
    );
    const [seen, own, cgroup] = stdout.split('\n');
    expect(seen).toBe(own);
    expect(cgroup).toBe('0::/user.slice/user-1000.slice/session-1.scope');
  });

  it('has the model as config, index and sparse files of the true sizes', async () => {
    const folder = '"$FIRSTLIGHT_ROOT/home/aurora/models/Qwen3.5-122B-A10B-FP8"';
    const { stdout } = await lab.on(
      'spark-a',
      `cd ${folder} && ls | grep -c safetensors$; cat *.safetensors | wc -c & ls -l *.safetensors | awk '{s += $5} END {print s}'; kill $!; du -sk . | cut -f1`,
    );
    const [files, bytes, kib] = stdout.split('\n').map(Number);
    expect(files).toBe(39);
    expect(bytes).toBeGreaterThan(118e9);
    expect(bytes).toBeLessThan(130e9);
    expect(kib).toBeLessThan(2000);
  });
});

describe('a lab that ends', () => {
  it('leaves no process behind, those of sessions neither', async () => {
    const lab = await openLab('two-sparks');
    await lab.on('spark-b', `setsid sh -c 'while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &`);
    const left = () =>
      allPids().filter((pid) => environmentOf(pid)?.['FIRSTLIGHT_ROOT']?.startsWith(`${lab.folder}/`));
    expect(left().length).toBeGreaterThan(3);
    await lab.close();
    await until(left, (pids) => pids.length === 0);
  });
});

describe('a lab in the background', () => {
  it('is found, refuses a second one, and goes with all its processes, also when it is killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'fl-world-'));
    const left = () =>
      allPids().filter((pid) => environmentOf(pid)?.['FIRSTLIGHT_ROOT']?.startsWith(`${folder}/`));
    try {
      const lab = await labUp({ folder, story: 'two-sparks', seed: 7 });
      expect(findLab(folder)).toMatchObject({ pid: lab.pid, seed: 7, story: { name: 'two-sparks' } });
      await expect(labUp({ folder, story: 'two-sparks' })).rejects.toThrow('runs in');
      expect(left().length).toBeGreaterThan(2);
      signal(lab.pid, 'SIGKILL');
      await until(left, (pids) => pids.length === 0);
      expect(findLab(folder)).toBeUndefined();
      await labUp({ folder, story: 'clean-start' });
      await labDown(folder);
      expect(findLab(folder)).toBeUndefined();
      expect(left()).toEqual([]);
    } finally {
      await labDown(folder);
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('late-holder', () => {
  it('takes the worker’s memory when its rank starts, once, and is gone when it is ended', async () => {
    const lab = await openLab('late-holder');
    try {
      expect(available(lab)).toBeGreaterThan(114 * GIB);
      const image = lab.world.story.images[0]?.reference ?? '';
      const rank = `docker run -d --rm --gpus all --network host ${image} sh -c 'sleep 30'`;
      await lab.on('spark-b', rank);
      await until(
        () => available(lab),
        (bytes) => bytes < 0.5 * GIB,
      );
      const [holder] = lab.worker.processes.list.filter(({ comm }) => comm === 'finetune');
      signal(holder?.pid ?? 0, 'SIGTERM');
      await until(
        () => available(lab),
        (bytes) => bytes > 114 * GIB,
      );
      await lab.on('spark-b', rank);
      expect(available(lab)).toBeGreaterThan(114 * GIB);
    } finally {
      await lab.close();
    }
  });
});
