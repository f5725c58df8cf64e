import { existsSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { UserError } from '../domain/user-error.ts';
import { parseClusterText } from '../files/cluster-file.ts';
import { inputs } from './inputs.ts';
import type { Operation } from './operation.ts';
import { probeNew } from './probe-new.ts';

const NODE_KEYS = ['jump', 'port', 'user', 'fabric', 'key'] as const;

/** `firstlight init NAME=DESTINATION…`: writes the cluster file, after looking whether its hosts answer. */
export const init: Operation<typeof inputs.init> = {
  name: 'init',
  summary: 'write the cluster file, after looking at its hosts',
  effect: 'changes',
  input: inputs.init,
  async run(input, world) {
    const path = world.clusterFile;
    if (existsSync(path) && !input.force)
      throw new UserError(
        'bad-input',
        `${path} exists already; it was not changed`,
        'write elsewhere with --cluster FILE, or over it with --force',
      );
    if (input.nodes.length === 0) {
      throw new UserError(
        'bad-input',
        'no nodes were given',
        'firstlight init spark-a=aurora@10.1.230.180 spark-b=192.168.200.13,jump=spark-a',
      );
    }
    const text = () =>
      stringify({
        cluster: input.name,
        ...(input.sshConfig === undefined ? {} : { sshConfig: input.sshConfig }),
        ...(input.user === undefined ? {} : { defaults: { user: input.user } }),
        nodes,
      });
    const nodes = input.nodes.map(readNode);
    // The file's own checks run on what would be written, before any host is asked.
    const cluster = parseClusterText(text(), path);
    if (input.probe) {
      const found = await probeNew(world, cluster);
      for (const [index, node] of nodes.entries()) {
        const fabric = found.get(cluster.nodes[index]?.name ?? '');
        if (fabric !== undefined && node['fabric'] === undefined) node['fabric'] = fabric;
      }
    }
    const whole = text();
    parseClusterText(whole, path);
    writeFileSync(path, whole, { mode: 0o644 });
    return { report: { kind: 'init', file: path, nodes: nodes.length }, exit: 0 };
  },
};

/** `spark-b=192.168.200.13,jump=spark-a` → one entry of the file. */
function readNode(text: string): Record<string, string | number> {
  const [head = '', ...more] = text.split(',');
  const at = head.indexOf('=');
  if (at <= 0)
    throw new UserError(
      'bad-input',
      `"${text}" is not NAME=DESTINATION`,
      'for example spark-a=aurora@10.1.230.180',
    );
  const node: Record<string, string | number> = { name: head.slice(0, at), ssh: head.slice(at + 1) };
  for (const part of more) {
    const [key = '', ...rest] = part.split('=');
    const known = NODE_KEYS.find((name) => name === key);
    if (known === undefined)
      throw new UserError(
        'bad-input',
        `"${key}" in "${text}" is not known`,
        `known are: ${NODE_KEYS.join(', ')}`,
      );
    node[known] = known === 'port' ? Number(rest.join('=')) : rest.join('=');
  }
  return node;
}
