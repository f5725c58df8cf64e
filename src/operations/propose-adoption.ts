import { type Holder, type NodeFacts, valueIf } from '../domain/facts.ts';
import type { AdoptReport } from '../domain/report.ts';
import { rankNameOf } from '../planning/our-ranks.ts';

/** What looks like ranks of one job that somebody started by hand, and the command that adopts them. Pure. */
export function proposeAdoption(facts: readonly NodeFacts[]): Omit<AdoptReport, 'kind'> {
  const found = facts
    .flatMap((seen) =>
      seen.reached ? (valueIf(seen.holders) ?? []).flatMap((holder) => candidate(seen.node, holder)) : [],
    )
    .toSorted((a, b) => a.rank - b.rank);
  const engine = found[0]?.engine;
  const ranks = found.filter(
    (one, index) => one.engine === engine && found.findIndex(({ rank }) => rank === one.rank) === index,
  );
  const port = ranks.find(({ rank }) => rank === 0)?.port;
  const adopts =
    engine === undefined
      ? undefined
      : {
          rank: ranks.map(({ rank, node, target }) => `${rank}=${node}:${target}`),
          engine,
          ...(port === undefined ? {} : { port: Number(port) }),
        };
  return {
    ranks: ranks.map(({ rank, node, target, text }) => ({ rank, node, target, text })),
    adopts,
    command: adopts === undefined ? undefined : lineOf(adopts),
  };
}

function lineOf({ rank, engine, port }: NonNullable<AdoptReport['adopts']>): string {
  const ranks = rank.map((one) => `--rank ${one}`).join(' ');
  return `firstlight adopt ${ranks} --engine ${engine}${port === undefined ? '' : ` --port ${port}`}`;
}

type Candidate = {
  readonly rank: number;
  readonly node: string;
  readonly target: string;
  readonly text: string;
  readonly engine: 'sglang' | 'vllm';
  readonly port: string | undefined;
};

function candidate(node: string, holder: Holder): readonly Candidate[] {
  if (rankNameOf(holder) !== undefined) return [];
  const { command, owner, pid, name } = holder;
  const engine = /\bsglang\b/.test(command) ? 'sglang' : /\bvllm\b/.test(command) ? 'vllm' : undefined;
  const rank = /--node[-_]rank[ =](\d+)/.exec(command)?.[1];
  if (engine === undefined || rank === undefined || !/--nnodes[ =]\d+/.test(command)) return [];
  return [
    {
      rank: Number(rank),
      node,
      target: owner.kind === 'container' ? name : String(pid),
      text: command,
      engine,
      port: /--port[ =](\d+)/.exec(command)?.[1],
    },
  ];
}
