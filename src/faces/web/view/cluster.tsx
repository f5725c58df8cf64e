import type { JSX } from 'preact';
import { type NodeFacts, valueIf } from '../../../domain/facts.ts';
import { gibNumber, stopwatch } from '../../../domain/units.ts';
import type { Page, PageStore } from '../data/page.ts';
import { type MemoryPicture, memoryPicture } from '../picture/memory.ts';
import { type Link, type Seat, wiring } from '../picture/wiring.ts';
import { MemoryBar } from './memory-bar.tsx';

type Props = {
  readonly page: Page;
  readonly store: PageStore;
  readonly full: boolean;
  readonly toggle: () => void;
};

/** Nodes and links as they are wired, and the memory of each. */
export function Cluster({ page, store, full, toggle }: Props): JSX.Element {
  const seats = wiring(page.cluster?.nodes ?? [], page.shown, factsOf(page));
  const pictures = seats.map((seat) => pictureOf(page, seat.name));
  const scale = Math.max(1, ...pictures.map((one) => (one.seen ? one.totalBytes : 0)));
  const facts = factsOf(page);
  const at = facts === page.look?.facts ? page.look.at : page.shown.lookedAt;
  const replay = page.address.at !== undefined;
  return (
    <section class="panel" id="cluster" aria-labelledby="cluster-head">
      <div class={full ? 'head' : 'head slim'}>
        <h2 id="cluster-head" tabIndex={-1}>
          Cluster {page.cluster?.cluster ?? page.shown.cluster}
        </h2>
        <span class="small quiet">
          {seats.length === 1 ? '1 node' : `${seats.length} nodes`}
          {at === undefined
            ? ''
            : replay
              ? ` · as of the look at ${new Date(at).toLocaleTimeString()}`
              : ` · looked ${stopwatch(Math.max(0, page.now - Date.parse(at)))} ago`}
        </span>
        <span class="spacer" />
        {full && <span class="small quiet wide">GiB, one scale for all nodes</span>}
        {!replay && (
          <button type="button" class="plain small" onClick={() => void store.lookNow(true)}>
            look again
          </button>
        )}
        <button type="button" class="plain small wide" onClick={toggle} aria-expanded={full}>
          {full ? 'compact' : 'full'}
        </button>
      </div>
      <div class={full ? 'nodes full' : 'nodes'}>
        {seats.map((seat, index) => {
          const picture = pictures[index];
          const facts = factsOf(page).find((one) => one.node === seat.name);
          return picture === undefined ? null : (
            <NodeRow
              key={seat.name}
              seat={seat}
              next={index < seats.length - 1 ? seats[index]?.link : undefined}
              picture={picture}
              facts={facts}
              scale={scale}
              full={full}
            />
          );
        })}
      </div>
      <p class="unseen">{seats.map((seat) => seat.sentence).join(' ')}</p>
    </section>
  );
}

/** In replay the run's own look; else whichever is newer. */
function factsOf(page: Page): readonly NodeFacts[] {
  const { look, shown } = page;
  const newer = page.address.at === undefined && look !== undefined && look.at > (shown.lookedAt ?? '');
  return newer || shown.facts.length === 0 ? (look?.facts ?? []) : shown.facts;
}

function pictureOf(page: Page, node: string): MemoryPicture {
  const { shown } = page;
  const live = page.address.at === undefined;
  const chosen = new Set([...page.chosen, ...shown.consented]);
  const going = (shown.plan?.phases ?? [])
    .flatMap((phase) => phase.steps)
    .filter((step) => step.node === node && chosen.has(step.id))
    .flatMap((step) => (step.target ? [step.target.identity] : []));
  return memoryPicture({
    node,
    facts: factsOf(page).find((one) => one.node === node),
    plan: shown.plan?.memory.find((one) => one.node === node),
    reserveBytes: shown.plan?.recipe.memory.reserve,
    going: live && shown.phase === 'waiting' ? going : [],
    planned: shown.serving === undefined && shown.ended === undefined,
  });
}

function NodeRow({
  seat,
  next,
  picture,
  facts,
  scale,
  full,
}: {
  readonly seat: Seat;
  readonly next: Link | undefined;
  readonly picture: MemoryPicture;
  readonly facts: NodeFacts | undefined;
  readonly scale: number;
  readonly full: boolean;
}): JSX.Element {
  return (
    <div class="node">
      <div class="spine">
        {seat.ssh !== undefined && <span class={`ssh ${seat.ssh}`} title={seat.sshText} />}
        <span class={seat.role === 'head' ? 'box head-box' : 'box'}>{seat.box}</span>
        {next && (
          <span class={`fabric ${next.state}`} title={next.text}>
            <i>{next.words}</i>
          </span>
        )}
      </div>
      <div class="about">
        <b class="node-name">{seat.name}</b> <span class="small quiet">{seat.what}</span>
        {full && (
          <>
            <p class="small mono quiet">{seat.address}</p>
            {facts?.reached === false && <p class="small bad">✕ {facts.failure.sentence}</p>}
          </>
        )}
      </div>
      <MemoryBar picture={picture} scale={scale} full={full} />
      {!full && (
        <p class="can">
          {picture.seen ? (
            <>
              <b>{gibNumber(picture.availableBytes)}</b> <span class="small quiet">GiB available</span>
            </>
          ) : (
            <span class="small quiet">?</span>
          )}
        </p>
      )}
      <Gpu facts={facts} full={full} />
    </div>
  );
}

function Gpu({
  facts,
  full,
}: {
  readonly facts: NodeFacts | undefined;
  readonly full: boolean;
}): JSX.Element {
  const gpus = facts?.reached ? valueIf(facts.gpus) : undefined;
  const why = facts?.reached && !facts.gpus.known ? facts.gpus.why : 'GPU unknown';
  if (gpus === undefined) return <p class="gpu small quiet">{full ? why : '? GPU'}</p>;
  if (!full) {
    const heat = gpus[0]?.heat;
    const words = [figure(heat?.usePercent, '%'), figure(heat?.celsius, '°C'), figure(heat?.watts, 'W')];
    return <p class="gpu small quiet">{words.join(' · ')}</p>;
  }
  return (
    <div class="gpu small quiet">
      {gpus.slice(0, 4).map((gpu) => (
        <dl key={gpu.uuid} title={`${gpu.name}, driver ${gpu.driver}`}>
          <dt>{gpu.name.replace('NVIDIA ', '')}</dt>
          <dd>{figure(gpu.heat?.usePercent, '%')}</dd>
          <dt>temp</dt>
          <dd>{figure(gpu.heat?.celsius, '°C')}</dd>
          <dt>power</dt>
          <dd>{figure(gpu.heat?.watts, 'W')}</dd>
          <dt>clock</dt>
          <dd>{figure(gpu.heat?.megahertz, 'MHz')}</dd>
        </dl>
      ))}
    </div>
  );
}

/** A figure that nobody told is drawn as unknown. */
function figure(value: number | undefined, unit: string): string {
  return `${value === undefined ? '?' : Math.round(value)} ${unit}`;
}
