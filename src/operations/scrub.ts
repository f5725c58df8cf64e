import type { World } from './world.ts';

/**
 * Takes every secret value that is known by then out of a text, also as JSON writes it; one under four characters
 * would take words with it.
 */
export function scrubber(
  world: Pick<World, 'secrets'>,
  more: readonly string[] = [],
): (text: string) => string {
  return (text) =>
    [...world.secrets.all(), ...more]
      .filter((secret) => secret.length >= 4)
      .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
      .reduce((rest, secret) => rest.replaceAll(secret, '•••'), text);
}
