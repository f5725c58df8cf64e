export const ROW = 19;
/** Above this a pixel per row would outgrow what a browser lays out: position then maps to index. */
const MOST_PIXELS = 300_000 * ROW;

/** Which rows of a list of any length are in view of a box that scrolls. */
export class LogScroll {
  private readonly box: HTMLElement;
  private readonly inner: HTMLElement;
  private total = 0;

  constructor(box: HTMLElement, inner: HTMLElement) {
    this.box = box;
    this.inner = inner;
  }

  /** So many rows there are. */
  resize(total: number): void {
    this.total = total;
    this.inner.style.height = `${Math.min(MOST_PIXELS, total * ROW)}px`;
  }

  /** Rows that fit into the box, one that is cut off counted. */
  visible(): number {
    return Math.max(1, Math.ceil(this.box.clientHeight / ROW));
  }

  /** Index of the first row in view. */
  first(): number {
    const most = Math.max(0, this.total - this.visible());
    if (this.exact()) return Math.min(most, Math.floor(this.box.scrollTop / ROW));
    return Math.round((this.box.scrollTop / Math.max(1, this.range())) * most);
  }

  to(index: number): void {
    const most = Math.max(1, this.total - this.visible());
    this.box.scrollTop = this.exact() ? index * ROW : (index / most) * this.range();
  }

  toEnd(): void {
    this.box.scrollTop = this.box.scrollHeight;
  }

  atEnd(): boolean {
    return this.box.scrollTop >= this.range() - ROW;
  }

  /** Where the first row in view is laid, in pixels from the list's beginning. */
  top(first: number): number {
    return this.exact() ? first * ROW : this.box.scrollTop;
  }

  private exact(): boolean {
    return this.total * ROW <= MOST_PIXELS;
  }

  private range(): number {
    return this.box.scrollHeight - this.box.clientHeight;
  }
}
