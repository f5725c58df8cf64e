import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { known, type ReachedFacts, valueIf } from '../../src/domain/facts.ts';
import type { LookRequest } from '../../src/domain/probe.ts';
import { assembleFacts } from '../../src/knowledge/probes/index.ts';
import { buildFakeSpark, COMFY } from './fake-spark.ts';
import { expectGolden } from './golden.ts';
import { runProbesHere, type Shell } from './run-probes-here.ts';

const request: LookRequest = {
  modelPath: '/home/aurora/models/m',
  images: [
    { engine: 'sglang', image: 'lmsysorg/sglang:latest' },
    { engine: 'vllm', image: 'vllm/vllm-openai:v9' },
  ],
  programs: [],
  peers: [{ node: 'spark-a', address: '192.168.200.12' }],
};

const folder = mkdtempSync(join(tmpdir(), 'firstlight-probes-'));
const bin = join(folder, 'bin');
const applets = join(folder, 'busybox');
const home = join(folder, 'home');
const hasBusybox = spawnSync('busybox', ['true']).status === 0;
/** busybox-static runs its own applets whatever PATH says: there nothing can be faked. */
const takesPath = hasBusybox && spawnSync('busybox', ['sh', '-c', 'PATH=/nowhere; hostname']).status !== 0;

function look(shell: Shell, path: string, asked = request): ReachedFacts {
  const outputs = runProbesHere(shell, asked, {
    PATH: path,
    HOME: home,
    FIRSTLIGHT_ROOT: join(folder, 'root'),
  });
  return assembleFacts({
    node: 'spark-b',
    at: '2026-11-29T10:00:00Z',
    milliseconds: 300,
    outputs,
    request: asked,
    clockOffsetSeconds: known(0),
  });
}

/** Less what depends on this machine: its disk, and how long ago the tree was built. */
function steady(facts: ReachedFacts) {
  const { disks, ...rest } = facts;
  const text = JSON.stringify(rest)
    .replaceAll(folder, 'TMP')
    .replace(/"ageSeconds":\d+,"host"/, '"ageSeconds":0,"host"');
  return JSON.parse(text) as unknown;
}

beforeAll(() => {
  buildFakeSpark(join(folder, 'root'), bin, home);
  mkdirSync(applets);
  if (hasBusybox) execFileSync('busybox', ['--install', '-s', applets]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a look at a Spark', () => {
  it('sees the holders of the story and whose they are, with dash', () => {
    const facts = look(['dash'], `${bin}:${process.env['PATH']}`);
    expectGolden('spark', steady(facts));
    expect(facts.disks.known && facts.disks.value.map(({ path }) => path.replace(folder, 'TMP'))).toEqual([
      '/',
      'TMP/home',
      '/home/aurora/models/m',
    ]);
  });

  it.skipIf(!takesPath)('sees the same with nothing but busybox', () => {
    expectGolden('spark', steady(look([join(applets, 'sh')], `${bin}:${applets}`)), false);
  });

  it('lets no secret, no serial number and no control character into what it saw', () => {
    const text = JSON.stringify(look(['dash'], `${bin}:${process.env['PATH']}`));
    expect(text).not.toMatch(/very-secret|hf_abcdef|\\u001b|\\u202e|\u202e/);
  });

  it('keeps what /proc tells when nvidia-smi hangs and docker refuses', () => {
    const broken = join(folder, 'broken');
    standIn(broken, 'timeout', 'exit 137');
    standIn(
      broken,
      'docker',
      "echo 'permission denied while trying to connect to the docker API' >&2; exit 1",
    );
    const facts = look(['dash'], `${broken}:${bin}:${process.env['PATH']}`);
    expect(facts.gpus).toEqual({ known: false, why: 'nvidia-smi gave no answer in 5 s' });
    expect(facts.containers).toEqual({
      known: false,
      why: 'docker refuses this user: it is not in the group docker',
    });
    expect(facts.engines).toEqual(facts.containers);
    const holders = valueIf(facts.holders) ?? [];
    expect(holders.find(({ pid }) => pid === 4100)).toMatchObject({
      identity: COMFY,
      name: COMFY.slice(0, 12),
      gpuBytes: { known: false, why: 'nvidia-smi gave no answer in 5 s' },
      bytes: 2 ** 31,
      owner: { kind: 'container', restartPolicy: { known: false } },
    });
  });

  it.skipIf(!hasBusybox)('says what is not installed, and reads /proc instead', () => {
    const facts = look([join(applets, 'sh')], applets);
    expect(facts.gpus).toEqual({ known: false, why: 'nvidia-smi is not installed' });
    expect(facts.containers).toEqual({ known: true, value: [] });
    expect(facts.engines).toEqual({ known: false, why: 'docker is not installed' });
    expect(facts.ports).toMatchObject({
      value: [{ address: '127.0.0.1', port: 11434, pid: { known: false } }],
    });
    expect(valueIf(facts.holders)?.find(({ name }) => name === 'ollama.service')?.owner).toMatchObject({
      kind: 'unit',
      restart: { known: false, why: 'systemd was not asked' },
    });
  });

  it('finds a program, and reads its version off its package', () => {
    const program = '/opt/venv/bin/vllm';
    const facts = look(['dash'], `${bin}:${process.env['PATH']}`, {
      ...request,
      images: [],
      programs: [
        { engine: 'vllm', program },
        { engine: 'sglang', program: 'no-such-program' },
      ],
    });
    expect(facts.engines).toEqual({
      known: true,
      value: [
        { engine: 'vllm', where: { in: 'process', program }, version: { known: true, value: '0.11.2' } },
      ],
    });
  });
});

function standIn(into: string, name: string, body: string): void {
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
}
