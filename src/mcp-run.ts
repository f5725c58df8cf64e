import { serveStdio } from './faces/mcp/stdio.ts';
import type { Answer } from './operations/operation.ts';
import type { World } from './operations/world.ts';
import { followFile } from './serve-run.ts';

/** `firstlight mcp`, joined: stdout belongs to the protocol, what is told of runs goes to stderr. */
export async function runMcp(outer: World): Promise<Answer> {
  const world = followFile(outer);
  await serveStdio({ world, readOnly: false, version: outer.version }, outer.signal);
  return { report: { kind: 'said', text: '' }, exit: 0 };
}
