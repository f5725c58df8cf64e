import type { LogKind } from '../domain/evidence.ts';

/** What the name of a log says: whose it is and what kind. */
export type NamedLog = {
  readonly kind: LogKind;
  /** The rank, where the name says it. */
  readonly rank: number | undefined;
  /** The node's name that is left of `worker-dmesg` and the like; undefined for a rank's own log. */
  readonly of: string | undefined;
};

const KINDS: readonly (readonly [LogKind, RegExp])[] = [
  ['kernel', /dmesg|kernel|kern\b|journal|syslog|messages/],
  ['daemon', /dockerd|docker|containerd|daemon|podman|raylet|gcs|systemd|sshd/],
  ['launcher', /launch\w*|ssh|scp|rsync|script|control\w*|cli|deploy\w*|console|terminal|operator|laptop/],
  ['client', /client|curl|user|request\w*|openai|agent|app|probe|healthcheck/],
  ['other', /bench\w*|nccl-?tests?|ib_write_bw|iperf\w*|perftest|facts|nvidia-smi|telemetry/],
];

/** Reads a log's name: `head`, `worker2`, `rank1`, `client`, `dmesg-spark-b`; any other one is a node's. */
export function readLogName(name: string): NamedLog {
  const word = name.toLowerCase();
  const rank = /^(?:rank|node|r)[-_ ]?(\d+)$|^(\d+)$/.exec(word);
  if (rank !== null) return { kind: 'rank', rank: Number(rank[1] ?? rank[2]), of: undefined };
  if (/^(?:head|master|leader|main|primary|server|engine)$/.test(word))
    return { kind: 'rank', rank: 0, of: undefined };
  const worker = /^(?:worker|follower|slave|secondary|peer)[-_ ]?(\d*)$/.exec(word);
  if (worker !== null) return { kind: 'rank', rank: Number(worker[1] || 1), of: undefined };
  for (const [kind, form] of KINDS) {
    const found = new RegExp(`(?:^|[^a-z])(?:${form.source})(?:[^a-z]|$)`).exec(word);
    if (found === null) continue;
    const rest = `${name.slice(0, found.index)} ${name.slice(found.index + found[0].length)}`.trim();
    return { kind, rank: undefined, of: rest === '' ? undefined : rest.replace(/^[-_. ]+|[-_. ]+$/g, '') };
  }
  return { kind: 'rank', rank: undefined, of: undefined };
}

/** The rank that a log's own lines name, from its first lines; undefined where none tells. */
export function rankInLog(lines: readonly { readonly text: string }[]): number | undefined {
  for (const { text } of lines.slice(0, 2000)) {
    const told =
      /\bnode_rank['"]?[=:] ?(\d+)/.exec(text) ??
      /--node-rank[= ](\d+)/.exec(text) ??
      /\bworld_size=\d+ rank=(\d+)/.exec(text);
    if (told !== null) return Number(told[1]);
    if (/--headless\b|'headless': True|headless multiproc executor/.test(text)) return 1;
    if (/\bAPIServer pid=|Uvicorn running on|vLLM API server version/.test(text)) return 0;
  }
  return undefined;
}

/** Whether a log speaks of other nodes than its own. */
export function severalNodesIn(lines: readonly { readonly text: string }[]): boolean {
  return lines.some(({ text }) =>
    /\bnnodes['"]?[=: ] ?[2-9]|--nnodes[= ][2-9]|\bworld_size=[2-9]|clients joined|remote=\[|tensor_parallel_size=[2-9]|'tensor_parallel_size': [2-9]|\btp_size=[2-9]|--(?:tp|tp-size|tensor-parallel-size)[= ][2-9]|\bTP[1-9]\]|, ip=\d|connectFullMesh|from peer|peer \[|remote (?:process|worker)/.test(
      text,
    ),
  );
}
