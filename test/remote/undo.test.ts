import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { script } from '../../src/domain/command.ts';
import type { Host } from '../../src/remote/host.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import { runUndo, writeUndo } from '../../src/remote/undo.ts';
import {
  clusterOf,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
} from '../pretend/far-side.ts';

describe('undo on a node', () => {
  let far: FarSide;
  let host: Host;
  let farHost: FarHost;
  const at = { run: '7', title: 'start ollama again\nnow', at: '2026-01-01T00:00:00Z', sudo: false };
  const file = (name: string) => join(farHost.home, '.firstlight/machine-a/undo/s1', name);

  beforeAll(async () => {
    far = farSide();
    const key = far.key('client');
    farHost = await far.host('a', { keys: [far.publicKey(key)] });
    const [first] = openHosts(clusterOf(far, key, [{ name: 'a', host: farHost }]), {
      secrets: secretsOf(),
      socketFolder: join(far.folder, 's'),
    }).all;
    if (first === undefined) throw new Error('no host');
    host = first;
  });
  afterAll(async () => {
    await endMasters(join(far.folder, 's'));
    await far.close();
  });

  it('is written once, before the step, with the command whole', async () => {
    const command = script(
      'printf "%s|" "$@" "$A"; cat "$R/etc/machine-id"; echo "$HOME" >>"$HOME/given-back"',
      ["it's", 'a\nb'],
      {
        env: { A: '$x' },
      },
    );
    const undo = {
      id: 's1',
      ...at,
      command: { ...command, stdin: `R="$FIRSTLIGHT_ROOT"\n${command.stdin}` },
    };
    expect(await writeUndo(host, undo, { signal: never })).toMatchObject({ kind: 'ran', code: 0 });
    const text = readFileSync(file('undo.sh'), 'utf8');
    expect(await writeUndo(host, { ...undo, title: 'another' }, { signal: never })).toMatchObject({
      code: 0,
    });
    expect(readFileSync(file('undo.sh'), 'utf8')).toBe(text);
    expect(JSON.parse(readFileSync(file('record.json'), 'utf8'))).toEqual({ id: 's1', ...at });
    expect(readFileSync(file('state'), 'utf8')).toBe('pending\n');
    expect(statSync(file('undo.sh')).mode & 0o077).toBe(0);
  });

  it('is run on the node and noted; a second time does as the script says', async () => {
    const ran = await runUndo(host, { id: 's1', sudo: false }, { signal: never });
    expect(ran).toMatchObject({ kind: 'ran', code: 0, stdout: "it's|a\nb|$x|machine-a\n" });
    expect(readFileSync(file('state'), 'utf8')).toBe('restored\n');
    expect(readFileSync(join(farHost.home, 'given-back'), 'utf8')).toBe(`${farHost.home}\n`);
  });

  it('stays pending when it fails, and an unknown one is told', async () => {
    await writeUndo(host, { id: 's2', ...at, command: script('echo no >&2; exit 5') }, { signal: never });
    expect(await runUndo(host, { id: 's2', sudo: false }, { signal: never })).toMatchObject({
      code: 5,
      stderr: 'no\n',
    });
    expect(readFileSync(join(farHost.home, '.firstlight/machine-a/undo/s2/state'), 'utf8')).toBe('pending\n');
    expect(await runUndo(host, { id: 's3', sudo: false }, { signal: never })).toMatchObject({ code: 1 });
  });

  it('is whole or not there, and never counts as given back for want of room', async () => {
    const undo = { ...at, command: script('true') };
    const folder = (id: string) => join(farHost.home, '.firstlight/machine-a/undo', id);
    mkdirSync(join(folder('s4'), 'undo.sh.new'), { recursive: true });
    expect(await writeUndo(host, { id: 's4', ...undo }, { signal: never })).toMatchObject({ code: 1 });
    expect(existsSync(folder('s4'))).toBe(false);
    mkdirSync(join(folder('s5'), 'state.new'), { recursive: true });
    writeFileSync(join(folder('s5'), 'state'), 'restored\n');
    expect(await writeUndo(host, { id: 's5', ...undo }, { signal: never })).toMatchObject({ code: 1 });
    expect(readFileSync(join(folder('s5'), 'state'), 'utf8')).toBe('restored\n');
  });
});
