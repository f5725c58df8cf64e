/** A list of whole numbers under 2^32 that grows, at four bytes each; what was never set is 0. */
export class Numbers {
  private values = new Uint32Array(1024);

  at(index: number): number {
    return this.values[index] ?? 0;
  }

  set(index: number, value: number): void {
    if (index >= this.values.length) {
      const wider = new Uint32Array(Math.max(index + 1, this.values.length * 2));
      wider.set(this.values);
      this.values = wider;
    }
    this.values[index] = value;
  }
}
