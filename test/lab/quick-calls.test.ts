import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compiled } from '../../src/lab/stubs.ts';
import { type OpenLab, openLab } from './world-ssh.ts';

let lab: OpenLab;
beforeAll(async () => {
  lab = await openLab('two-sparks');
});
afterAll(() => lab.close());

/** Calls that wait for their answer. */
const waiting = () => readdirSync(join(lab.folder, 'quick')).filter((name) => name !== 'calls');

describe('a call that is answered without a process of node’s', () => {
  it.each([
    'docker ps -a --no-trunc',
    'docker inspect comfyui',
    'docker inspect nobody',
    'docker image inspect --format {{.Id}} nobody',
    'nvidia-smi --query-gpu=name,driver_version --format=csv,noheader',
    'nvidia-smi --query-gpu=nonsense --format=csv',
    'ss -ltnpeH',
    'ip -j addr',
    'ip -j route get 192.168.200.12',
    'dmesg',
  ])('says what it says otherwise: %s', async (line) => {
    const quick = await lab.on('spark-b', line);
    const slow = await lab.on('spark-b', `${process.execPath} ${compiled('stand-in.js')} ${line}`);
    // The clock goes on between the two, from "Less than a second" too, and a longer time makes its column wider.
    const time = /(?:Less than a|About an?|\d+) (?:second|minute|hour)s?/g;
    const plain = (text: string): string =>
      line.startsWith('docker ps') ? text.replace(time, 'TIME').replace(/ {2,}/g, '  ') : text;
    expect({ ...quick, stdout: plain(quick.stdout) }).toEqual({ ...slow, stdout: plain(slow.stdout) });
    expect(waiting()).toEqual([]);
  });

  it('knows root by sudo, as others do', async () => {
    const mine = await lab.on('spark-b', 'ss -ltnpeH');
    const roots = await lab.on('spark-b', 'sudo -S ss -ltnpeH', 'northern-light\n');
    expect(mine.stdout).not.toContain('"llama-server"');
    expect(roots.stdout).toContain('"llama-server"');
  });

  it('is one of many at once, and of some that are ended', async () => {
    const line =
      'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do docker ps -q >out.$i & done; docker ps -q >/dev/null & kill $!; wait; cat out.* | wc -l; rm -f out.*';
    expect((await lab.on('spark-b', line)).stdout.trim()).toBe('12');
    expect((await lab.on('spark-b', 'docker ps -q | wc -l')).stdout.trim()).toBe('1');
  });
});
