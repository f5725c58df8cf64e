import { pick, randomOf } from './random.ts';
import type { Story, StoryHolder, StoryHost } from './story.ts';

/**
 * The same story under other node names, users, addresses, ports, sizes and holder names; the same seed gives the
 * same story. What makes the story what it is (who stands in the way, what goes wrong) stays.
 */
export function vary(story: Story, seed: number): Story {
  const random = randomOf(`${story.name}:${seed}`);
  const roots = ['gx10', 'dgx', 'nova', 'lumen', 'node', 'pixel'] as const;
  const root = pick(random, roots);
  const digits = 10 + Math.floor(random() * 80);
  const nodes = new Map(story.hosts.map(({ name }, at) => [name, `${root}-${digits + at}`]));
  const user = pick(random, ['aurora', 'mira', 'jonas', 'lab', 'kepler', 'nils']);
  const thirds = { mgmt: 1 + Math.floor(random() * 120), fabric: 1 + Math.floor(random() * 200) };
  const last = 10 + Math.floor(random() * 200);
  const scale = 0.94 + random() * 0.1;
  const serve = 30000 + Math.floor(random() * 900);
  const rendezvous = 20000 + Math.floor(random() * 900);
  const holderPort = 1 + Math.floor(random() * 60);
  const suffix = pick(random, ['', '-dev', '-old', '-2', '-team'] as const);
  const swapCages = random() < 0.5;

  const names = new Map(
    story.hosts.flatMap(({ holders }) =>
      holders.map((holder) => [holder.name, renamed(holder, suffix, random)] as const),
    ),
  );
  const name = (old: string): string => names.get(old) ?? old;
  const node = (old: string): string => nodes.get(old) ?? old;
  const home = (text: string): string =>
    text.replaceAll('/home/aurora', `/home/${user}`).replaceAll(/^aurora$/g, user);

  const holder = (old: StoryHolder): StoryHolder => ({
    ...old,
    name: name(old.name),
    user: home(old.user),
    cwd: home(old.cwd),
    argv: old.argv.map((word, at) =>
      at === 0 && old.kind === 'process'
        ? name(old.name)
        : old.argv[at - 1] === '--port'
          ? String(Number(word) + holderPort)
          : home(word),
    ),
    listens: old.listens.map(({ address, port }) => ({ address, port: port + holderPort })),
    gpuGiB: old.leavesGiB === undefined ? round(old.gpuGiB * scale) : old.gpuGiB,
    residentGiB: round(old.residentGiB * scale),
  });
  const host = (old: StoryHost, at: number): StoryHost => {
    const holders = old.holders.map(holder);
    const systemGiB = round(old.systemGiB * scale);
    const held = holders
      .filter(({ absent }) => absent !== true)
      .reduce((sum, { gpuGiB, residentGiB }) => sum + gpuGiB + residentGiB, 0);
    return {
      ...old,
      name: node(old.name),
      user,
      management: { ...old.management, address: `10.${20 + at}.${thirds.mgmt}.${last + at}` },
      fabric: {
        ...old.fabric,
        address: `192.168.${thirds.fabric}.${last + at}`,
        second: `192.168.${thirds.fabric + 1}.${last + at}`,
        cage: swapCages ? (old.fabric.cage === 0 ? 1 : 0) : old.fabric.cage,
      },
      systemGiB,
      // What is left is never quite full of cache.
      cacheGiB: round(Math.min(old.cacheGiB, old.totalGiB - systemGiB - held - 2.8)),
      holders,
    };
  };

  return {
    ...story,
    cluster: `${root}s`,
    hosts: story.hosts.map(host),
    firewall: story.firewall.map((rule) => ({ ...rule, from: node(rule.from), to: node(rule.to) })),
    recipe: mapStrings(
      {
        ...story.recipe,
        serve: { ...object(story.recipe['serve']), port: serve },
        rendezvousPort: rendezvous,
      },
      home,
    ),
    timeline: story.timeline.map((turn) => ({
      ...turn,
      node: node(turn.node),
      ...(turn.seenOn === undefined ? {} : { seenOn: node(turn.seenOn) }),
      ...('startHolder' in turn ? { startHolder: name(turn.startHolder) } : {}),
      ...('endHolder' in turn ? { endHolder: name(turn.endHolder) } : {}),
    })),
    consents: story.consents.map((consent) => ({
      node: node(consent.node),
      holder: name(consent.holder),
    })),
    passwords: Object.fromEntries(Object.entries(story.passwords).map(([key, value]) => [node(key), value])),
    expect: {
      ...story.expect,
      events: story.expect.events.map((event) =>
        event['node'] === undefined ? event : { ...event, node: node(event['node']) },
      ),
    },
  };
}

/** Units keep their ending; a bare process is called by its program, which /proc cuts at 15 characters. */
function renamed({ kind, name }: StoryHolder, suffix: string, random: () => number): string {
  switch (kind) {
    case 'container':
      return `${name}${suffix}`;
    case 'unit':
      return name.replace(/\.service$/, `${suffix}.service`);
    case 'process':
      return pick(
        random,
        name === 'finetune'
          ? ['finetune', 'train-lora', 'sft-run']
          : ['llama-server', 'koboldcpp', 'tabby-server'],
      );
  }
}

function round(gib: number): number {
  return Math.round(gib * 10) / 10;
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function mapStrings(
  value: Readonly<Record<string, unknown>>,
  change: (text: string) => string,
): Readonly<Record<string, unknown>> {
  const each = (inner: unknown): unknown => {
    if (typeof inner === 'string') return change(inner);
    if (Array.isArray(inner)) return inner.map(each);
    if (typeof inner === 'object' && inner !== null) return mapStrings(object(inner), change);
    return inner;
  };
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, each(inner)]));
}
