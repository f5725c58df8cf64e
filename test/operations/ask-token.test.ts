import { createServer, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { RankRecord } from '../../src/domain/facts.ts';
import { askToken } from '../../src/operations/health.ts';
import type { World } from '../../src/operations/world.ts';
import type { Host } from '../../src/remote/host.ts';
import { rankRecord } from '../pretend/facts.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A world whose one host is this machine, as far as its ports go. */
function world(key: string | undefined): World {
  const none = (): never => {
    throw new Error('only its ports are looked at');
  };
  const host: Host = {
    node: { name: 'spark-a', ssh: 'spark-a' },
    connect: none,
    run: none,
    stream: none,
    leave: none,
    dial: (address, port) => connect(port, address),
  };
  const nothing = pretendWorld({
    signal: new AbortController().signal,
    live: () => undefined,
    onEvent: () => undefined,
  });
  return {
    ...nothing,
    hosts: { ...nothing.hosts, of: () => host },
    secrets: { ...nothing.secrets, value: () => key },
    clock: { ...nothing.clock, wait: async () => undefined },
  };
}

/** What is said of a head whose engine answers like this. */
async function asked(answers: RequestListener, differs: Partial<RankRecord> = {}, key?: string) {
  const server = createServer(answers);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const place = { node: 'spark-a', address: '127.0.0.1', port: address.port };
  return askToken(world(key), place, rankRecord(0, { servedName: 'tiny', ...differs }));
}

describe('a head whose health is well', () => {
  it('answers where a token comes', async () => {
    const bodies: string[] = [];
    const answer = await asked((request, response) => {
      request.on('data', (part: Buffer) => bodies.push(String(part)));
      request.on('end', () => response.end('{"choices":[{"text":"1"}]}'));
    });
    expect(answer).toEqual({ ok: true, text: '/health 200, and the model answers' });
    expect(JSON.parse(bodies.join(''))).toMatchObject({ model: 'tiny', max_tokens: 1 });
  });

  it('does not where its engine is dead, and says what came instead', async () => {
    const answer = await asked((_request, response) => response.writeHead(500).end('EngineDeadError'));
    expect(answer).toEqual({
      ok: false,
      text: '/health 200, but the model gives no token: /v1/completions answers 500',
    });
  });

  it('does where no token came in time, and yet the engine writes those of others', async () => {
    let tokens = 100;
    const answer = await asked((request, response) => {
      if (request.url !== '/metrics') return request.socket.destroy();
      tokens += 7;
      return response.end(`vllm:generation_tokens_total{model_name="tiny"} ${tokens}\n`);
    });
    expect(answer).toEqual({ ok: true, text: '/health 200, busy with other requests' });
  });

  it('does not where the count of tokens stands still', async () => {
    const answer = await asked((request, response) => {
      if (request.url !== '/metrics') return request.socket.destroy();
      return response.end('vllm:generation_tokens_total{model_name="tiny"} 100\n');
    });
    expect(answer.ok).toBe(false);
  });

  it('is asked with its key, and not at all where that is not here', async () => {
    let seen: string | undefined;
    const answers: RequestListener = (request, response) => {
      seen = request.headers.authorization;
      response.end('{}');
    };
    await asked(answers, { apiKeyEnv: 'TINY_KEY' }, 'secret');
    expect(seen).toBe('Bearer secret');
    seen = undefined;
    const answer = await asked(answers, { apiKeyEnv: 'TINY_KEY' });
    expect(answer).toMatchObject({ ok: true, text: expect.stringContaining('TINY_KEY is not set here') });
    expect(seen).toBeUndefined();
  });
});
