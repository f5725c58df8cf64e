import { UserError } from '../domain/user-error.ts';
import type { World } from './world.ts';

/** Value of the API key that this variable names, or undefined where none is asked for. UserError where it is not set here. */
export function apiKeyFrom({ secrets }: Pick<World, 'secrets'>, env: string | undefined): string | undefined {
  if (env === undefined) return undefined;
  const key = secrets.value(env);
  if (key === undefined || key === '')
    throw new UserError(
      'api-key-missing',
      `the API key is read from ${env}, and that is not set here`,
      `export ${env}=KEY and ask again`,
    );
  return key;
}
