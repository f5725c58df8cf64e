import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, hostname, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { known, valueIf } from '../../src/domain/facts.ts';
import type { LookRequest } from '../../src/domain/probe.ts';
import { assembleFacts } from '../../src/knowledge/probes/index.ts';
import { runProbesHere, type Shell } from './run-probes-here.ts';

const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'firstlight-here-'));
const request: LookRequest = {
  modelPath: folder,
  images: [],
  programs: [{ engine: 'vllm', program: join(folder, 'bin', 'vllm') }],
  peers: [{ node: 'peer', address: '127.0.0.1' }],
};
/** As the node's own folder is called. */
const machine = existsSync('/etc/machine-id') ? readFileSync('/etc/machine-id', 'utf8').trim() : hostname();
let child: ChildProcess;
let orphan: ChildProcess;
let port = 0;

/** A process that really holds 300 MiB and really listens. */
const HOLDS = `const b = Buffer.alloc(${300 * MIB}, 1);
require('node:net').createServer(() => {}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
setInterval(() => b[0], 1e6);`;

beforeAll(async () => {
  child = spawn(process.execPath, ['-e', HOLDS, '--', '--api-key', 'very-secret'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // Started as a rank's runner starts its engine, by a runner that is not there any more.
  orphan = spawn(process.execPath, ['-e', HOLDS], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, FIRSTLIGHT_RANK: `${homedir()}/.firstlight/${machine}/ranks/gone-r1/` },
  });
  if (orphan.stdout === null) throw new Error('no pipe');
  await once(orphan.stdout, 'data');
  if (child.stdout === null) throw new Error('no pipe');
  const [chunk] = await once(child.stdout, 'data');
  port = Number(String(chunk));
  writeFileSync(join(folder, 'config.json'), '{"model_type": "qwen3"}');
});
afterAll(() => {
  child.kill('SIGKILL');
  orphan.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const shells: readonly (readonly [string, Shell])[] = [
  ['dash', ['dash']],
  ['busybox', ['busybox', 'sh']],
];

describe('a look at this very machine', () => {
  for (const [name, shell] of shells) {
    it.skipIf(spawnSync(shell[0], ['-c', 'true']).error !== undefined)(
      `sees what is really here, with ${name}`,
      () => {
        const outputs = runProbesHere(shell, request, { ...process.env, FIRSTLIGHT_ROOT: '' });
        for (const { stderr, timedOut } of outputs.values()) {
          expect(timedOut).toBe(false);
          expect(stderr).not.toMatch(/syntax|unexpected|not found/i);
        }
        const facts = assembleFacts({
          node: 'here',
          at: new Date().toISOString(),
          milliseconds: 1,
          outputs,
          request,
          clockOffsetSeconds: known(0),
        });
        expect(valueIf(facts.host)).toMatchObject({
          hostname: hostname(),
          home: homedir(),
          uid: process.getuid?.(),
        });
        const total = valueIf(facts.memory)?.totalBytes ?? 0;
        expect(Math.abs(total - totalmem())).toBeLessThan(64 * MIB);
        expect(valueIf(facts.disks)?.length).toBe(3);
        expect(valueIf(facts.model ?? known(undefined))).toMatchObject({
          present: true,
          config: { value: { model_type: 'qwen3' } },
        });
        expect(facts.engines).toEqual({ known: true, value: [] });
        const holders = valueIf(facts.holders);
        // In a container of its own this machine's processes are one holder.
        const holder =
          holders?.find((each) => each.pid === child.pid) ??
          holders?.find((each) => each.command.includes('300'));
        expect(holder?.bytes).toBeGreaterThan(300 * MIB);
        expect(valueIf(facts.holders)?.find((each) => each.pid === orphan.pid)?.owner).toMatchObject({
          kind: 'rank',
          name: 'gone-r1',
          orphan: { why: 'its rank has ended and left it behind' },
        });
        if (holder?.owner.kind === 'process') {
          expect(holder.pid).toBe(child.pid);
          expect(holder.owner.environmentReadable).toBe(true);
          expect(holder.command).not.toContain('very-secret');
          expect(valueIf(holder.ageSeconds)).toBeLessThan(300);
        }
        expect(valueIf(facts.ports)?.some((each) => each.port === port && each.address === '127.0.0.1')).toBe(
          true,
        );
      },
    );
  }
});
