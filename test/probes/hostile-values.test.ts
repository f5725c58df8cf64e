import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { known } from '../../src/domain/facts.ts';
import type { LookRequest } from '../../src/domain/probe.ts';
import { assign } from '../../src/knowledge/probes/assign.ts';
import { assembleFacts, probeHeader, probesFor } from '../../src/knowledge/probes/index.ts';
import { maskSecrets } from '../../src/knowledge/probes/mask-secrets.ts';
import { outputOf } from './output-of.ts';

describe('values that the scripts get', () => {
  const values = [
    '',
    '-n',
    "it's",
    "'; touch /tmp/owned; '",
    '$(reboot) `reboot` $HOME $1',
    'back\\slash\\n and \\\\ two',
    'line\nbreak\n\n',
    '"double" *glob? [a-z] ~ !history #no',
    '\u001b[31m é 漢字 \u202e',
    'x'.repeat(100_000),
  ];
  for (const value of values) {
    it(`arrive as they are: ${JSON.stringify(value.slice(0, 40))}`, () => {
      const input = `${assign('FL_VALUE', value)}printf '%s.' "$FL_VALUE"\nsh -c 'printf %s. "$FL_VALUE"'\n`;
      const ran = spawnSync('sh', ['-s'], { input, encoding: 'utf8' });
      expect(ran.stdout).toBe(`${value}.${value}.`);
    });
  }

  it('are refused as our bug where no shell could hold them', () => {
    expect(() => assign('FL_VALUE', 'a\0b')).toThrow('NUL');
    expect(() => assign('x; reboot', 'a')).toThrow('no name');
  });

  it('are not asked for where they could be taken for something else', () => {
    const request: LookRequest = {
      modelPath: undefined,
      images: [
        { engine: 'sglang', image: '--help' },
        { engine: 'vllm', image: 'a b' },
      ],
      programs: [{ engine: 'vllm', program: 'vllm\nreboot' }],
      peers: [{ node: 'a', address: '$(reboot)' }],
    };
    expect(probeHeader(request)).not.toMatch(/help|a b|reboot/);
    expect(probesFor(request).map(({ name }) => name)).not.toContain('engines');
  });
});

describe('secrets in a command line', () => {
  const cases: readonly (readonly [readonly string[], string])[] = [
    [['vllm', 'serve', '--api-key', 'abc', '--port', '8000'], 'vllm serve --api-key *** --port 8000'],
    [['vllm', '--api-key=abc def'], 'vllm --api-key=***'],
    [['env', 'HF_TOKEN=abc', 'OPENAI_API_KEY=k', 'A=b'], 'env HF_TOKEN=*** OPENAI_API_KEY=*** A=b'],
    [['curl', '-H', 'Authorization: Bearer abcdef123456'], 'curl -H Authorization: Bearer ***'],
    [['huggingface-cli', 'login', 'hf_abcdefghijklmnop'], 'huggingface-cli login hf***'],
    [
      ['sh', '-c', 'vllm serve --api-key abc --hf-token="x y" m'],
      'sh -c vllm serve --api-key *** --hf-token=*** m',
    ],
    [['docker', 'run', '-e', 'WANDB_API_KEY=1', 'i'], 'docker run -e WANDB_API_KEY=*** i'],
    [['x', 'postgres://me:pw@host/db'], 'x postgres://me:***@host/db'],
    [['vllm', '--password', 'a', '--secret-key', 'b'], 'vllm --password *** --secret-key ***'],
    [['jupyter', "--ServerApp.token='abc'"], 'jupyter --ServerApp.token=***'],
    [['vllm', '--api-key', 'k1', 'k2', '--port', '1'], 'vllm --api-key *** *** --port 1'],
    [['x', '--config', '{"api_key": "a b", "n": 1}'], 'x --config {"api_key": "***", "n": 1}'],
    [['curl', '-u', 'me:pw', 'http://h'], 'curl -u me:*** http://h'],
    [['redis-server', '--requirepass', 'pw'], 'redis-server --requirepass ***'],
    [['x', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln'], 'x eyJ***'],
    // Names that only look alike.
    [['docker', 'run', '--user', '1000:1000', 'i'], 'docker run --user 1000:1000 i'],
    [
      ['vllm', '--tokenizer', 't', '--max-num-batched-tokens', '8192', '--tokenizer-mode=auto'],
      'vllm --tokenizer t --max-num-batched-tokens 8192 --tokenizer-mode=auto',
    ],
    [['python', 'train.py', '--author', 'me', 'monkey=1'], 'python train.py --author me monkey=1'],
  ];
  for (const [args, shown] of cases) {
    it(`${shown}`, () => expect(maskSecrets(args).join(' ')).toBe(shown));
  }
});

describe('outputs that nobody promised', () => {
  const request: LookRequest = {
    modelPath: '/m',
    images: [{ engine: 'sglang', image: 'i' }],
    programs: [{ engine: 'vllm', program: 'vllm' }],
    peers: [{ node: 'a', address: '10.0.0.1' }],
  };
  const assemble = (stdout: string, timedOut = false) =>
    assembleFacts({
      node: 'n',
      at: '2026-11-29T10:00:00Z',
      milliseconds: 1,
      outputs: new Map(probesFor(request).map(({ name }) => [name, outputOf(stdout, { timedOut })])),
      request,
      clockOffsetSeconds: known(0),
    });
  /** Every fact with its reason, where it is unknown. */
  const reasons = (facts: ReturnType<typeof assemble>) =>
    Object.entries(facts).flatMap(([key, value]) =>
      typeof value === 'object' && value !== null && 'known' in value && !value.known
        ? [[key, value.why]]
        : [],
    );

  it('is unknown with a reason for each fact when no probe came back', () => {
    const facts = assembleFacts({
      node: 'n',
      at: '2026-11-29T10:00:00Z',
      milliseconds: 1,
      outputs: new Map(),
      request,
      clockOffsetSeconds: known(0),
    });
    const all = reasons(facts);
    expect(all.map(([key]) => key)).toEqual([
      'host',
      'memory',
      'gpus',
      'holders',
      'containers',
      'ports',
      'interfaces',
      'rdma',
      'disks',
      'model',
      'engines',
      'sudo',
      'ranks',
      'owed',
      'lock',
    ]);
    for (const [, why] of all) expect(why).toMatch(/\w{3}/);
  });

  it('is unknown where everything timed out', () => {
    expect(
      reasons(assemble('', true))
        .map(([, why]) => why)
        .filter((why) => !/time|too long|could not/.test(String(why))),
    ).toEqual([]);
  });

  for (const [what, unit] of [
    ['blanks', ' '],
    ['one long line', 'x'],
    ['lines', 'P 1 1 1 1 0 1 1 x\n'],
    ['sockets', 'L ss LISTEN 0 1 users:(("a",pid=1,fd=1\n'],
    ['brackets', 'gpu [[[[ ,,,, \n'],
    ['JSON', '{"a": [1, 2, {"b": null}]}\n'],
    ['control characters', '\u0000\u0001\u001b[2J\r\n'],
  ] as const) {
    it(`reads 14 MB of ${what} in no time, and breaks nothing`, () => {
      // A look brings 16 MiB back at most: one MB for each probe.
      const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
      // The processor's time, not the clock's: a busy machine makes nothing slower to read.
      const before = process.cpuUsage();
      const facts = assemble(text);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1e6).toBeLessThan(5);
      expect(facts.reached).toBe(true);
    });
  }
});
