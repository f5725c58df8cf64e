import { readModel } from '../files/model-folder.ts';
import { describeModel, type ModelDescription } from '../knowledge/models/describe.ts';
import { sourcesOf } from '../knowledge/models/model-file.ts';
import { tensorsIn } from '../knowledge/models/safetensors.ts';

/** The model at a path of this computer, by the best of what lies there: headers, else the index, else file sizes. */
export function modelAt(path: string, index: string | undefined): ModelDescription {
  const disk = readModel(path, index);
  const sources = sourcesOf(disk.config, disk.name);
  const read = disk.headers?.map(tensorsIn);
  const whole = read?.every((tensors) => tensors !== undefined) === true;
  const exact =
    disk.indexBytes !== undefined
      ? ({ bytes: disk.indexBytes, from: 'index' } as const)
      : disk.fileBytes !== undefined
        ? ({ bytes: disk.fileBytes, from: 'files' } as const)
        : undefined;
  return describeModel({
    ...sources,
    modelopt: sources.modelopt ?? disk.modelopt,
    total: exact ?? sources.total,
    tensors: whole ? read?.flatMap((tensors) => tensors ?? []) : undefined,
  });
}
