import { type Holder, type ReachedFacts, valueIf } from '../domain/facts.ts';
import { lostBecause } from './lost-because.ts';

/** Up to so many holders every choice of them is weighed; with more, the dear ones are left out one by one. */
const MOST_WEIGHED = 12;

/**
 * The holders to stop so that `bytes` come back: what costs other people least first, and no more than that takes.
 * All of them where all together do not do. `gives`: what one gives back where it is needed.
 */
export function chooseHolders(input: {
  readonly holders: readonly Holder[];
  readonly bytes: number;
  readonly facts: ReachedFacts;
  readonly gives: (holder: Holder) => number;
}): readonly Holder[] {
  const { bytes, facts, gives } = input;
  if (bytes <= 0) return [];
  const offers = input.holders
    .map((holder) => ({ holder, price: priceOf(holder, facts), bytes: gives(holder) }))
    .filter((offer) => offer.bytes > 0)
    .sort(
      (a, b) => a.price - b.price || b.bytes - a.bytes || (a.holder.identity < b.holder.identity ? -1 : 1),
    );
  const chosen = offers.length <= MOST_WEIGHED ? cheapest(offers, bytes) : pruned(offers, bytes);
  return (chosen ?? offers).map(({ holder }) => holder);
}

type Offer = { readonly holder: Holder; readonly price: number; readonly bytes: number };

/** The choice of the least price, of equal ones that which frees least; undefined where all together are too little. */
function cheapest(offers: readonly Offer[], bytes: number): readonly Offer[] | undefined {
  let best: { readonly chosen: readonly Offer[]; readonly price: number; readonly bytes: number } | undefined;
  for (let choice = 1; choice < 2 ** offers.length; choice += 1) {
    const chosen = offers.filter((_, at) => Math.floor(choice / 2 ** at) % 2 === 1);
    const sum = chosen.reduce((all, offer) => all + offer.bytes, 0);
    if (sum < bytes) continue;
    const price = chosen.reduce((all, offer) => all + offer.price, 0);
    if (best === undefined || price < best.price || (price === best.price && sum < best.bytes))
      best = { chosen, price, bytes: sum };
  }
  return best?.chosen;
}

/** Cheapest first until it does, then without whatever is not needed after all, the dearest first. */
function pruned(offers: readonly Offer[], bytes: number): readonly Offer[] | undefined {
  const chosen: Offer[] = [];
  let sum = 0;
  for (const offer of offers) {
    if (sum >= bytes) break;
    chosen.push(offer);
    sum += offer.bytes;
  }
  if (sum < bytes) return undefined;
  for (const offer of chosen.toReversed()) {
    if (sum - offer.bytes < bytes) continue;
    chosen.splice(chosen.indexOf(offer), 1);
    sum -= offer.bytes;
  }
  return chosen;
}

/**
 * What it costs people that this is stopped, in points: somebody's work that cannot be brought back most of all, then
 * what others use or own, then state that only a running process has.
 */
function priceOf(holder: Holder, facts: ReachedFacts): number {
  const { owner } = holder;
  const me = valueIf(facts.host)?.user;
  const lost =
    owner.kind === 'container'
      ? valueIf(owner.autoRemove) === true
      : owner.kind === 'process' && lostBecause(holder, owner, valueIf(facts.sudo) !== 'none') !== undefined;
  const state = owner.kind === 'process' ? 20 : 10;
  const serves = holder.listens.length > 0 ? 15 : 0;
  // Units and containers run as users of their own, whoever set them up.
  const others = owner.kind === 'process' && holder.user !== me ? 10 : 0;
  return state + serves + others + (lost ? 100 : 0);
}
