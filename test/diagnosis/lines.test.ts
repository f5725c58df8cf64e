import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { causes } from '../../src/knowledge/causes.ts';
import { SGLANG_FLAGS } from '../../src/knowledge/engines/sglang-flags.ts';
import { VLLM_FLAGS } from '../../src/knowledge/engines/vllm-flags.ts';
import { hasFlag } from '../../src/knowledge/signatures/engine-flags.ts';
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

  it('is known for every cause of kernels, images, flags, files, SSH, serving, power and false alarms', () => {
    const known = new Set(samples.map(({ cause }) => cause));
    const wanted = causes.filter(
      ({ family, slug }) => 'FGHIJKLM'.includes(family ?? '-') && slug !== 'no-fault',
    );
    expect(wanted.map(({ slug }) => slug).filter((slug) => !known.has(slug))).toEqual([]);
  });
});
