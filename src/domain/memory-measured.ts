import type { EngineName } from './recipe.ts';

/**
 * What one rank of one launch took, by its engine's log and its node's ledger. Bytes. What is undefined was not
 * measured. The key by which a later run is told to be alike: model, engine, image, flags, node.
 */
export type MemoryMeasured = {
  readonly model: string;
  /** Weight files on the node, all together; undefined where they were not seen. */
  readonly modelBytes: number | undefined;
  readonly engine: EngineName;
  /** Image and its id, or program and version. */
  readonly image: string;
  /** Layout and the engine's additional arguments, as one line. */
  readonly flags: string;
  readonly node: string;
  readonly rank: number;
  /** Ranks on this node: what a node measured can be told of one rank only where it is 1. */
  readonly ranksThere: number;
  readonly sequences: number | undefined;
  readonly unified: boolean;
  /** "<run>/<attempt>" that launched it: the same launch may be followed, and measured, twice. */
  readonly launch: string;
  /** It came to serve; what failed has measured no peak that counts. */
  readonly served: boolean;
  readonly weightsBytes: number | undefined;
  readonly poolBytes: number | undefined;
  readonly graphsBytes: number | undefined;
  /** MemAvailable before the launch, and the least that its guard saw since. */
  readonly availableBytes: number | undefined;
  readonly lowestBytes: number | undefined;
};
