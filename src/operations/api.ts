import type { Service } from '../domain/plan.ts';
import { type Recipe, servedName } from '../domain/recipe.ts';
import type { Host } from '../remote/host.ts';
import type { World } from './world.ts';

/** Where the model answers, and how to ask it. */
export type Api = {
  readonly host: Host;
  readonly address: string;
  readonly port: number;
  readonly model: string;
  readonly key: string | undefined;
};

/** Where the head's API answers, seen from the head itself. */
export function apiOf(
  world: World,
  recipe: Recipe,
  head: Pick<Service, 'node' | 'healthAddress' | 'healthPort'>,
): Api {
  return {
    host: world.hosts.of(head.node),
    address: head.healthAddress ?? '127.0.0.1',
    port: head.healthPort ?? recipe.serve.port,
    model: servedName(recipe),
    key: recipe.serve.apiKey ? world.secrets.value(recipe.serve.apiKey.env) : undefined,
  };
}

export function authorization(api: Api): Record<string, string> {
  return api.key === undefined ? {} : { Authorization: `Bearer ${api.key}` };
}
