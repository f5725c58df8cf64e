import { type Container, type Fact, known, unknown } from '../../domain/facts.ts';
import { isObject, parseArray, textAt } from '../../domain/json.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { firstLine, headAndRest, linesOf, printable, wholeLines, wholeNumber } from './output.ts';

/**
 * What is inspected: never `.Config.Env`, which holds keys. Each part is JSON, so that no name can break a line. The id
 * comes first, as $2: podman 4.3 calls it `.ID` and knows no `.Id`, which is docker's name for it.
 */
const FORMAT =
  '[{{json .\'"$2"\'}},{{json .Name}},{{json .Config.Image}},{{json .State.Status}},{{json .State.Pid}},{{json .HostConfig.RestartPolicy}},{{json .HostConfig.AutoRemove}},{{json .Config.Labels}},{{json .NetworkSettings.Ports}}]';

/** All containers of docker and podman, running or not, as far as this user may see them. */
export const containersProbe: Probe = {
  name: 'containers',
  timeoutSeconds: 8,
  script: String.raw`
ask() {
  command -v "$1" >/dev/null 2>&1 || { echo "none $1"; return; }
  ids=$("$1" ps -a -q --no-trunc 2>&1) || { printf '%s\n' "$ids" | sed "s/^/refused $1 /"; return; }
  ids=$(printf '%s\n' "$ids" | grep -E '^[0-9a-f]{12,64}$' | head -n 500)
  echo "asked $1"
  [ -z "$ids" ] && return
  "$1" inspect --type container --format '${FORMAT}' $ids 2>/dev/null | sed "s/^/one $1 /"
}
ask docker Id
ask podman ID
echo end
`,
};

/** A container with what only attribution needs. */
export type SeenContainer = Container & {
  readonly pid: number;
  /** Ports of the host that lead into it. */
  readonly published: readonly number[];
};

/**
 * "one docker [id, name, …]" per line → containers, docker's and podman's as one list. Unknown when a runtime is
 * there and does not answer; a host without any has none.
 */
export function parseContainers(output: ProbeOutput | undefined): Fact<readonly SeenContainer[]> {
  const lines = linesOf(wholeLines(output));
  const refused = lines.find((line) => line.startsWith('refused '));
  if (refused !== undefined) {
    const [runtime, said] = headAndRest(refused.slice('refused '.length));
    return unknown(
      refusal(runtime, lines.filter((line) => line.startsWith(`refused ${runtime} `)).join('\n'), said),
    );
  }
  if (output === undefined || output.timedOut) return unknown('the container runtime gave no answer in time');
  if (lines.length === 0) return unknown(firstLine(output.stderr) || 'nothing was read about containers');
  if (!lines.includes('end')) return unknown('what the container runtime said is cut off');
  const byId = new Map<string, SeenContainer>();
  for (const line of lines) {
    const match = /^one (docker|podman) (\[.*\])$/.exec(line);
    const runtime = match?.[1] === 'podman' ? 'podman' : 'docker';
    const seen = match?.[2] === undefined ? undefined : toContainer(runtime, match[2]);
    // Where `docker` is podman's stand-in both list the same; podman's word comes last and stays.
    if (seen !== undefined) byId.set(seen.id, seen);
  }
  return known([...byId.values()]);
}

function toContainer(runtime: 'docker' | 'podman', json: string): SeenContainer | undefined {
  const parts = parseArray(json);
  const [id, name, image, state, pid, policy, autoRemove, labels, ports] = parts ?? [];
  if (typeof id !== 'string' || !/^[0-9a-f]{12,64}$/.test(id)) return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? printable(value) : '');
  return {
    runtime,
    id,
    name: text(name).replace(/^\//, '') || id.slice(0, 12),
    image: text(image),
    state: text(state),
    restartPolicy: printable(policyOf(policy)) || 'no',
    autoRemove: autoRemove === true,
    labels: isObject(labels)
      ? Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, String(value)]))
      : {},
    pid: typeof pid === 'number' ? pid : 0,
    published: publishedPorts(ports),
  };
}

/** {"Name": "on-failure", "MaximumRetryCount": 5} → "on-failure:5", as `docker update --restart` takes it. */
function policyOf(policy: unknown): string {
  const name = isObject(policy) ? textAt(policy, 'Name') : '';
  const most = isObject(policy) ? policy['MaximumRetryCount'] : 0;
  return name === 'on-failure' && typeof most === 'number' && most > 0 ? `${name}:${most}` : (name ?? '');
}

/** {"8000/tcp": [{"HostIp": "", "HostPort": "8000"}]} → [8000] */
function publishedPorts(ports: unknown): readonly number[] {
  if (!isObject(ports)) return [];
  const found = Object.values(ports).flatMap((bindings) =>
    Array.isArray(bindings)
      ? bindings.flatMap((each: unknown) =>
          isObject(each) ? [wholeNumber(textAt(each, 'HostPort')) ?? 0] : [],
        )
      : [],
  );
  return [...new Set(found.filter((port) => port > 0))].sort((a, b) => a - b);
}

const OUTSIDE_GROUP = 'refuses this user: it is not in the group';

/** Whether something is unknown because the login is not in the group that may ask the runtime. */
export function isOutsideGroup(fact: Fact<unknown>): boolean {
  return !fact.known && fact.why.includes(OUTSIDE_GROUP);
}

/** docker's own words for "not your group" and "no daemon", in one sentence. */
export function refusal(runtime: string, text: string, said: string): string {
  if (/permission denied/i.test(text)) {
    return `${runtime} ${OUTSIDE_GROUP} ${runtime === 'docker' ? 'docker' : 'of the runtime'}`;
  }
  if (/Cannot connect to the Docker daemon|daemon running|connection refused/i.test(text)) {
    return `the daemon of ${runtime} does not run`;
  }
  return `${runtime} does not answer: ${firstLine(said) || 'no reason given'}`;
}

/** Only what other parts of the program may see. */
export function plainContainer(seen: SeenContainer): Container {
  const { pid: _pid, published: _published, ...container } = seen;
  return container;
}
