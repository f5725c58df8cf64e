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
