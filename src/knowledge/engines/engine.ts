import type { ReachedFacts } from '../../domain/facts.ts';
import type { Stage } from '../../domain/finding.ts';
import type { EngineName, Recipe } from '../../domain/recipe.ts';

/** Everything one rank's command depends on. */
export type RankInput = {
  readonly recipe: Recipe;
  readonly rank: number;
  /** Fabric address and name of the interface that holds it, per rank; resolved on each node. */
  readonly addresses: readonly string[];
  readonly interfaceName: string | undefined;
  /** Active RDMA devices of this rank's node, when `network: auto` and all nodes have some. */
  readonly rdmaDevices: readonly string[];
  /** Fraction for the engine's own memory flag, or undefined to leave the engine's default. */
  readonly memoryFraction: number | undefined;
  readonly facts: ReachedFacts;
};

export type RankCommand = {
  /** The engine's program and arguments, less docker. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables whose values are secrets: name on the node → name of the secret here. Absent where there are none. */
  readonly secretEnv?: Readonly<Record<string, string>>;
  readonly health: { readonly address: string; readonly port: number } | undefined;
};

/** What one log line says of its rank's progress. */
export type Landmark = {
  readonly stage: Stage;
  readonly percent?: number;
  /** Address of the node whose process said it, where one rank's log carries the lines of another. */
  readonly from?: string;
};

/** One engine: commands per rank, tuning → flags, line → stage, memory model. */
export type Engine = {
  readonly name: EngineName;
  rank(input: RankInput): RankCommand;
  /** Line of a log, colour codes and carriage returns already gone → landmark, if it is one. */
  landmark(text: string): Landmark | undefined;
  /** The forms of line that `landmark` knows; no other line is one. */
  readonly landmarks: readonly RegExp[];
  /** The message of a line without prefixes, time stamps and level: what signatures match on. */
  message(text: string): string;
  /** Whether a worker (rank ≥ 1) opens a health port. */
  readonly workerHealth: boolean;
  /** Seconds without progress in a stage after which that is a finding. */
  stallSeconds(stage: Stage): number;
  /** Seconds the head gets after SIGTERM before SIGKILL. */
  readonly stopSeconds: number;
};
