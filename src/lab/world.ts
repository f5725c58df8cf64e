import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { interfacesOf, writeInterface } from './host-files.ts';
import { LabHost } from './lab-host.ts';
import { NetworkTable } from './network-table.ts';
import { randomOf } from './random.ts';
import { type SshHost, serveSsh } from './ssh-host.ts';
import type { Story } from './story.ts';
import { writeStubs } from './stubs.ts';
import { happen, Timeline } from './timeline.ts';

export type LabWorld = {
  readonly story: Story;
  readonly hosts: readonly LabHost[];
  readonly network: NetworkTable;
  /** By host name. */
  readonly ssh: ReadonlyMap<string, SshHost>;
  host(name: string): LabHost;
  /** Pulls that interface's cable, or plugs it in again. */
  cable(host: string, interfaceName: string, plugged: boolean): void;
  close(): Promise<void>;
};

export type WorldOptions = {
  readonly folder: string;
  readonly story: Story;
  readonly seed: string;
  readonly control: { readonly port: number; readonly token: string };
  /** Private keys of the hosts by name, and the public key that may log in. */
  readonly hostKeys: Readonly<Record<string, string>>;
  readonly userKey: string;
};

/** Makes the hosts of a story in a folder, and their SSH servers; nothing of the story runs before `begin`. */
export async function makeWorld(options: WorldOptions): Promise<LabWorld> {
  const { folder, story, seed, control } = options;
  const network = new NetworkTable(
    story.hosts.map((host) => ({ name: host.name, interfaces: interfacesOf(host, seed) })),
    story.firewall,
  );
  const alive = join(folder, 'alive');
  const { status, error } = spawnSync('mkfifo', [alive]);
  if (status !== 0) throw new Error('the lab needs the command mkfifo', { cause: error });
  // Both ends: it can be opened before anybody reads, and ends for all readers when this process does.
  const held = openSync(alive, constants.O_RDWR);
  const programs = story.hosts.flatMap(({ holders }) =>
    holders.flatMap(({ kind, argv }) => (kind === 'process' ? [argv[0] ?? ''] : [])),
  );
  const { bin, imageBin } = writeStubs(folder, programs, alive);
  const random = randomOf(`memory:${seed}`);
  const timeline = new Timeline(folder, story.timeline, (turn) => happen(opened, turn));
  const hosts: readonly LabHost[] = story.hosts.map((host) => {
    const root = join(folder, 'hosts', host.name);
    mkdirSync(root, { recursive: true });
    return new LabHost({
      story,
      host,
      seed,
      root,
      bin,
      imageBin,
      alive,
      lab: `${control.port}:${control.token}:${host.name}`,
      network,
      backAfter: () => 1000 + random() * 1000,
      sees: (moment) => timeline.sees(moment, host.name),
    });
  });
  const hostNamed = (name: string): LabHost => {
    const found = hosts.find((host) => host.name === name);
    if (found === undefined) throw new Error(`the lab has no host ${name}`);
    return found;
  };
  const ssh = new Map<string, SshHost>();
  for (const host of hosts) ssh.set(host.name, await serve(host, network, options));
  const opened: LabWorld = {
    story,
    hosts,
    network,
    ssh,
    host: hostNamed,
    cable(name, interfaceName, plugged) {
      network.cut(name, interfaceName, !plugged);
      const host = hostNamed(name);
      for (const item of host.interfaces) writeInterface(host.root, item);
    },
    async close() {
      timeline.close();
      for (const host of hosts) host.close();
      closeSync(held);
      await Promise.all([...ssh.values()].map((server) => server.close()));
    },
  };
  return opened;
}

async function serve(host: LabHost, network: NetworkTable, options: WorldOptions): Promise<SshHost> {
  const server = await serveSsh({
    hostKey: options.hostKeys[host.name] ?? '',
    users: { [host.user]: { authorizedKeys: [options.userKey] } },
    exec: { shell: '/bin/sh', env: host.loginEnvironment(), cwd: host.login(host.user).home },
    dial: (address, port) => network.dial(host.name, address, port),
  });
  network.listen({
    host: host.name,
    address: '0.0.0.0',
    port: 22,
    realPort: server.port,
    pid: 0,
    program: 'sshd',
    uid: 0,
  });
  return server;
}
