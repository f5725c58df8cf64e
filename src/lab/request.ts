import { z } from 'zod';

/** What `protocol.ts` says, checked at the door. */
export const request = z.discriminatedUnion('op', [
  z.object({
    op: z.literal('hello'),
    token: z.string(),
    host: z.string(),
    pid: z.number().int(),
    ppid: z.number().int(),
    uid: z.string(),
    argv: z.array(z.string()),
  }),
  z.object({
    op: z.literal('tool'),
    tool: z.string(),
    argv: z.array(z.string()),
    stdin: z.string(),
    stdinEnded: z.boolean().optional(),
    cwd: z.string().optional(),
    env: z.record(z.string(), z.string()),
  }),
  z.object({ op: z.literal('signal'), signal: z.string() }),
  z.object({ op: z.literal('holder') }),
  z.object({ op: z.literal('hold'), bytes: z.number().min(0), gpu: z.boolean() }),
  z.object({ op: z.literal('stage'), bytes: z.number().min(0), program: z.string().optional() }),
  z.object({ op: z.literal('memory') }),
  z.object({ op: z.literal('read-files'), bytes: z.number().min(0) }),
  z.object({ op: z.literal('resolve'), name: z.string() }),
  z.object({ op: z.literal('ask-hub') }),
  z.object({ op: z.literal('asked') }),
  z.object({ op: z.literal('interface'), name: z.string() }),
  z.object({ op: z.literal('route') }),
  z.object({
    op: z.literal('listen'),
    address: z.string(),
    port: z.number().int(),
    realPort: z.number().int(),
  }),
  z.object({ op: z.literal('dial'), address: z.string(), port: z.number().int() }),
]);

export type Request = z.output<typeof request>;
export type Hello = Extract<Request, { op: 'hello' }>;
