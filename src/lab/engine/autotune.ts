import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realPath } from './model-folder.ts';
import type { Pace } from './pace.ts';
import type { Env } from './rank.ts';

const FOLDER = '/root/.cache/vllm/flashinfer_autotune_cache';
const TACTICS = 16;

/**
 * FlashInfer's kernels are tuned, unless this rank finds in its own cache what an earlier start tuned. Ranks that tune
 * do so in step (VLLM_FLASHINFER_AUTOTUNE_DISTRIBUTED_SYNC): one whose cache is filled does not come, and the others
 * wait for it (vllm-project/vllm#52291). `say` prints a line, `together` waits for all ranks.
 */
export async function autotune(
  { env, pace }: { readonly env: Env; readonly pace: Pace },
  {
    size,
    say,
    together,
  }: {
    readonly size: number;
    readonly say: (level: 'INFO' | 'WARNING', text: string) => void;
    readonly together: () => Promise<unknown>;
  },
): Promise<void> {
  const folder = realPath(FOLDER, env);
  // Without a volume there is nothing of an earlier start, and nothing to be out of step with.
  if (folder === undefined || env['FIRSTLIGHT_LAB_MOUNTS'] === undefined) return;
  const file = join(folder, 'fused_moe.json');
  if (existsSync(file)) {
    say('INFO', `[AutoTuner]: Loaded autotune cache from ${FOLDER}/fused_moe.json, ${TACTICS} cache hits`);
    return;
  }
  say('INFO', `[AutoTuner]: Tuning flashinfer::fused_moe: 0%|          | 0/${TACTICS}`);
  if (size > 1 && env['VLLM_FLASHINFER_AUTOTUNE_DISTRIBUTED_SYNC'] !== '0') {
    const timer = setInterval(
      () =>
        say(
          'INFO',
          'No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).',
        ),
      60_000 / pace.speed,
    );
    await together().finally(() => clearInterval(timer));
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, '{}\n');
  say('INFO', `[AutoTuner]: Tuning flashinfer::fused_moe: 100%|##########| ${TACTICS}/${TACTICS}`);
}
