import type { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { UserError } from '../domain/user-error.ts';
import { parseClusterText } from '../files/cluster-file.ts';
import { clusterText, type WrittenCluster, writeClusterFile } from '../files/write-cluster.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { probeNew } from './probe-new.ts';

type WrittenNode = WrittenCluster['nodes'][number];

/** `firstlight init NAME=DESTINATION…`: writes the cluster file, after looking whether its hosts answer. */
export const init: Operation<typeof inputs.init> = {
  name: 'init',
  summary: 'write the cluster file, after looking at its hosts',
  effect: 'changes',
  input: inputs.init,
  async run(input, world) {
    const path = world.clusterFile;
    if (input.nodes.length === 0) {
      throw new UserError(
        'bad-input',
        'no nodes were given',
        'firstlight init spark-a=aurora@10.1.230.180 spark-b=192.168.200.13,jump=spark-a',
      );
    }
    // The file's own checks run on what would be written, before any host is asked.
    const cluster = clusterOf(input, path);
    const found = input.probe ? await probeNew(world, cluster) : new Map<string, string>();
    const nodes = input.nodes.map(readNode).map((node) => {
      const fabric = node.fabric ?? found.get(node.name);
      return fabric === undefined ? node : { ...node, fabric };
    });
    writeClusterFile(path, textOf(input, nodes, path), input.force);
    return { report: { kind: 'init', file: path, nodes: nodes.length }, exit: 0 };
  },
};

type Input = Pick<z.output<typeof inputs.init>, 'name' | 'user' | 'sshConfig' | 'nodes'>;

/** The cluster that init would write to `path`, as it was typed. A UserError where it would be no cluster. */
export function clusterOf(input: Input, path: string): Cluster {
  return parseClusterText(textOf(input, input.nodes.map(readNode), path), path);
}

/** The file's text; a mistake in it was typed and stands in no file, so no place in one is named. */
function textOf({ name, user, sshConfig }: Input, nodes: WrittenNode[], path: string): string {
  const written = {
    cluster: name,
    ...(sshConfig === undefined ? {} : { sshConfig }),
    ...(user === undefined ? {} : { defaults: { user } }),
    nodes,
  };
  try {
    return clusterText(written, path);
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'bad-cluster-file') throw error;
    const message = error.message
      .split('\n')
      .map((line) => line.trim().replace(/^.*?:\d+:\d+: /, ''))
      .join('; ');
    throw new UserError('bad-input', message, 'Mend what init was given; no file was written.', error);
  }
}

/** `spark-b=192.168.200.13,jump=spark-a` → one entry of the file. */
function readNode(text: string): WrittenNode {
  const [head = '', ...more] = text.split(',');
  const at = head.indexOf('=');
  if (at <= 0)
    throw new UserError(
      'bad-input',
      `"${text}" is not NAME=DESTINATION`,
      'for example spark-a=aurora@10.1.230.180',
    );
  const node: WrittenNode = { name: head.slice(0, at), ssh: head.slice(at + 1) };
  for (const part of more) {
    const [key = '', ...rest] = part.split('=');
    const value = rest.join('=');
    switch (key) {
      case 'jump':
      case 'user':
      case 'fabric':
      case 'key':
        node[key] = value;
        break;
      case 'port':
        if (!/^\d+$/.test(value))
          throw new UserError(
            'bad-input',
            `the port "${value}" in "${text}" is no number`,
            'for example port=22',
          );
        node.port = Number(value);
        break;
      default:
        throw new UserError(
          'bad-input',
          `"${key}" in "${text}" is not known`,
          'known are: jump, port, user, fabric, key',
        );
    }
  }
  return node;
}
