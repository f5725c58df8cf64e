// Random faults against eight whole hosts, with a bring-up all the while: `npm run soak`. SOAK_SECONDS (600) and
// SOAK_SEED (drawn, and printed) may be set. Needs root; ends with 1 where something was not as it must be.
import { spawnSync } from 'node:child_process';

const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.soak.config.ts', ...process.argv.slice(2)],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
