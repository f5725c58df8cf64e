import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { EngineSample } from '../../../domain/engine-sample.ts';
import { rate } from '../../../domain/units.ts';
import { getServing } from '../data/api.ts';
import type { Page } from '../data/page.ts';
import { colour } from './colour.ts';

const EVERY = 5000;
/** Seconds. */
const HOUR = 3600;

/** What the engine itself says of its requests, as charts of the last hour. */
export function Serving({ page }: { readonly page: Page }): JSX.Element | null {
  const serving = page.shown.serving;
  const [samples, setSamples] = useState<readonly EngineSample[]>([]);
  const [why, setWhy] = useState('');
  useEffect(() => {
    if (!serving) return undefined;
    const read = (): void => {
      getServing().then(
        (answer) => {
          setSamples(answer.samples);
          setWhy(answer.why ?? '');
        },
        (error: unknown) => setWhy(error instanceof Error ? error.message : 'unknown'),
      );
    };
    read();
    const timer = setInterval(read, EVERY);
    return () => clearInterval(timer);
  }, [serving?.seq]);
  if (!serving || page.address.at !== undefined) return null;
  const address = `http://127.0.0.1:${serving.port}/v1`;
  const last = samples.at(-1);
  const measured = page.shown.measured;
  return (
    <section class="panel" id="serving" aria-labelledby="serving-head">
      <div class="head">
        <h2 id="serving-head" tabIndex={-1}>
          Serving
        </h2>
        <span>
          {serving.model} on {serving.head} <code>{address}</code>
        </span>
        <button type="button" class="chip" onClick={() => void navigator.clipboard?.writeText(address)}>
          copy
        </button>
        <span class="spacer" />
        {why === '' && <span class="small quiet wide">from the engine's own metrics, every 5 s</span>}
      </div>
      {why !== '' && <p class="body small quiet">? unknown: {why}</p>}
      <div class="charts">
        <Chart
          title="requests running"
          value={whole(last?.running)}
          unit={last?.waiting === undefined ? '' : `${last.waiting} waiting`}
          samples={samples}
          of={(one) => one.running}
        />
        <Chart
          title="KV cache used"
          value={last?.kvUsed === undefined ? '?' : String(Math.round(last.kvUsed * 100))}
          unit="%"
          samples={samples}
          of={(one) => (one.kvUsed === undefined ? undefined : one.kvUsed * 100)}
          most={100}
        />
        <Chart
          title="time to first token"
          value={seconds(last?.firstToken)}
          unit="s median"
          samples={samples}
          of={(one) => one.firstToken}
          high={(one) => one.firstTokenHigh}
        />
        <Chart
          title="between tokens"
          value={milli(last?.betweenTokens)}
          unit="ms median"
          samples={samples}
          of={(one) => times(one.betweenTokens)}
          high={(one) => times(one.betweenTokensHigh)}
        />
        <Chart
          title="tokens out"
          value={last?.tokensPerSecond === undefined ? '?' : rate(last.tokensPerSecond)}
          unit="tok/s, all requests"
          samples={samples}
          of={(one) => one.tokensPerSecond}
        />
        <Chart
          title="one stream"
          value={measured ? rate(measured.tokensPerSecond) : '?'}
          unit="tok/s at the proof"
          samples={[]}
          of={() => undefined}
        />
      </div>
    </section>
  );
}

function whole(value: number | undefined): string {
  return value === undefined ? '?' : String(Math.round(value));
}

function seconds(value: number | undefined): string {
  return value === undefined ? '?' : value.toFixed(2);
}

function milli(value: number | undefined): string {
  return value === undefined ? '?' : String(Math.round(value * 1000));
}

function times(value: number | undefined): number | undefined {
  return value === undefined ? undefined : value * 1000;
}

type ChartProps = {
  readonly title: string;
  readonly value: string;
  readonly unit: string;
  readonly samples: readonly EngineSample[];
  readonly of: (sample: EngineSample) => number | undefined;
  readonly high?: (sample: EngineSample) => number | undefined;
  readonly most?: number;
};

/** A number now, and its last hour. */
function Chart({ title, value, unit, samples, of, high, most }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const values = samples.map((one) => of(one) ?? null);
  const data: uPlot.AlignedData = [
    samples.map((one) => one.at / 1000),
    values,
    samples.map((one) => (high ? (high(one) ?? null) : null)),
  ];
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    plot.current = new uPlot(
      {
        width: Math.max(80, element.clientWidth),
        height: 64,
        legend: { show: false },
        cursor: { show: false },
        axes: [{ show: false }, { show: false }],
        scales: {
          x: { time: false, range: (_, __, max) => [max - HOUR, max] },
          y: { range: (_, __, max) => [0, most ?? Math.max(1e-3, (max ?? 1) * 1.15)] },
        },
        series: [
          {},
          { stroke: colour('--accent'), width: 1.5, points: { show: false } },
          { stroke: colour('--quiet'), width: 1, dash: [3, 3], points: { show: false } },
        ],
      },
      data,
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(80, element.clientWidth), height: 64 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [samples]);
  const seen = values.filter((one) => one !== null);
  const sentence =
    seen.length === 0
      ? `${title}: ${value} ${unit}, no history yet`
      : `${title}, last hour: ${value} ${unit}, highest ${Math.max(...seen).toFixed(2)}`;
  return (
    <figure class="chart">
      <figcaption class="small quiet">{title}</figcaption>
      <p>
        <b>{value}</b> <span class="small quiet">{unit}</span>
      </p>
      <div class="plot" ref={box} role="img" aria-label={sentence} />
    </figure>
  );
}
