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
  user: user.optional(),
  port: port.optional(),
  /** Path of an identity file; `~` and paths relative to the cluster file are allowed. */
  key: z.string().min(1).optional(),
  /** A node's name, or any ProxyJump value. */
  jump: destination.or(z.string().regex(/^[^-\s'"`$\\;|&<>(){}][^\s'"`$\\;|&<>(){}]*$/)).optional(),
  /** The node's address on the fabric between the nodes; found by looking where left out. */
  fabric: address.optional(),
};

const nodeSchema = z.strictObject({ name: nodeName, ssh: destination, ...reach });

export const clusterSchema = z.strictObject({
  cluster: nodeName,
  sshConfig: z.string().min(1).optional(),
  defaults: z.strictObject(reach).optional(),
  nodes: z.array(nodeSchema).min(1, 'needs at least one node'),
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
