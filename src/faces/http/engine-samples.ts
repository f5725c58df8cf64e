import type { EngineSample } from '../../domain/engine-sample.ts';
import { type Scraped, sampleOf, scrapeEngine } from '../../operations/engine-metrics.ts';
import type { World } from '../../operations/world.ts';
import type { Looks } from './looks.ts';

const KEPT_MILLISECONDS = 3_600_000;
const LOOK_MILLISECONDS = 30_000;

/** The engine's own numbers of the last hour, asked for once for all who want them. */
export type EngineSamples = {
  /** Scrapes again where the newest is older than that. */
  fresh(milliseconds: number): Promise<void>;
  all(): readonly EngineSample[];
  /** Why there are none now. */
  why(): string | undefined;
};

export function newEngineSamples(world: () => World, looks: Looks): EngineSamples {
  let samples: readonly EngineSample[] = [];
  let before: Scraped | undefined;
  let why: string | undefined = 'nobody asked yet';
  let asked = 0;
  let asking: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    const now = world();
    asked = now.clock.now();
    const { facts } = await looks.fresh(LOOK_MILLISECONDS);
    const scraped = await scrapeEngine(now, facts);
    if ('why' in scraped) {
      why = scraped.why;
      return;
    }
    why = undefined;
    samples = [...samples, sampleOf(before, scraped)].filter(
      ({ at }) => scraped.at - at <= KEPT_MILLISECONDS,
    );
    before = scraped;
  };
  return {
    async fresh(milliseconds) {
      if (world().clock.now() - asked < milliseconds) return;
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      await asking;
    },
    all: () => samples,
    why: () => why,
  };
}
