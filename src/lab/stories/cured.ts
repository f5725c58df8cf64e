import type { Story, StoryHost, StoryImage } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** One thing that is broken on a pair of whole Sparks: what differs, how it is named, what cures it. */
export type Cured = {
  readonly name: string;
  readonly title: string;
  readonly cause: string;
  readonly remedy: string;
  /** The node that the finding names, where it names one. */
  readonly node?: 'spark-a' | 'spark-b';
  /** Keys of the recipe that differ; the first engine is the one that is cured. */
  readonly recipe: Story['recipe'] & { readonly engines: readonly string[] };
  /** What the engine's images differ in. */
  readonly images?: Partial<StoryImage>;
  readonly a?: Partial<StoryHost>;
  readonly b?: Partial<StoryHost>;
  readonly shares?: Story['shares'];
  readonly timeline?: Story['timeline'];
  readonly consents?: Story['consents'];
};

/** The story of it: named, cured once, proved, and served by the engine that was asked for. */
export function cured(row: Cured): Story {
  const { name, title, cause, remedy, node, a = {}, b = {}, timeline = [], consents = [] } = row;
  return {
    name,
    title,
    cluster: 'sparks',
    hosts: [spark('a', a), spark('b', b)],
    images: images().map((image) => ({ ...image, ...row.images })),
    firewall: [],
    ...(row.shares === undefined ? {} : { shares: row.shares }),
    recipe: recipe({ network: 'auto', ...row.recipe }),
    timeline,
    consents,
    passwords: {},
    expect: {
      events: [
        { type: 'finding', cause, ...(node === undefined ? {} : { node }) },
        { type: 'remedy-applied', remedy },
        { type: 'remedy-proved', cause },
        { type: 'run-ended', outcome: 'serving' },
      ],
      outcome: 'serving',
      restored: false,
    },
  };
}
