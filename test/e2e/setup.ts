import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whyNot } from './fleet.ts';
import { openTable, printTable } from './whole/table.ts';

/** Before and after the whole suite: what its hosts are made of, and the table of what was proved. */
export function setup(): () => void {
  openTable(join(tmpdir(), `firstlight-e2e-${process.pid}.table`));
  if (process.env['FIRSTLIGHT_E2E_QUICK'] === undefined && whyNot() === undefined) {
    const began = Date.now();
    const made = spawnSync('bash', [join(import.meta.dirname, 'whole', 'hosts.sh'), 'rootfs'], {
      encoding: 'utf8',
    });
    if (made.status !== 0)
      throw new Error(`the root file system of the hosts cannot be made: ${made.stderr}`);
    const size = spawnSync('du', ['-sh', made.stdout.trim()], { encoding: 'utf8' }).stdout.split('\t')[0];
    console.log(`root file system of whole hosts: ${((Date.now() - began) / 1000).toFixed(1)} s, ${size}`);
  }
  return printTable;
}
