import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Cluster, clusterSchema, type Node } from '../domain/cluster.ts';
import { explain } from './explain.ts';
import { otherFile } from './other-file.ts';
import { readText } from './read-text.ts';
import { lookAtKeys, lookAtSshConfig } from './ssh-files.ts';
import { type Problem, parseYaml, refusal, type YamlFile } from './yaml-file.ts';

const CODE = 'bad-cluster-file';
const HINT =
  'Mend the file and ask again; docs/files.md shows every key, `firstlight init` writes a fresh one.';

/**
 * The cluster file: defaults folded into the nodes, paths absolute, key files and the ssh_config looked at. Throws
 * a UserError `bad-cluster-file` or `unreadable-key` that names file, line and column of each problem.
 */
export function readCluster(path: string): Cluster {
  const text = readText(path, {
    code: CODE,
    what: 'cluster file',
    absent: 'Write one with `firstlight init`, or name another with --cluster FILE.',
  });
  const { cluster, yaml } = parse(text, path);
  if (cluster.sshConfig !== undefined) lookAtSshConfig(cluster.sshConfig, yaml);
  lookAtKeys(cluster, yaml);
  return cluster;
}

/** The same from text; `file` need not exist, and no file that it names is looked at. */
export function parseClusterText(text: string, file: string): Cluster {
  return parse(text, file).cluster;
}

type Written = ReturnType<typeof clusterSchema.parse>;

function parse(text: string, file: string): { readonly cluster: Cluster; readonly yaml: YamlFile } {
  const yaml = parseYaml(text, file, CODE);
  const result = clusterSchema.safeParse(yaml.value);
  if (!result.success)
    throw (
      otherFile('cluster', yaml.value, file, CODE) ??
      refusal(CODE, file, explain('cluster', yaml, result.error.issues), HINT)
    );
  const folder = dirname(resolve(file));
  const nodes = result.data.nodes.map((node) => withDefaults(node, result.data.defaults, folder));
  const problems = [...options(result.data, yaml), ...sameNames(nodes, yaml), ...sameHosts(nodes, yaml)];
  // Names must be unambiguous before jumps can be followed by them.
  if (problems.length === 0) problems.push(...jumpLoops(nodes, yaml));
  if (problems.length > 0) throw refusal(CODE, file, problems, HINT);
  const { cluster: name, sshConfig } = result.data;
  return {
    yaml,
    cluster: {
      name,
      file: resolve(file),
      ...(sshConfig === undefined ? {} : { sshConfig: absolute(sshConfig, folder) }),
      nodes,
    },
  };
}

function withDefaults(node: Written['nodes'][number], defaults: Written['defaults'], folder: string): Node {
  // The head is often the default jump, and needs none itself.
  const jump = node.jump ?? (defaults?.jump === node.name ? undefined : defaults?.jump);
  const user = node.user ?? (destinationParts(node.ssh).user === undefined ? defaults?.user : undefined);
  const port = node.port ?? (destinationParts(node.ssh).port === undefined ? defaults?.port : undefined);
  const key = node.key ?? defaults?.key;
  const fabric = node.fabric ?? defaults?.fabric;
  return {
    name: node.name,
    ssh: node.ssh,
    ...(user === undefined ? {} : { user }),
    ...(port === undefined ? {} : { port }),
    ...(key === undefined ? {} : { key: absolute(key, folder) }),
    ...(jump === undefined ? {} : { jump }),
    ...(fabric === undefined ? {} : { fabric }),
  };
}

/** `user@host`, `ssh://user@host:port` → its parts. */
function destinationParts(ssh: string): {
  readonly user?: string;
  readonly host: string;
  readonly port?: number;
} {
  const url = /^ssh:\/\/(?:([^@]*)@)?(\[[^\]]*\]|[^:/]*)(?::(\d+))?\/?$/.exec(ssh);
  const plain = /^(?:(.*)@)?([^@]*)$/.exec(ssh);
  const [, user, host = '', port] = url ?? plain ?? [];
  return {
    host: host.toLowerCase(),
    ...(user === undefined ? {} : { user }),
    ...(port === undefined ? {} : { port: Number(port) }),
  };
}

/** Host names that ssh would read as options, behind `user@` or in a list of jumps too. */
function options(written: Written, yaml: YamlFile): readonly Problem[] {
  const looksLike = (text: string) => {
    const { user, host } = destinationParts(text);
    return host.startsWith('-') || user?.startsWith('-') === true || host === '';
  };
  const tell = (path: (string | number)[], text: string | undefined): Problem[] => {
    if (text === undefined || !text.split(',').some(looksLike)) return [];
    return [yaml.problem(path, `${JSON.stringify(text)} is no host name; ssh may read it as an option`)];
  };
  return [
    ...tell(['defaults', 'jump'], written.defaults?.jump),
    ...written.nodes.flatMap((node, index) => [
      ...tell(['nodes', index, 'ssh'], node.ssh),
      ...tell(['nodes', index, 'jump'], node.jump),
    ]),
  ];
}

function sameNames(nodes: readonly Node[], yaml: YamlFile): readonly Problem[] {
  return nodes.flatMap((node, index) => {
    const first = nodes.findIndex((other) => other.name === node.name);
    if (first === index) return [];
    return [yaml.problem(['nodes', index, 'name'], `the name "${node.name}" is taken by nodes[${first}]`)];
  });
}

function sameHosts(nodes: readonly Node[], yaml: YamlFile): readonly Problem[] {
  const identity = (node: Node) => {
    const { host, port } = destinationParts(node.ssh);
    return JSON.stringify([host, node.port ?? port ?? 22, node.jump ?? '']);
  };
  return nodes.flatMap((node, index) => {
    const first = nodes.findIndex((other) => identity(other) === identity(node));
    const twin = nodes[first];
    if (twin !== undefined && first !== index) {
      const words = `${node.name} is the same host as ${twin.name}: same ssh, port and jump`;
      return [yaml.problem(['nodes', index, 'ssh'], words)];
    }
    const sharing = nodes.find((other, at) => at < index && other.fabric === node.fabric);
    if (node.fabric === undefined || sharing === undefined) return [];
    const words = `${node.name} has the fabric address of ${sharing.name} (${node.fabric})`;
    return [yaml.problem(['nodes', index, 'fabric'], words)];
  });
}

function jumpLoops(nodes: readonly Node[], yaml: YamlFile): readonly Problem[] {
  const jumps = new Map(nodes.map((node) => [node.name, node.jump?.split(',') ?? []]));
  const told = new Set<string>();
  const problems: Problem[] = [];
  const follow = (name: string, behind: readonly string[]): void => {
    for (const next of jumps.get(name) ?? []) {
      const way = [...behind, name];
      const from = way.indexOf(next);
      if (from === -1) {
        if (jumps.has(next)) follow(next, way);
        continue;
      }
      const loop = way.slice(from);
      const sorted = [...loop].sort().join(' ');
      if (told.has(sorted)) continue;
      told.add(sorted);
      const index = nodes.findIndex((node) => node.name === name);
      const words = `the jumps go in a circle: ${[...loop, next].join(' -> ')}`;
      problems.push(yaml.problem(['nodes', index, 'jump'], words));
    }
  };
  for (const node of nodes) if (!inToldLoop(node.name, told)) follow(node.name, []);
  return problems;
}

function inToldLoop(name: string, told: ReadonlySet<string>): boolean {
  return [...told].some((loop) => loop.split(' ').includes(name));
}

function absolute(path: string, folder: string): string {
  if (path === '~') return homedir();
  if (path.startsWith('~/')) return join(homedir(), path.slice(2));
  return resolve(folder, path);
}
