// The end-to-end suite: `npm run e2e`, `npm run e2e -- --ray` for the file with real Ray alone, `npm run e2e -- --full`
// for every fault at every stage, `npm run e2e -- --engine vllm` (or torch) for a real engine. Other words are vitest's.
import { spawnSync } from 'node:child_process';

const words = process.argv.slice(2);
const ray = words.includes('--ray');
const full = words.includes('--full');
const at = words.indexOf('--engine');
const engine = at === -1 ? undefined : words.splice(at, 2)[1];
// Neither real Ray nor the quick suite needs whole hosts: their root file system is not made for them.
const quick = ray || engine !== undefined || (words.length > 0 && words.every((word) => word === 'bring-up'));
const { status } = spawnSync(
  process.execPath,
  [
    'node_modules/vitest/vitest.mjs',
    ...['run', '--config', 'vitest.e2e.config.ts'],
    ...(ray ? ['test/e2e/ray.e2e.ts'] : []),
    ...(engine === undefined ? [] : ['test/e2e/engines.e2e.ts']),
    ...words.filter((word) => word !== '--ray' && word !== '--full'),
  ],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      ...(ray ? { FIRSTLIGHT_E2E_RAY: '1' } : {}),
      ...(engine === undefined ? {} : { FIRSTLIGHT_E2E_ENGINE: engine }),
      ...(full ? { FIRSTLIGHT_E2E_FULL: '1' } : {}),
      ...(quick ? { FIRSTLIGHT_E2E_QUICK: '1' } : {}),
    },
  },
);
process.exit(status ?? 1);
