import { isObject, parseObject } from '../../domain/json.ts';
import { kindOf, placeOf } from './tensor-name.ts';
import type { WeightGroup } from './weight-group.ts';

/** Bytes of one tensor as its shard's header names them. */
export type Tensor = { readonly name: string; readonly bytes: number };

/** No shard is larger: a larger offset is none. */
const LARGEST = 2 ** 50;

/** Tensors in a shard's header; undefined where it is none, so that a cut file is never read as a small model. */
export function tensorsIn(header: string): readonly Tensor[] | undefined {
  const parsed = parseObject(header);
  if (parsed === undefined) return undefined;
  const tensors: Tensor[] = [];
  for (const [name, entry] of Object.entries(parsed)) {
    if (name === '__metadata__') continue;
    const offsets = isObject(entry) ? entry['data_offsets'] : undefined;
    const [from, to] = Array.isArray(offsets) ? offsets : [];
    if (typeof from !== 'number' || typeof to !== 'number' || !(to >= from) || from < 0 || to > LARGEST)
      return undefined;
    tensors.push({ name, bytes: to - from });
  }
  return tensors;
}

/** Tensors of all shards → groups that a layout cuts alike. `layers` tells the block for further tokens apart. */
export function groupTensors(tensors: readonly Tensor[], layers: number | undefined): readonly WeightGroup[] {
  const groups = new Map<string, { kind: WeightGroup['kind']; place: WeightGroup['place']; bytes: number }>();
  for (const { name, bytes } of tensors) {
    const { kind } = kindOf(name);
    const place = placeOf(name, layers);
    const key = `${kind} ${place}`;
    const before = groups.get(key);
    if (before === undefined) groups.set(key, { kind, place, bytes });
    else before.bytes += bytes;
  }
  return [...groups.values()];
}
