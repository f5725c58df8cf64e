import { randomBytes } from 'node:crypto';
import { mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import ssh2 from 'ssh2';
import { openControl } from './control.ts';
import { writeLabFiles } from './lab-files.ts';
import { answerQuickCalls } from './quick-calls.ts';
import { allPids, environmentOf, signal, startTicks } from './real-process.ts';
import { findStory } from './stories/index.ts';
import type { Story } from './story.ts';
import { type LabWorld, makeWorld } from './world.ts';

export type Lab = { readonly folder: string; readonly world: LabWorld; close(): Promise<void> };

/** Starts a lab in this process: hosts, SSH servers, control port, files. `lab.json` is written last. */
export async function startDaemon(folder: string, story: Story | string, seed: number): Promise<Lab> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const real = realpathSync(folder);
  for (const old of ['hosts', 'bin', 'image-bin', 'alive', 'lab.json']) {
    rmSync(join(real, old), { recursive: true, force: true });
  }
  const told = typeof story === 'string' ? findStory(story, seed) : story;
  const token = randomBytes(16).toString('hex');
  let world: LabWorld | undefined;
  const control = await openControl(token, () => {
    if (world === undefined) throw new Error('the lab is not there yet');
    return world;
  });
  const quick = answerQuickCalls(real, token, () => {
    if (world === undefined) throw new Error('the lab is not there yet');
    return world;
  });
  const userKey = keyPair(`${told.hosts[0]?.user ?? 'lab'}@firstlight-lab`);
  const hostKeys = new Map(told.hosts.map(({ name }) => [name, keyPair(`root@${name}`)]));
  world = await makeWorld({
    folder: real,
    story: told,
    seed: String(seed),
    control: { port: control.port, token },
    hostKeys: Object.fromEntries([...hostKeys].map(([name, pair]) => [name, pair.private])),
    userKey: userKey.public,
  });
  const opened = world;
  writeLabFiles(real, told, {
    userKey,
    hostKeys: new Map([...hostKeys].map(([name, pair]) => [name, pair.public])),
    ports: new Map([...opened.ssh].map(([name, server]) => [name, server.port])),
  });
  for (const host of opened.hosts) host.holders.begin();
  const state = {
    pid: process.pid,
    startTicks: startTicks(process.pid),
    port: control.port,
    story: told.name,
    seed,
    startedAt: new Date().toISOString(),
    hosts: opened.hosts.map(({ name }) => ({ name, sshPort: opened.ssh.get(name)?.port })),
  };
  writeFileSync(join(real, '.lab.json'), `${JSON.stringify(state, null, 2)}\n`);
  renameSync(join(real, '.lab.json'), join(real, 'lab.json'));
  return {
    folder: real,
    world: opened,
    async close() {
      await opened.close();
      await control.close();
      quick.close();
      await endAllOf(real);
      rmSync(join(real, 'lab.json'), { force: true });
      rmSync(join(real, 'alive'), { force: true });
    },
  };
}

/**
 * Ends every process that runs on a host of the lab in that folder, told by its environment: sessions, ranks, all. One
 * that is just being executed shows no environment for a moment, so it is over once two looks in a row find none.
 */
export async function endAllOf(folder: string): Promise<void> {
  const hosts = join(folder, 'hosts/');
  const until = Date.now() + 5000;
  let quiet = 0;
  while (quiet < 2 && Date.now() < until) {
    const found = allPids().filter(
      (pid) => pid !== process.pid && environmentOf(pid)?.['FIRSTLIGHT_ROOT']?.startsWith(hosts) === true,
    );
    for (const pid of found) signal(pid, 'SIGKILL');
    quiet = found.length === 0 ? quiet + 1 : 0;
    await wait(20);
  }
}

function keyPair(comment: string): { readonly private: string; readonly public: string } {
  // ssh2 takes zeros at the beginning of a public key for padding: one pair in 256 comes out a byte short.
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}
