import { UserError } from '../../domain/user-error.ts';
import { suggest } from '../../files/suggest.ts';
import type { Story } from '../story.ts';
import { vary } from '../vary.ts';
import { cleanStart } from './clean-start.ts';
import { comesBack } from './comes-back.ts';
import { cured } from './cured.ts';
import { curedAddresses } from './cured-addresses.ts';
import { curedFabric } from './cured-fabric.ts';
import { curedImages } from './cured-images.ts';
import { curedMemory } from './cured-memory.ts';
import { curedModels } from './cured-models.ts';
import { curedMoments } from './cured-moments.ts';
import { curedSettings } from './cured-settings.ts';
import { engineFallback, modelUnknown } from './engine-fallback.ts';
import { engineFallbackRay } from './engine-fallback-ray.ts';
import { guarded } from './guarded.ts';
import { lateHolder } from './late-holder.ts';
import { linkGone, lostLink } from './lost-link.ts';
import { misleadingSmi } from './misleading-smi.ts';
import { modelMissing } from './model-missing.ts';
import { nothingHelps } from './nothing-helps.ts';
import { twoSparks } from './two-sparks.ts';
import { headRebooted, workerKilled } from './while-serving.ts';

/** Each breaks one thing, has it named, cured and proved, and serves. */
export const curedStories: readonly Story[] = [
  ...curedImages,
  ...curedModels,
  ...curedMoments,
  ...curedSettings,
  ...curedMemory,
  ...curedAddresses,
  ...curedFabric,
].map(cured);

export const stories: readonly Story[] = [
  twoSparks,
  cleanStart,
  lateHolder,
  guarded,
  nothingHelps,
  comesBack,
  engineFallback,
  engineFallbackRay,
  modelUnknown,
  ...curedStories,
  modelMissing,
  misleadingSmi,
  lostLink,
  linkGone,
  headRebooted,
  workerKilled,
];

/** The story of that name; with a seed other than 1, under other names, addresses and sizes. Throws UserError for an unknown name. */
export function findStory(name: string, seed = 1): Story {
  const story = stories.find((candidate) => candidate.name === name);
  if (story === undefined) {
    const names = stories.map((one) => one.name);
    const near = suggest(name, names);
    throw new UserError(
      'bad-input',
      `there is no story ${JSON.stringify(name)}${near === undefined ? '' : `; did you mean ${near}?`}`,
      near === undefined ? `stories are: ${names.join(', ')}` : 'firstlight lab list shows them all',
    );
  }
  return seed === 1 ? story : vary(story, seed);
}
