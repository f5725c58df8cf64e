import type { LogPlace, LogStrip } from '../../../domain/log-rows.ts';
import { stripPicture } from '../picture/strip.ts';
import { colour } from './colour.ts';

/** What of a log is in view, in rows. */
export type InView = { readonly first: number; readonly visible: number; readonly total: number };

const REFRESH_MILLISECONDS = 2000;

/** A strip beside the log: its whole length at a glance, and where in it one is. A press goes there. */
export class StripCanvas {
  private readonly canvas: HTMLCanvasElement;
  private readonly ask: (pieces: number) => Promise<LogStrip | undefined>;
  private strip: LogStrip | undefined;
  private view: InView = { first: 0, visible: 1, total: 0 };
  private asked = Number.NEGATIVE_INFINITY;
  private key = '';
  private readonly colours = new Map<string, string>();

  constructor(
    canvas: HTMLCanvasElement,
    ask: (pieces: number) => Promise<LogStrip | undefined>,
    go: (row: number) => void,
  ) {
    this.canvas = canvas;
    this.ask = ask;
    const press = (event: PointerEvent): void => {
      const { top, height } = canvas.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientY - top) / Math.max(1, height)));
      go(Math.floor(share * this.view.total));
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      press(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) press(event);
    });
    const turned = (): void => {
      this.colours.clear();
      this.draw();
    };
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', turned);
    addEventListener('theme', turned);
  }

  /** The mark or quoted line next to that row, on or back. */
  stop(row: number, step: 1 | -1): LogPlace | undefined {
    const stops = this.strip?.stops ?? [];
    return step > 0 ? stops.find((one) => one.row > row) : stops.findLast((one) => one.row < row);
  }

  /** The log was painted; `key` changes with its filter. */
  show(view: InView, key: string): void {
    const grown = this.strip?.total !== view.total;
    this.view = view;
    this.draw();
    if (key === this.key && !(grown && performance.now() - this.asked > REFRESH_MILLISECONDS)) return;
    this.key = key;
    this.asked = performance.now();
    void this.ask(Math.max(1, Math.floor(this.canvas.clientHeight / 2))).then((strip) => {
      if (strip === undefined || key !== this.key) return;
      this.strip = strip;
      this.draw();
    });
  }

  private draw(): void {
    const { canvas, strip } = this;
    const context = canvas.getContext('2d');
    const ratio = devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (context === null || height === 0) return;
    if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    for (const { name, x, y, w, h, strength } of stripPicture(strip, this.view, width, height)) {
      context.globalAlpha = strength;
      const known = this.colours.get(name) ?? colour(name);
      this.colours.set(name, known);
      context.fillStyle = known;
      context.fillRect(x, y, w, h);
    }
    context.globalAlpha = 1;
  }
}
