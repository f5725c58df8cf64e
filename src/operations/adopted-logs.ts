import { endLog, splitLog } from '../diagnosis/stages.ts';
import { type RankRecord, valueIf } from '../domain/facts.ts';
import { readLog } from '../remote/log-file.ts';
import { look } from './look.ts';
import type { World } from './world.ts';

/**
 * Fetches what the followers on the nodes have of an adopted pair's logs and the journal has not. What cannot be read
 * now stays where it is.
 */
export async function catchUp(world: World, run: string): Promise<void> {
  const names = new Set(
    world.journal.read(run).flatMap((event) => (event.type === 'rank-started' ? [event.name] : [])),
  );
  const facts = await look(world, world.cluster.nodes, undefined);
  const ranks = facts.flatMap((seen) =>
    seen.reached
      ? (valueIf(seen.ranks) ?? [])
          .filter((record) => record.adopted === true && names.has(record.name))
          .map((record) => ({ node: seen.node, record }))
      : [],
  );
  await Promise.all(ranks.map(({ node, record }) => fetch(world, run, node, record)));
}

async function fetch(world: World, run: string, node: string, record: RankRecord): Promise<void> {
  const stamped = record.in !== 'process';
  const texts: string[] = [];
  let carry = '';
  const read = await readLog(world.hosts.of(node), `${record.folder}/log`, {
    fromByte: 0,
    follow: false,
    signal: world.signal,
    opened: () => undefined,
    bytes: (chunk) => {
      const split = splitLog(carry, chunk, stamped);
      carry = split.carry;
      texts.push(...split.lines);
    },
  });
  if (read.kind !== 'read') return;
  if (record.state === 'ended') texts.push(...endLog(carry, stamped));
  const have = world.journal.readLog(run, 1, record.rank).length;
  const at = world.clock.now();
  const fresh = texts.slice(have).map((text, index) => ({ line: have + index + 1, at, text }));
  if (fresh.length > 0) world.journal.appendLog(run, 1, record.rank, fresh);
}
