import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { causes } from '../../src/knowledge/causes.ts';
import { SGLANG_FLAGS } from '../../src/knowledge/engines/sglang-flags.ts';
import { VLLM_FLAGS } from '../../src/knowledge/engines/vllm-flags.ts';
import { hasFlag } from '../../src/knowledge/signatures/command/engine-flags.ts';
import { answerTo } from './corpus.ts';

const FOLDER = new URL('../samples/lines/', import.meta.url);

const schema = z.array(
  z.strictObject({ cause: z.string(), at: z.string(), logs: z.record(z.string(), z.string()) }),
);

/** One way to fail in the words of the software itself, with its answer. */
type Sample = z.output<typeof schema>[number] & { readonly name: string };

const samples: readonly Sample[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    schema
      .parse(parse(readFileSync(new URL(file, FOLDER), 'utf8')))
      .map((one, index) => ({ ...one, name: `${file} ${index + 1}: ${one.cause}` })),
  );

/** What engines, Python and docker say at every start. */
const NOISE = [
  '/usr/local/lib/python3.12/dist-packages/transformers/utils/hub.py:111: FutureWarning: Using `TRANSFORMERS_CACHE` is deprecated and will be removed in v5 of Transformers. Use `HF_HOME` instead.',
  '`torch_dtype` is deprecated! Use `dtype` instead!',
  "[2026-08-01 10:00:00] Ignore import error when loading sglang.srt.models.midashenglm: No module named 'torchaudio'",
  'WARNING: Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.',
  'Pseudo-terminal will not be allocated because stdin is not a terminal.',
  '** WARNING: connection is not using a post-quantum key exchange algorithm.',
  'bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)',
];

/** What a rank says when another one is gone, and what the server says when its engine is. */
const PEER_GONE = `[W812 10:02:13.114 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host 192.168.100.1:25000 - retrying (try=2, timeout=600000ms, delay=1820ms): Connection refused
[rank1]:[W812 10:05:13.114 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=80): Connection reset by peer
[rank1]:[E812 10:12:13.114 ProcessGroupNCCL.cpp:690] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, remote process exited or there was a network error, NCCL version 2.28.9
`;
const MAIN_ENDS = `(EngineCore pid=1) ERROR 08-12 10:12:14 [core.py:1349] EngineCore failed to start.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
`;

/** Whether ranks run when it happens: not what a launcher, a copy or a client says. */
function ofRanks(cause: string): boolean {
  const family = causes.find(({ slug }) => slug === cause)?.family ?? '-';
  return 'FGHI'.includes(family) && cause !== 'destination-directory-missing';
}

describe('the catalogues of flags', () => {
  it('hold whole names, each once, and the ones that everybody uses', () => {
    for (const list of [SGLANG_FLAGS, VLLM_FLAGS]) {
      const words = list.trim().split(/\s+/);
      expect(new Set(words).size).toBe(words.length);
      expect(words.filter((word) => !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(word))).toEqual([]);
    }
    for (const flag of [
      '--enable-auto-tool-choice',
      '--max-model-len',
      '--headless',
      '--no-enable-prefix-caching',
    ])
      expect({ flag, vllm: hasFlag('vllm', flag), sglang: hasFlag('sglang', flag) }).toEqual({
        flag,
        vllm: true,
        sglang: false,
      });
    for (const flag of ['--mem-fraction-static', '--dist-init-addr', '--fp4-gemm-backend'])
      expect({ flag, vllm: hasFlag('vllm', flag), sglang: hasFlag('sglang', flag) }).toEqual({
        flag,
        vllm: false,
        sglang: true,
      });
  });
});

describe('a failure in the words of the software', () => {
  it.each(samples.map((one) => [one.name, one] as const))('%s', (_name, one) => {
    const said = answerTo(one.logs);
    expect({ cause: said.cause, at: said.atFault }).toEqual({ cause: one.cause, at: one.at });
    const lines = new Set(Object.values(one.logs).flatMap((log) => log.split('\n')));
    for (const { text } of said.finding?.quotes ?? []) expect(lines).toContain(text);
    expect(said.finding?.quotes.length ?? 0).toBeGreaterThan(0);
    expect(said.finding?.advice.length ?? 0).toBeGreaterThan(0);
  });

  it.each(samples.map((one) => [one.name, one] as const))('%s, among noise', (_name, one) => {
    const noisy = Object.fromEntries(
      Object.entries(one.logs).map(([name, log]) => [
        name,
        [...NOISE, log.trimEnd(), ...NOISE, ''].join('\r\n'),
      ]),
    );
    const said = answerTo(noisy);
    expect({ cause: said.cause, at: said.atFault }).toEqual({ cause: one.cause, at: one.at });
    expect(
      (said.finding?.quotes ?? []).map(({ text }) => text).filter((text) => NOISE.includes(text)),
    ).toEqual([]);
  });

  it.each(
    samples
      .filter(({ at, cause }) => (at === 'head' || at === 'worker') && ofRanks(cause))
      .map((one) => [one.name, one] as const),
  )('%s, among what the other rank says of it', (_name, one) => {
    const { head = '', worker = '' } = one.logs;
    const logs =
      one.at === 'head'
        ? { ...one.logs, head: head + MAIN_ENDS, worker: worker + PEER_GONE }
        : { ...one.logs, head: head + PEER_GONE + MAIN_ENDS, worker };
    const said = answerTo(logs);
    expect({ cause: said.cause, at: said.atFault }).toEqual({ cause: one.cause, at: one.at });
  });

  it('is known for every cause of kernels, images, flags, files, SSH, serving, power and false alarms', () => {
    const known = new Set(samples.map(({ cause }) => cause));
    const wanted = causes.filter(
      ({ family, slug }) => 'FGHIJKLM'.includes(family ?? '-') && slug !== 'no-fault',
    );
    expect(wanted.map(({ slug }) => slug).filter((slug) => !known.has(slug))).toEqual([]);
  });
});
