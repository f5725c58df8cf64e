import { expect, test } from 'vitest';
import type { EngineName, Recipe } from '../../src/domain/recipe.ts';
import type { RankCommand } from '../../src/knowledge/engines/engine.ts';
import { engines } from '../../src/knowledge/engines/index.ts';
import { MODEL_PATH, spark, sparkRecipe } from '../pretend/facts.ts';

function rank(engine: EngineName, number: number, recipe: Recipe, memoryFraction?: number): RankCommand {
  return engines[engine].rank({
    recipe,
    rank: number,
    addresses: ['192.168.200.12', '192.168.200.13'],
    interfaceName: number === 0 ? 'enp1s0f0np0' : 'enp1s0f1np1',
    rdmaDevices: number === 0 ? ['rocep1s0f0'] : ['rocep1s0f1', 'roceP2p1s0f1'],
    memoryFraction,
    facts: spark(number === 0 ? 'a' : 'b'),
  });
}

test('SGLang’s ranks differ in their number and in their node’s own addresses alone', () => {
  const recipe = sparkRecipe({ args: { sglang: ['--trust-remote-code', '--page-size', '64'] } });
  const head = rank('sglang', 0, recipe, 0.8);
  const worker = rank('sglang', 1, recipe, 0.8);
  expect(head.argv.join(' ')).toBe(
    `sglang serve --model-path ${MODEL_PATH} --tp-size 2 --nnodes 2 --node-rank 0 --dist-init-addr 192.168.200.12:20000 --host 127.0.0.1 --port 30000 --served-model-name qwen3.5-122b --enable-metrics --mem-fraction-static 0.8 --context-length 131072 --max-running-requests 16 --reasoning-parser qwen3 --tool-call-parser qwen3_coder --trust-remote-code --page-size 64`,
  );
  expect(worker.argv).toEqual(
    head.argv.map((word, at) => (head.argv[at - 1] === '--node-rank' ? '1' : word)),
  );
  expect(worker.env).toEqual({
    SGLANG_HOST_IP: '192.168.200.13',
    GLOO_SOCKET_IFNAME: 'enp1s0f1np1',
    NCCL_SOCKET_IFNAME: 'enp1s0f1np1',
    TP_SOCKET_IFNAME: 'enp1s0f1np1',
    NCCL_IB_HCA: 'rocep1s0f1,roceP2p1s0f1',
    NCCL_DEBUG: 'INFO',
    SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK: '0',
  });
  expect(worker.health).toEqual({ address: '127.0.0.1', port: 30000 });
});

test('a vLLM worker is headless and opens no port', () => {
  const recipe = sparkRecipe();
  expect(rank('vllm', 1, recipe, 0.78).argv.join(' ')).toBe(
    `vllm serve ${MODEL_PATH} --tensor-parallel-size 2 --nnodes 2 --node-rank 1 --master-addr 192.168.200.12 --master-port 20000 --headless --served-model-name qwen3.5-122b --gpu-memory-utilization 0.78 --max-model-len 131072 --max-num-seqs 16 --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser qwen3_coder`,
  );
  expect(rank('vllm', 1, recipe).health).toBeUndefined();
  expect(rank('vllm', 1, recipe).env['VLLM_HOST_IP']).toBe('192.168.200.13');
  expect(rank('vllm', 0, recipe).argv).toContain('--port');
  expect(rank('vllm', 0, recipe).argv).not.toContain('--headless');
});

test('over Ray every node runs its own Ray, and the head the one vLLM besides', () => {
  const recipe = sparkRecipe({
    args: { vllm: ['--enforce-eager'] },
    serve: { apiKey: { env: 'KEY' } },
  });
  const head = rank('vllm-ray', 0, recipe, 0.78);
  const worker = rank('vllm-ray', 1, recipe, 0.78);
  // A program, so that the rank is one process; its script can be read in command.sh as it stands.
  expect(worker.argv.slice(0, 2)).toEqual(['sh', '-c']);
  expect(worker.argv[2]).not.toContain("'");
  expect(worker.argv.slice(3)).toEqual(['sh', '', '192.168.200.12', '20000', '192.168.200.13', '2', '1']);
  expect(head.argv.slice(0, 3)).toEqual(worker.argv.slice(0, 3));
  expect(head.argv.slice(3).join(' ')).toBe(
    `sh  192.168.200.12 20000 192.168.200.12 2 1 vllm serve ${MODEL_PATH} --tensor-parallel-size 2 --distributed-executor-backend ray --host 127.0.0.1 --port 30000 --served-model-name qwen3.5-122b --gpu-memory-utilization 0.78 --max-model-len 131072 --max-num-seqs 16 --reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser qwen3_coder --enforce-eager`,
  );
  expect(worker.env).toEqual({
    VLLM_HOST_IP: '192.168.200.13',
    GLOO_SOCKET_IFNAME: 'enp1s0f1np1',
    NCCL_SOCKET_IFNAME: 'enp1s0f1np1',
    TP_SOCKET_IFNAME: 'enp1s0f1np1',
    NCCL_IB_HCA: 'rocep1s0f1,roceP2p1s0f1',
    NCCL_DEBUG: 'INFO',
    RAY_memory_monitor_refresh_ms: '0',
    RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S: '0',
    RAY_DEDUP_LOGS: '0',
  });
  expect([head.health?.port, worker.health]).toEqual([30000, undefined]);
  expect([head.secretEnv, worker.secretEnv]).toEqual([{ VLLM_API_KEY: 'KEY' }, undefined]);
});

