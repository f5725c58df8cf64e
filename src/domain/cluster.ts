import { z } from 'zod';

/** A host name, address, `user@host`, `ssh://user@host:port` or ssh_config alias; never something ssh reads as an option. */
const destination = z
  .string()
  .min(1)
  .max(255)
  .regex(
    /^[^-\s*?!,"'`$\\;|&<>(){}#%][^\s*?!,"'`$\\;|&<>(){}#%]*$/,
    'is not a host name, address or ssh alias',
  );

const nodeName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    'must be letters, digits, ".", "_" and "-", and begin with a letter or digit',
  );

const user = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*\$?$/, 'is not a user name');
const port = z.number().int().min(1).max(65535);
const address = z.union([z.ipv4(), z.ipv6()], 'is not an IP address');

const reach = {
  user: user.optional().describe('user to log in as; your ssh_config counts where it is left out'),
  port: port.optional().describe('port of sshd; your ssh_config counts where it is left out'),
  key: z
    .string()
    .min(1)
    .optional()
    .describe("a private key's file; ~ is your home, other paths are relative to this file"),
  jump: destination
    .or(z.string().regex(/^[^-\s'"`$\\;|&<>(){}][^\s'"`$\\;|&<>(){}]*$/))
    .optional()
    .describe("a node's name, or any ProxyJump value"),
  fabric: address
    .optional()
    .describe("the node's address on the network between the nodes; found by looking where left out"),
};

const nodeSchema = z.strictObject({
  name: nodeName.describe('what the node is called here; names must differ'),
  ssh: destination.describe(
    'whatever ssh accepts: address, name, user@host, ssh://user@host:port, an alias of your ssh_config',
  ),
  ...reach,
});

export const clusterSchema = z.strictObject({
  cluster: nodeName.describe("the cluster's name"),
  sshConfig: z.string().min(1).optional().describe('an ssh_config of its own, included'),
  defaults: z.strictObject(reach).optional().describe('for every node that does not say otherwise'),
  nodes: z
    .array(nodeSchema)
    .min(1, 'needs at least one node')
    .describe('the hosts; a recipe takes the first ones, the first is the head'),
});

/** One host, with the file's defaults folded in. */
export type Node = {
  readonly name: string;
  readonly ssh: string;
  readonly user?: string;
  readonly port?: number;
  readonly key?: string;
  readonly jump?: string;
  readonly fabric?: string;
};

export type Cluster = {
  readonly name: string;
  /** Absolute path of the file this came from. */
  readonly file: string;
  /** Absolute path, where the file names one. */
  readonly sshConfig?: string;
  readonly nodes: readonly Node[];
};

/** What a client over the network is told of the cluster, and of what it may do. */
export type ClusterInfo = {
  readonly cluster: string;
  readonly clusterFile: string;
  readonly nodes: readonly {
    readonly name: string;
    readonly ssh: string;
    readonly jump?: string | undefined;
    readonly fabric?: string | undefined;
  }[];
  readonly version: string;
  readonly readOnly: boolean;
  readonly scope: 'read' | 'write';
  readonly newestRun?: string | undefined;
};
