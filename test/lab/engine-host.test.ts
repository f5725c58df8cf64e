import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Engine } from './engine-rig.ts';

let folder: string;
const engines: Engine[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'engine-'));
  const config = {
    architectures: ['Qwen3ForCausalLM'],
    model_type: 'qwen3',
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    max_position_embeddings: 4096,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.alloc(4096));
});
afterEach(async () => {
  for (const engine of engines.splice(0)) {
    if (engine.running) engine.signal('SIGKILL');
    await engine.ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

test('without a lab the ranks meet over this host’s own sockets, and a taken port is really taken', async () => {
  const [store, api, health] = [await freePort(), await freePort(), await freePort()];
  const start = (rank: number, port: number): Engine => {
    const words = [
      ...['sglang', 'serve', '--model-path', folder, '--tp-size', '2', '--nnodes', '2'],
      ...['--node-rank', String(rank), '--dist-init-addr', `127.0.0.1:${store}`, '--port', String(port)],
    ];
    const engine = new Engine(words, {
      FIRSTLIGHT_LAB_SPEED: '12',
      GLOO_SOCKET_IFNAME: 'lo',
      SGLANG_HOST_IP: '127.0.0.1',
    });
    engines.push(engine);
    return engine;
  };
  start(1, health);
  const head = start(0, api);
  await head.until(/ready to roll/);
  expect((await fetch(`http://127.0.0.1:${api}/health`)).status).toBe(200);
  expect((await fetch(`http://127.0.0.1:${health}/health`)).status).toBe(200);
  const second = start(0, api);
  await second.ended;
  expect(second.text).toContain('EADDRINUSE');
});
