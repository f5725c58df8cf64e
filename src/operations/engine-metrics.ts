import type { EngineSample } from '../domain/engine-sample.ts';
import type { NodeFacts } from '../domain/facts.ts';
import { type EngineScrape, quantileBetween, readScrape } from '../knowledge/engines/metrics.ts';
import { httpFrom } from '../remote/http.ts';
import { servicesOnNodes } from './services-on-nodes.ts';
import type { World } from './world.ts';

export type Scraped = { readonly at: number; readonly node: string; readonly scrape: EngineScrape };

/** Asks the head that serves for its /metrics, through the SSH connection; text says why where there are none. */
export async function scrapeEngine(
  world: World,
  facts: readonly NodeFacts[],
): Promise<Scraped | { readonly why: string }> {
  const head = servicesOnNodes(facts)
    .flatMap((job) => job.ranks)
    .find((rank) => rank.record.rank === 0 && rank.record.state !== 'ended');
  if (head?.record.health === undefined) return { why: 'nothing that firstlight started serves here' };
  const answer = await httpFrom(world.hosts.of(head.node), {
    ...head.record.health,
    method: 'GET',
    path: '/metrics',
    timeoutSeconds: 5,
    signal: world.signal,
  });
  const place = `the engine on ${head.node}`;
  if (answer.kind === 'failed') return { why: `${place} gives no metrics: ${answer.why}` };
  if (answer.status !== 200)
    return {
      why: `${place} gives no metrics (/metrics answers ${answer.status})${head.record.engine === 'sglang' ? '; SGLang needs --enable-metrics' : ''}`,
    };
  return { at: world.clock.now(), node: head.node, scrape: readScrape(answer.body) };
}

/** What two scrapes one after the other mean; rates need the one before. */
export function sampleOf(before: Scraped | undefined, now: Scraped): EngineSample {
  const { scrape } = now;
  const old = before?.node === now.node ? before : undefined;
  const seconds = old === undefined ? 0 : (now.at - old.at) / 1000;
  const tokens = (scrape.outputTokens ?? 0) - (old?.scrape.outputTokens ?? 0);
  const rate = seconds > 0 && scrape.outputTokens !== undefined && tokens >= 0 ? tokens / seconds : undefined;
  const sample = {
    at: now.at,
    running: scrape.running,
    waiting: scrape.waiting,
    kvUsed: scrape.kvUsed,
    firstToken: quantileBetween(old?.scrape.firstToken, scrape.firstToken, 0.5),
    firstTokenHigh: quantileBetween(old?.scrape.firstToken, scrape.firstToken, 0.95),
    betweenTokens: quantileBetween(old?.scrape.betweenTokens, scrape.betweenTokens, 0.5),
    betweenTokensHigh: quantileBetween(old?.scrape.betweenTokens, scrape.betweenTokens, 0.95),
    tokensPerSecond: rate,
  };
  return known(sample);
}

function known(
  sample: { readonly [Key in keyof EngineSample]: EngineSample[Key] | undefined } & { readonly at: number },
): EngineSample {
  const { at, ...rest } = sample;
  return { at, ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) };
}
