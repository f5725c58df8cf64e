import { readModel } from '../files/model-folder.ts';
import { describeModel, type ModelDescription } from '../knowledge/models/describe.ts';
import { configOfGguf, readGguf } from '../knowledge/models/gguf.ts';
import { sourcesOf } from '../knowledge/models/model-file.ts';
import { tensorsIn } from '../knowledge/models/safetensors.ts';

/** The model at a path of this computer, by the best of what lies there: headers, else the index, else file sizes. */
export function modelAt(path: string, index: string | undefined): ModelDescription {
  const disk = readModel(path, index);
  const heads = disk.gguf.map(({ head, bytes }) => readGguf(head, bytes));
  const gguf = heads.every((head) => head !== undefined) ? heads : [];
  const own = gguf.find((head) => head.metadata['general.architecture'] !== undefined);
  // A config.json beside it says more than the file's own metadata does.
  const config = own === undefined ? disk.config : { ...configOfGguf(own), ...disk.config };
  const sources = sourcesOf(config, disk.name);
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
    tensors:
      gguf.length > 0
        ? gguf.flatMap((head) => head.tensors)
        : whole
          ? read?.flatMap((tensors) => tensors ?? [])
          : undefined,
  });
}
