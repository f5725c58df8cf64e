import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineWorld } from './engine-world.ts';
import { realPath } from './model-folder.ts';
import type { Env } from './rank.ts';

/**
 * What vLLM asks the hub for a tokenizer that is named by its repository (repo_utils.py: the list of its files, cached
 * or not, unless offline mode is on). The exception's last line, or undefined where it goes on.
 */
export async function hubProblem(
  world: Pick<EngineWorld, 'askHub'>,
  env: Env,
  repository: string | undefined,
): Promise<string | undefined> {
  if (repository === undefined || repository.startsWith('/')) return undefined;
  if (env['HF_HUB_OFFLINE'] === '1')
    return cached(repository, env)
      ? undefined
      : `huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing traffic has been disabled. To enable repo look-ups and downloads online, set 'HF_HUB_OFFLINE=0' as environment variable.`;
  const url = `/api/models/${repository}/tree/main?recursive=true&expand=false`;
  const status = await world.askHub();
  if (status === 429)
    return `huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co${url}`;
  return `requests.exceptions.ConnectionError: (MaxRetryError("HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: ${url} (Caused by NameResolutionError(\\"<urllib3.connection.HTTPSConnection object at 0xf2d5a8c3b6b0>: Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure in name resolution)\\"))"), '(Request ID: 6f1c)')`;
}

/** Whether a snapshot of it lies in the cache that this rank sees. */
function cached(repository: string, env: Env): boolean {
  const home = env['HF_HOME'] ?? '/root/.cache/huggingface';
  const folder = realPath(join(home, 'hub', `models--${repository.replaceAll('/', '--')}`), env);
  const main = folder === undefined ? undefined : join(folder, 'refs/main');
  if (folder === undefined || main === undefined || !existsSync(main)) return false;
  return existsSync(join(folder, 'snapshots', readFileSync(main, 'utf8').trim(), 'tokenizer_config.json'));
}
