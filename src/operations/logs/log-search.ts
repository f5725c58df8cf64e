/** What a search asks of the log that it goes through: files by number, lines by id in their files' order. */
export type Searched = {
  files(): number;
  linesOf(file: number): number;
  /** The lines from the nth on, in pieces that are read at once. */
  piecesOf(file: number, from: number): readonly (readonly number[])[];
  textsOf(file: number, ids: readonly number[]): ReadonlyMap<number, string>;
};

/** Which lines of a log hold a text, large and small letters alike. Each line is read once, as the log grows. */
export class LogSearch {
  private static made = 0;
  /** No two searches have the same. */
  readonly number = ++LogSearch.made;
  private readonly log: Searched;
  private readonly wanted: string;
  private readonly read: number[] = [];
  private readonly hits = new Set<number>();
  private reading: Promise<void> = Promise.resolve();

  constructor(log: Searched, wanted: string) {
    this.log = log;
    this.wanted = wanted.toLowerCase();
  }

  /** Reads what is not read yet; between two pieces others have their turn, and the log may grow. */
  readOn(): Promise<void> {
    this.reading = this.reading.catch(() => undefined).then(() => this.readFiles());
    return this.reading;
  }

  /** Whether every line was read that is there now. */
  whole(): boolean {
    return [...Array(this.log.files()).keys()].every(
      (file) => (this.read[file] ?? 0) >= this.log.linesOf(file),
    );
  }

  holds(id: number): boolean {
    return this.hits.has(id);
  }

  private async readFiles(): Promise<void> {
    for (let file = 0; file < this.log.files(); file++) {
      for (const piece of this.log.piecesOf(file, this.read[file] ?? 0)) {
        for (const [id, text] of this.log.textsOf(file, piece))
          if (text.toLowerCase().includes(this.wanted)) this.hits.add(id);
        this.read[file] = (this.read[file] ?? 0) + piece.length;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}
