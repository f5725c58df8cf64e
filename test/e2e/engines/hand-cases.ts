import type { EngineKind } from './engine.ts';
import type { EnginePair, Host } from './pair.ts';

/** A pair that somebody launched by hand, wrongly; `diagnose` reads the logs that lie on its hosts. */
export type HandCase = {
  readonly what: string;
  /** The hosts on which a rank is launched; the first is the head. */
  readonly hosts: readonly Host[];
  /** What the host's rank is given in place of the usual. */
  readonly args: (pair: EnginePair, host: Host) => Readonly<Record<string, string>>;
  readonly cause: string;
  /** `launcher`, `both`, a host … */
  readonly atFault: string;
  readonly quote: RegExp;
  readonly seconds: Readonly<Record<EngineKind, number>>;
};

const PATIENCE: Readonly<Record<EngineKind, number>> = { torch: 240, vllm: 280 };

export const HAND_CASES: readonly HandCase[] = [
  {
    what: 'a worker that was never started',
    hosts: ['a'],
    args: () => ({}),
    cause: 'rank-never-started',
    atFault: 'worker',
    quote: /1\/2 clients joined|Socket Timeout/,
    seconds: PATIENCE,
  },
  {
    what: "the head's command on both hosts",
    hosts: ['a', 'b'],
    args: () => ({ '--node-rank': '0' }),
    cause: 'duplicate-node-rank',
    atFault: 'launcher',
    quote: /rank=0 /,
    seconds: PATIENCE,
  },
  {
    what: 'ranks with different arguments',
    hosts: ['a', 'b'],
    args: (pair, host) => {
      if (host === 'a') return {};
      return pair.engine.kind === 'torch' ? { '--max-num-batched-tokens': '512' } : { '--dtype': 'float32' };
    },
    cause: 'ranks-with-different-args',
    atFault: 'launcher',
    quote: /op\.preamble\.length|different across workers/,
    seconds: PATIENCE,
  },
];

/** The words of one rank: the usual ones, with what the case gives it. */
export function wordsOf(own: Readonly<Record<string, string>>, host: Host): readonly string[] {
  const usual: Readonly<Record<string, string>> = {
    '--tensor-parallel-size': '2',
    '--nnodes': '2',
    '--node-rank': host === 'a' ? '0' : '1',
    '--master-addr': '192.168.200.12',
    '--master-port': '20100',
    '--max-model-len': '256',
    '--max-num-seqs': '4',
    '--distributed-timeout-seconds': '12',
  };
  const all = { ...usual, ...own };
  const words = Object.entries(all).flat();
  return ['/srv/model', ...words, ...(all['--node-rank'] === '0' ? ['--port', '30100'] : ['--headless'])];
}

/** What makes a rank offer its own fabric address, as a person would set it. */
export function envOf(host: Host): Record<string, string> {
  return {
    GLOO_SOCKET_IFNAME: host === 'a' ? 'enp1s0f0np0' : 'enp1s0f1np1',
    VLLM_HOST_IP: host === 'a' ? '192.168.200.12' : '192.168.200.13',
  };
}
