import { hex, randomOf } from './random.ts';
import type { Story, StoryHost } from './story.ts';

export type LabImage = {
  readonly reference: string;
  readonly id: string;
  readonly arch: string;
  readonly bytes: number;
  readonly entrypoint: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly engine: 'sglang' | 'vllm' | undefined;
  /** What the image's own start scripts take out of the environment before the engine sees it. */
  readonly unsets: readonly string[];
  /** Programs that are missing in it, and flags (`--nnodes`) that its engine is too old for. */
  readonly lacks: readonly string[];
  readonly requires: readonly string[];
  readonly startsAgain: boolean;
  readonly nccl: string | undefined;
  readonly files: Readonly<Record<string, string>>;
};

/** All images that a host has: the story's, for engines, and those of its containers. */
export function imagesOf(story: Story, host: StoryHost): readonly LabImage[] {
  const engines = story.images.map(
    ({
      engine,
      reference,
      arch,
      unsets,
      lacks = [],
      requires = [],
      startsAgain = false,
      nccl,
      files = {},
    }): LabImage => ({
      reference,
      id: idOf(reference),
      arch,
      bytes: 24_300_000_000,
      entrypoint: ['/opt/nvidia/nvidia_entrypoint.sh'],
      labels: { 'org.opencontainers.image.version': reference.slice(reference.lastIndexOf(':') + 1) },
      engine,
      unsets,
      lacks,
      requires,
      startsAgain,
      nccl,
      files,
    }),
  );
  const others = host.holders.flatMap((holder): LabImage[] =>
    holder.kind === 'container'
      ? [
          {
            reference: holder.image,
            id: idOf(holder.image),
            arch: 'arm64',
            bytes: 9_800_000_000,
            entrypoint: [],
            labels: {},
            engine: undefined,
            unsets: [],
            lacks: [],
            requires: [],
            startsAgain: false,
            nccl: undefined,
            files: {},
          },
        ]
      : [],
  );
  return [...engines, ...others];
}

/** The same content has the same id on every host. */
function idOf(reference: string): string {
  return `sha256:${hex(randomOf(`image:${reference}`), 64)}`;
}

/** By reference, whole id, or the beginning of one. */
export function imageNamed(images: readonly LabImage[], reference: string): LabImage | undefined {
  return images.find(
    (image) =>
      image.reference === reference ||
      image.id === reference ||
      (reference.length >= 12 && image.id.startsWith(`sha256:${reference}`)),
  );
}
