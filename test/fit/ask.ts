import { readFileSync } from 'node:fs';
import { parseObject } from '../../src/domain/json.ts';
import { describeModel, type ModelDescription } from '../../src/knowledge/models/describe.ts';
import { sourcesOf } from '../../src/knowledge/models/model-file.ts';
import { fitOf } from '../../src/planning/fit/fit.ts';
import type { FitInput, FitSettings } from '../../src/planning/fit/input.ts';

export const GIB = 2 ** 30;

export function modelFile(name: string): Readonly<Record<string, unknown>> {
  const text = readFileSync(new URL(`../samples/fit/models/${name}.json`, import.meta.url), 'utf8');
  const parsed = parseObject(text);
  if (parsed === undefined) throw new Error(`${name} is no JSON object`);
  return parsed;
}

export function model(name: string): ModelDescription {
  return describeModel(sourcesOf(modelFile(name), name));
}

type Asked = {
  readonly engine?: 'vllm' | 'sglang';
  readonly layout?: Partial<FitInput['layout']>;
  /** GiB. */
  readonly total?: number;
  readonly available?: number;
  readonly unified?: boolean;
  readonly context?: number;
  readonly sequences?: number;
  readonly settings?: FitSettings;
  readonly learned?: FitInput['learned'];
};

export function inputFor(of: string | ModelDescription, asked: Asked = {}): FitInput {
  const gib = (value: number | undefined): number | undefined =>
    value === undefined ? undefined : value * GIB;
  return {
    model: typeof of === 'string' ? model(of) : of,
    engine: asked.engine ?? 'vllm',
    layout: { nodes: 1, tensor: 1, pipeline: 1, expert: 1, data: 1, ...asked.layout },
    memory: {
      unified: asked.unified ?? false,
      totalBytes: gib(asked.total),
      availableBytes: gib(asked.available),
    },
    context: asked.context,
    sequences: asked.sequences,
    settings: asked.settings ?? {},
    learned: asked.learned,
  };
}

export function fitting(of: string | ModelDescription, asked: Asked = {}) {
  return fitOf(inputFor(of, asked));
}

/** The first rank's figures. */
export function rank(of: string | ModelDescription, asked: Asked = {}) {
  const first = fitting(of, asked).ranks[0];
  if (first === undefined) throw new Error('no rank');
  return first;
}

export function weights(of: string | ModelDescription, asked: Asked = {}): number {
  return (rank(of, asked).weightsBytes ?? Number.NaN) / GIB;
}
