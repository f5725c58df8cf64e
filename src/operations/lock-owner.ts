import type { World } from './world.ts';

/** How a controller is named in the locks that it holds: "aurora@laptop (pid 4242)". */
export function lockOwner({ user, host, pid }: World['controller']): string {
  return `${user}@${host} (pid ${pid})`;
}
