import type { Cluster } from '../domain/cluster.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import type { Hosts, Secrets } from './host.ts';
import { acceptKey } from './host-key.ts';
import { limitTo } from './limit.ts';
import { openSocketFolder } from './socket-folder.ts';
import { type Link, makeLinks } from './ssh-config.ts';
import { SshHost } from './ssh-host.ts';

/** Direct logins at once, from here: each costs CPU. */
const LOGINS = 16;

/**
 * The cluster's hosts over the system's OpenSSH client. Nothing is connected yet. Masters outlive this process
 * for ten minutes, so the next run finds them. Throws a UserError for jumps in a circle and a socket folder that
 * is not ours.
 */
export function openHosts(
  cluster: Cluster,
  options: {
    readonly secrets: Secrets;
    readonly socketFolder?: string;
    /** ssh's ConnectTimeout, 10 where left out. */
    readonly connectTimeoutSeconds?: number;
    /** How long a host may say nothing before it is asked, beside, whether it is there; 3000 where left out. */
    readonly quietMs?: number;
    /** For how long who was waited for in vain counts as out of reach; 5000 where left out. */
    readonly vainMs?: number;
    /** For how long who was found to be there is not asked again; 10000 where left out. */
    readonly thereMs?: number;
    /** Told when a host says nothing for `quietMs`, with the name of the node or jump host. */
    readonly onQuiet?: (name: string) => void;
  },
): Hosts {
  const linkOptions: ConnectionOptions = {
    connectTimeoutSeconds: options.connectTimeoutSeconds ?? 10,
    quietMs: options.quietMs ?? 3000,
    vainMs: options.vainMs ?? 5000,
    thereMs: options.thereMs ?? 10_000,
    onQuiet: options.onQuiet ?? (() => undefined),
  };
  const links = makeLinks(cluster, openSocketFolder(options.socketFolder), linkOptions);
  const limit = limitTo(LOGINS);
  const connections = new Map<Link, Connection>();
  const connectionOf = (link: Link): Connection => {
    const open = connections.get(link);
    if (open !== undefined) return open;
    const via = link.via === undefined ? undefined : connectionOf(link.via);
    const connection = new Connection(link, via, linkOptions, limit);
    connections.set(link, connection);
    return connection;
  };
  const hosts = new Map(
    cluster.nodes.map((node) => {
      const link = links.get(node.name);
      if (link === undefined) throw new Error(`no link for ${node.name}`);
      const connection = connectionOf(link);
      return [node.name, { host: new SshHost(node, connection, options.secrets), connection }] as const;
    }),
  );
  const find = (node: string) => {
    const found = hosts.get(node);
    if (found === undefined) throw new Error(`the cluster has no node ${node}`);
    return found;
  };
  return {
    all: [...hosts.values()].map(({ host }) => host),
    of: (node) => find(node).host,
    acceptHostKey: (node, fingerprint, { signal }) => acceptKey(find(node).connection, fingerprint, signal),
  };
}
