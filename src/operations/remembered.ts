import type { Remembered } from '../planning/learned.ts';
import type { World } from './world.ts';

/** Launches that are looked through: what an old driver or kernel took says little of today's. */
const MOST = 200;

/** What earlier runs measured of memory, oldest first. */
export function remembered(world: World): readonly Remembered[] {
  return world.journal
    .newest('memory-measured', MOST)
    .map(({ at, run, measured }) => ({ at, run, measured }))
    .reverse();
}
