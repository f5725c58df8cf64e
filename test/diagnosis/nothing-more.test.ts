import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { newWatch } from '../../src/diagnosis/nothing-more.ts';
import { offlineEvidence } from '../../src/diagnosis/offline.ts';
import { recogniseEngine } from '../../src/diagnosis/recognise-engine.ts';
import type { Evidence } from '../../src/domain/evidence.ts';
import { linesOf, readHealthy } from './corpus.ts';

const NOON = Date.UTC(2026, 0, 1, 12);

/** Logs by name as they stand so many seconds after noon, when they last grew. */
function seenAt(texts: Readonly<Record<string, string>>, seconds: number): Evidence {
  const logs = Object.entries(texts).map(([name, text]) => ({
    name,
    lines: linesOf(Buffer.from(text)),
    changedAt: NOON,
  }));
  const engine = recogniseEngine(logs.map(({ lines }) => lines)) ?? 'vllm';
  return offlineEvidence(logs, { engine, now: NOON + seconds * 1000, finished: false });
}

/** After how many seconds of silence following ends; undefined where it goes on. */
function endsAfter(texts: Readonly<Record<string, string>>): number | undefined {
  const watch = newWatch();
  return [1, 4, 6, 14, 16, 60].find((seconds) => watch(seenAt(texts, seconds), NOON));
}

const START = `(APIServer pid=1) INFO 05-05 09:59:00 [api_server.py:1800] vLLM API server version 0.20.0
(APIServer pid=1) INFO 05-05 09:59:00 [utils.py:233] non-default args: {'model_tag': '/m', 'port': 8000}
`;
const SGLANG = `[2026-05-20 07:44:10] server_args=ServerArgs(model_path='/m', tp_size=2, nnodes=2, node_rank=0, dist_init_addr='192.168.100.1:25000')
`;

describe('following logs', () => {
  it.each([
    [
      "vLLM's own port",
      `${START}Traceback (most recent call last):
  File "/usr/lib/python3/vllm/entrypoints/openai/api_server.py", line 1000, in create_server_socket
    sock.bind(addr)
OSError: [Errno 98] Address already in use
`,
    ],
    [
      "uvicorn's",
      `${SGLANG}ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n`,
    ],
    [
      'the rendezvous port by SGLang',
      `${SGLANG}[2026-05-20 07:44:14] port 25000 is in use. Waiting for 15 seconds for dist_init_port to be available.
ValueError: dist_init_port at 25000 is not available in 30 seconds.
`,
    ],
    [
      'the rendezvous port by torch',
      readFileSync(new URL('../samples/captured/rendezvous-port-in-use-head.log', import.meta.url), 'utf8'),
    ],
    [
      'a queue of ZeroMQ',
      `${START}zmq.error.ZMQError: Address already in use (addr='tcp://10.0.0.1:5557')\n`,
    ],
  ])('ends with the finding where a port is taken: %s', (_what, head) => {
    expect(endsAfter({ head })).toBe(6);
  });

  it('ends although another rank prints a line every two seconds', () => {
    const head = `${START}OSError: [Errno 98] Address already in use\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n`;
    const retry = (at: number): string =>
      `[W505 10:00:${at}.117 TCPStore.cpp:358] [c10d] TCP client failed to connect/validate to host 192.168.100.1:29501 - retrying (try=${at}, timeout=600000ms, delay=1042ms): Connection refused\n`;
    const watch = newWatch();
    let worker = '';
    const over = Array.from({ length: 30 }, (_, look) => {
      worker += retry(10 + look);
      const now = look * 2;
      return watch(seenAt({ head, worker }, now), NOON + now * 1000) ? now : undefined;
    });
    expect(over.find((at) => at !== undefined)).toBe(32);
  });

  it('goes on where a rank still loads, however silent, and whatever was said in passing', () => {
    for (const [name, logs] of readHealthy())
      for (const part of [0.2, 0.4, 0.6, 0.8, 0.9]) {
        const texts = Object.fromEntries(
          Object.entries(logs).map(([log, bytes]) => {
            const lines = String(bytes).split('\n');
            return [log, `${lines.slice(0, Math.ceil(lines.length * part)).join('\n')}\n`];
          }),
        );
        expect({ name, part, ends: endsAfter(texts) }).toEqual({ name, part, ends: undefined });
      }
  });

  it('waits longer where the cause is known less surely', () => {
    const head = `${START}torch.AcceleratorError: CUDA driver error: an illegal memory access was encountered\n`;
    expect(endsAfter({ head })).toBe(16);
  });

  it('has samples to look at', () => {
    expect(readdirSync(new URL('../samples/healthy/', import.meta.url)).length).toBeGreaterThan(9);
  });
});
