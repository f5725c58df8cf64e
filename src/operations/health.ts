import type { RankRecord } from '../domain/facts.ts';
import { readScrape } from '../knowledge/engines/metrics.ts';
import { httpFrom } from '../remote/http.ts';
import type { World } from './world.ts';

/** A rank's own server, as its node sees it. */
export type RankServer = { readonly node: string; readonly address: string; readonly port: number };

/** GET /health of one rank's server; not `ok` with the reason where it does not answer. SGLang's generates a token: 25 s. */
export async function askHealth(
  world: World,
  { node, address, port }: RankServer,
  signal = world.signal,
): Promise<{ readonly ok: boolean; readonly text: string }> {
  const answer = await httpFrom(world.hosts.of(node), {
    address,
    port,
    method: 'GET',
    path: '/health',
    timeoutSeconds: 25,
    signal,
  });
  if (answer.kind === 'failed') return { ok: false, text: answer.why };
  return { ok: answer.status === 200, text: `/health ${answer.status}` };
}

/** A prompt of one word has its token long before that, unless others are served first. */
const TOKEN_SECONDS = 20;
const BETWEEN_SCRAPES_MS = 2000;

/**
 * One token of the model, behind a /health that answers: that of a head stays 200 when a worker has gone or the fabric
 * is cut. An engine that is busy with others' requests answers too, by its own count of tokens.
 */
export async function askToken(
  world: World,
  server: RankServer,
  record: RankRecord,
): Promise<{ readonly ok: boolean; readonly text: string }> {
  const key = record.apiKeyEnv === undefined ? undefined : world.secrets.value(record.apiKeyEnv);
  if (record.apiKeyEnv !== undefined && (key === undefined || key === ''))
    return {
      ok: true,
      text: `/health 200; not asked for a token, since ${record.apiKeyEnv} is not set here`,
    };
  const answer = await httpFrom(world.hosts.of(server.node), {
    ...server,
    method: 'POST',
    path: '/v1/completions',
    headers: {
      'Content-Type': 'application/json',
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ model: record.servedName ?? record.recipe, prompt: 'one', max_tokens: 1 }),
    timeoutSeconds: TOKEN_SECONDS,
    signal: world.signal,
  });
  if (answer.kind === 'answered' && answer.status < 500)
    return { ok: true, text: '/health 200, and the model answers' };
  const why = answer.kind === 'failed' ? answer.why : `/v1/completions answers ${answer.status}`;
  if (await writesTokens(world, server)) return { ok: true, text: '/health 200, busy with other requests' };
  return { ok: false, text: `/health 200, but the model gives no token: ${why}` };
}

/** Whether the engine's count of tokens moves. */
async function writesTokens(world: World, server: RankServer): Promise<boolean> {
  const first = await tokensOf(world, server);
  if (first === undefined) return false;
  await world.clock.wait(BETWEEN_SCRAPES_MS, world.signal);
  return ((await tokensOf(world, server)) ?? first) > first;
}

async function tokensOf(world: World, { node, address, port }: RankServer): Promise<number | undefined> {
  const path = '/metrics';
  const request = { address, port, method: 'GET' as const, path, timeoutSeconds: 5, signal: world.signal };
  const answer = await httpFrom(world.hosts.of(node), request);
  return answer.kind === 'answered' && answer.status === 200
    ? readScrape(answer.body).outputTokens
    : undefined;
}
