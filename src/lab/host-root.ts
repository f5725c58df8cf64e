import { join } from 'node:path';
import { imagePath } from './engine-container.ts';
import { shareFolder, writeFiles, writeHostFiles } from './host-files.ts';
import { imagesOf } from './images.ts';
import { writeModel, writeSnapshot } from './model-files.ts';
import type { LabInterface } from './network-table.ts';
import type { Story, StoryHost } from './story.ts';

/** All that lies below a host's root when its story begins: the system's files, models, images and shares. */
export function writeRoot(
  root: string,
  story: Story,
  host: StoryHost,
  interfaces: readonly LabInterface[],
  seed: string,
): void {
  writeHostFiles(root, story, host, interfaces, seed);
  const path = story.recipe['path'];
  if (host.hasModel && typeof path === 'string') writeModel(join(root, path), host);
  for (const repository of host.hubCache ?? [])
    writeSnapshot(join(root, 'home', host.user, '.cache/huggingface'), repository);
  const ofImages = imagesOf(story, host).flatMap((image) =>
    Object.entries(image.files).map(([file, text]) => [imagePath(image, file), text] as const),
  );
  writeFiles(root, [...Object.entries(host.files ?? {}), ...ofImages]);
  for (const share of story.shares ?? []) shareFolder(root, share);
}
