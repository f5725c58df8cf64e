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
    const written = (nodes: WrittenNode[]) =>
      clusterText(
        {
          cluster: input.name,
          ...(input.sshConfig === undefined ? {} : { sshConfig: input.sshConfig }),
          ...(input.user === undefined ? {} : { defaults: { user: input.user } }),
          nodes,
        },
        path,
      );
    const nodes = input.nodes.map(readNode);
    // The file's own checks run on what would be written, before any host is asked.
    const text = written(nodes);
    const found = input.probe
      ? await probeNew(world, parseClusterText(text, path))
      : new Map<string, string>();
    const whole = written(
      nodes.map((node) => {
        const fabric = node.fabric ?? found.get(node.name);
        return fabric === undefined ? node : { ...node, fabric };
      }),
    );
    writeClusterFile(path, whole, input.force);
    return { report: { kind: 'init', file: path, nodes: nodes.length }, exit: 0 };
  },
};

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