test('vLLM over Ray has flags of its own where the recipe names some, and its environment first on PATH', () => {
  const recipe = sparkRecipe({
    args: { vllm: ['--enforce-eager'], 'vllm-ray': [] },
    run: { in: 'process', venv: '/opt/vllm' },
  });
  const { argv } = rank('vllm-ray', 0, recipe);
  expect(argv[4]).toBe('/opt/vllm');
  expect(argv).toContain('/opt/vllm/bin/vllm');
  expect(argv).not.toContain('--enforce-eager');
});

test('network: engine leaves every address and interface to the engine', () => {
  const recipe = sparkRecipe({ network: 'engine', env: { NCCL_DEBUG: 'WARN' } });
  expect(rank('vllm', 0, recipe).env).toEqual({ NCCL_DEBUG: 'WARN' });
  expect(Object.keys(rank('sglang', 0, recipe).env)).toEqual([
    'NCCL_DEBUG',
    'SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK',
  ]);
});

test('what the recipe sets in env wins over what firstlight would set', () => {
  const recipe = sparkRecipe({ env: { NCCL_SOCKET_IFNAME: 'bond0' } });
  expect(rank('sglang', 0, recipe).env['NCCL_SOCKET_IFNAME']).toBe('bond0');
});

test('one node has no flags and no addresses for several', () => {
  const recipe = sparkRecipe({ layout: { nodes: 1, tensor: 1 } });
  for (const engine of ['sglang', 'vllm'] as const) {
    const { argv, env } = rank(engine, 0, recipe);
    expect(argv.join(' ')).not.toMatch(/nnodes|node-rank|dist-init|master|headless/);
    expect(env).toEqual({});
  }
});

test('parsers: none means no flag, a name is passed as it is', () => {
  const none = sparkRecipe({ serve: { reasoning: 'none', tools: 'none' } });
  expect(rank('vllm', 0, none).argv.join(' ')).not.toMatch(/parser|auto-tool/);
  const named = sparkRecipe({ serve: { reasoning: 'deepseek-r1', tools: 'none' } });
  expect(rank('sglang', 0, named).argv.join(' ')).toMatch(/--reasoning-parser deepseek-r1$/);
});

test('the API key’s value is in no word of any command', () => {
  const recipe = sparkRecipe({ serve: { apiKey: { env: 'MY_KEY' } } });
  const vllm = rank('vllm', 0, recipe);
  expect(vllm.secretEnv).toEqual({ VLLM_API_KEY: 'MY_KEY' });
  const sglang = rank('sglang', 0, recipe);
  expect(sglang.argv.slice(0, 2)).toEqual(['sh', '-c']);
  expect(sglang.argv.slice(4, 6)).toEqual(['sglang', 'serve']);
  expect(sglang.secretEnv).toEqual({ FIRSTLIGHT_API_KEY: 'MY_KEY' });
  for (const words of [vllm.argv, sglang.argv.slice(4)]) expect(words).not.toContain('--api-key');
});

test('listen: the head binds loopback, its fabric address or everything', () => {
  const host = (listen: string): readonly string[] => {
    const { argv, health } = rank('sglang', 1, sparkRecipe({ serve: { listen } }));
    return [argv[argv.indexOf('--host') + 1] ?? '', health?.address ?? ''];
  };
  expect(host('loopback')).toEqual(['127.0.0.1', '127.0.0.1']);
  expect(host('fabric')).toEqual(['192.168.200.13', '192.168.200.13']);
  expect(host('all')).toEqual(['0.0.0.0', '127.0.0.1']);
});

test('as a process the program comes from the recipe, its venv, or PATH', () => {
  const program = (run: Readonly<Record<string, unknown>>): string =>
    rank('vllm', 0, sparkRecipe({ run: { in: 'process', ...run } }))
      .argv.slice(0, 5)
      .join(' ');
  expect(program({})).toBe(`vllm serve ${MODEL_PATH} --tensor-parallel-size 2`);
  expect(program({ venv: '/opt/v' })).toBe(`/opt/v/bin/vllm serve ${MODEL_PATH} --tensor-parallel-size 2`);
  expect(program({ command: { vllm: '/usr/local/bin/vllm' } })).toBe(
    `/usr/local/bin/vllm serve ${MODEL_PATH} --tensor-parallel-size 2`,
  );
  expect(program({ command: { vllm: ['/srv/node', 'engine.js', 'vllm'] } })).toBe(
    `/srv/node engine.js vllm serve ${MODEL_PATH}`,
  );
  expect(program({ command: { vllm: '/opt/v/bin/vllm serve' } })).toMatch(
    /^\/opt\/v\/bin\/vllm serve \/home/,
  );
  expect(program({ command: { vllm: ['python3', '-m', 'vllm.entrypoints.openai.api_server'] } })).toBe(
    `python3 -m vllm.entrypoints.openai.api_server ${MODEL_PATH} --tensor-parallel-size`,
  );
});
