import { z } from 'zod';
import { aside } from '../../../operations/begin.ts';
import { chat } from '../../../operations/chat.ts';
import { newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { leftOut } from './shapes.ts';

const LONGEST = 8000;
const TELL_CHARACTERS = 400;

const input = z.strictObject({
  prompt: z
    .string()
    .min(1)
    .max(20_000)
    .refine((text) => /\S/.test(text), 'it asks nothing'),
  system: z.string().max(20_000).optional(),
  maxTokens: z.number().int().min(1).max(8192).default(512),
});
const output = z.strictObject({
  answer: z.string(),
  reasoning: z.string(),
  finish: z.string(),
  firstTokenSeconds: z.number().optional(),
  tokensPerSecond: z.number().optional(),
  outputTokens: z.number().optional(),
  left_out: leftOut,
});

/** One question to the model that serves. */
export const chatTool: Tool<typeof input, typeof output> = {
  name: 'chat',
  title: 'Ask the model that serves',
  about:
    'One question to the model that serves on the cluster, with its reasoning apart from the answer. Nothing is changed or kept; the model spends GPU time on it. Not offered by a server that only shows.',
  input,
  output,
  effect: 'uses',
  async run({ prompt, system, maxTokens }, { client, signal, progress }) {
    let said = 0;
    let told = 0;
    const world = aside(client.world(), {
      signal,
      face: 'through an agent',
      live: (update) => {
        if (update.kind !== 'text') return;
        said += update.text.length;
        if (said - told < TELL_CHARACTERS) return;
        told = said;
        progress(`${said} characters so far`);
      },
    });
    const { report } = await chat.run({ prompt, system, maxTokens }, world);
    if (report.kind !== 'chat') throw new Error('chat gave another report');
    const out = newLeftOut();
    const answer = out.cut(report.answer, LONGEST, 'the answer', 'ask for less, or with fewer maxTokens');
    return {
      say: answer,
      data: {
        answer,
        reasoning: out.cut(report.reasoning, LONGEST / 2, 'the reasoning', 'it is not kept'),
        finish: report.finish,
        ...(report.firstTokenSeconds === undefined ? {} : { firstTokenSeconds: report.firstTokenSeconds }),
        ...(report.tokensPerSecond === undefined ? {} : { tokensPerSecond: report.tokensPerSecond }),
        ...(report.outputTokens === undefined ? {} : { outputTokens: report.outputTokens }),
        left_out: [...out.said],
      },
    };
  },
};
