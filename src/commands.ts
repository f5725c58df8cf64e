import { lab } from './lab-operation.ts';
import { mcp } from './mcp-operation.ts';
import { operations } from './operations/index.ts';
import { serve } from './serve-operation.ts';

/** Every command of firstlight: the verbs, the servers of its other faces, and the lab. */
export const commands = [...operations, serve, mcp, lab] as const;
