import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Story, StoryHost } from './story.ts';

export type LabKeys = {
  readonly userKey: { readonly private: string; readonly public: string };
  /** Public keys and SSH ports of the hosts, by name. */
  readonly hostKeys: ReadonlyMap<string, string>;
  readonly ports: ReadonlyMap<string, number>;
};

/** Writes what a person would have for a cluster: cluster file, recipe, ssh config, keys; and the lab's own home. */
export function writeLabFiles(folder: string, story: Story, keys: LabKeys): void {
  mkdirSync(join(folder, 'home'), { recursive: true, mode: 0o700 });
  const put = (name: string, text: string, mode = 0o644): void => {
    const file = join(folder, name);
    rmSync(file, { force: true });
    writeFileSync(file, text, { mode });
    chmodSync(file, mode);
  };
  put('id_ed25519', keys.userKey.private, 0o600);
  put('id_ed25519.pub', `${keys.userKey.public}\n`);
  put('known_hosts', [...keys.hostKeys].map(([name, key]) => `${alias(name)} ${bare(key)}\n`).join(''));
  put('ssh_config', story.hosts.map((host) => sshBlock(folder, host, keys)).join('\n'));
  put('cluster.yaml', stringify(clusterOf(story)));
  put('recipe.yaml', stringify(story.recipe));
  const password = Object.values(story.passwords)[0];
  if (password !== undefined) put('sudo-password', `${password}\n`, 0o600);
}

function clusterOf(story: Story): Record<string, unknown> {
  const [first] = story.hosts;
  return {
    cluster: story.cluster,
    sshConfig: './ssh_config',
    defaults: { user: first?.user ?? '' },
    nodes: story.hosts.map((host) => ({
      name: host.name,
      ssh: addressOf(host),
      ...(host.management.fromController ? {} : { jump: first?.name ?? '' }),
      fabric: host.fabric.address,
    })),
  };
}

function addressOf(host: StoryHost): string {
  return host.management.fromController ? host.management.address : host.fabric.address;
}

/**
 * The controller reaches a host through its address as anywhere; only where that address leads is the lab's: to a
 * port on loopback. A host behind a jump gets none: its address means something to the host that jumps there alone.
 */
function sshBlock(folder: string, host: StoryHost, keys: LabKeys): string {
  const lines = [
    `Host ${addressOf(host)} ${host.name}`,
    ...(host.management.fromController
      ? ['HostName 127.0.0.1', `Port ${keys.ports.get(host.name) ?? 22}`]
      : [`HostName ${addressOf(host)}`]),
    `User ${host.user}`,
    `HostKeyAlias ${alias(host.name)}`,
    `UserKnownHostsFile ${quoted(join(folder, 'known_hosts'))}`,
    'GlobalKnownHostsFile /dev/null',
    `IdentityFile ${quoted(join(folder, 'id_ed25519'))}`,
    'IdentitiesOnly yes',
    'IdentityAgent none',
    'UpdateHostKeys no',
  ];
  return `${lines.map((line, at) => (at === 0 ? line : `  ${line}`)).join('\n')}\n`;
}

function alias(name: string): string {
  return `lab-${name}`;
}

function bare(key: string): string {
  return key.split(' ').slice(0, 2).join(' ');
}

/** ssh_config expands % in paths. */
function quoted(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}
