import { z } from 'zod';
import { nowLine } from '../../../domain/now-line.ts';
import { begin } from '../../../operations/begin.ts';
import { recipeBeside } from '../../../operations/recipes.ts';
import { up } from '../../../operations/up.ts';
import { howToAllow } from '../ask-person.ts';
import { findingOf } from '../findings.ts';
import { followRun } from '../follow-run.ts';
import { newLeftOut } from '../short.ts';
import type { Tool } from '../tool.ts';
import { consentNeeded, digest, finding, leftOut, owed, recipeName } from './shapes.ts';

const input = z.strictObject({
  recipe: recipeName,
  plan: digest.optional().describe('digest that the tool plan showed you for this recipe'),
  waitForConsentSeconds: z
    .number()
    .int()
    .min(0)
    .max(3600)
    .default(0)
    .describe('how long to wait for a person to allow steps on foreign work; 0 ends at once and says how'),
  answerAfterSeconds: z
    .number()
    .int()
    .min(1)
    .max(7200)
    .default(3600)
    .describe('answer then even if it still goes on; status tells the rest'),
});
const output = z.strictObject({
  run: z.string().optional(),
  outcome: z.string().describe('serving, not-serving, consent-needed, cancelled, nothing-to-do, or goes-on'),
  now: z.string(),
  why: z.string(),
  serving: z
    .strictObject({
      model: z.string(),
      engine: z.string(),
      head: z.string(),
      port: z.number(),
      answer: z.string(),
      firstTokenSeconds: z.number().optional(),
      tokensPerSecond: z.number().optional(),
    })
    .optional(),
  finding: finding.optional(),
  cured: z.array(z.string()).describe('remedies that were proved'),
  consent: consentNeeded.optional(),
  owed,
  left_out: leftOut,
});

/** The whole bring-up, under the plan that was shown; foreign work waits for a person. */
export const upTool: Tool<typeof input, typeof output> = {
  name: 'up',
  title: 'Bring the model up',
  about:
    "Carries the plan out, starts every rank, follows them, cures what it can, and proves the answer. Takes minutes; tells its progress. Needs the digest that plan showed you. Steps that stop somebody's work run only with a person's consent given elsewhere, or by the owner's policy file: you cannot give it.",
  input,
  output,
  effect: 'asks',
  async run(given, { client, signal, progress }) {
    client.mustChange();
    const world = client.world();
    const path = recipeBeside(world, given.recipe);
    client.mustHaveSeen(
      `up ${path}`,
      given.plan,
      `call plan with recipe ${given.recipe} and hand its digest on`,
    );
    const waits = given.waitForConsentSeconds > 0;
    const impatient = new AbortController();
    const begun = begin(
      world,
      up,
      { recipe: path, consent: [], plan: given.plan, replace: false, wait: waits, anew: false },
      { signal: AbortSignal.any([signal, impatient.signal]), face: 'through an agent' },
    );
    const { run, state, asked, answer } = await followRun(world, begun, {
      work: client.work,
      seconds: given.answerAfterSeconds,
      tell: progress,
      saw: ({ asked: question }) => {
        const since = question === undefined ? undefined : world.clock.now() - Date.parse(question.at);
        if (waits && since !== undefined && since > given.waitForConsentSeconds * 1000)
          impatient.abort(new Error('nobody answered'));
      },
    });
    const out = newLeftOut();
    const ended = state.ended;
    const now = nowLine(state, world.clock.now());
    const sentence = `${now.glyph} ${now.sentence}`.trim();
    const missing =
      asked?.steps.some((step) => !state.consented.includes(step.id)) === true ? asked : undefined;
    const outcome = ended?.outcome ?? (answer === undefined ? 'goes-on' : 'ended');
    const unanswered = missing !== undefined && impatient.signal.aborted;
    const why = unanswered
      ? `nobody answered within ${given.waitForConsentSeconds} s; nothing of these was stopped`
      : (ended?.why ?? 'it goes on; ask status, or logs');
    return {
      say: `${run === undefined ? '' : `Run ${run}: `}${unanswered ? '' : `${sentence}. `}${why}.`,
      failed: ended !== undefined && ended.exit !== 0 && ended.outcome !== 'consent-needed' && !unanswered,
      data: {
        ...(run === undefined ? {} : { run }),
        outcome: unanswered ? 'consent-needed' : outcome,
        now: sentence,
        why,
        ...(state.serving === undefined
          ? {}
          : {
              serving: {
                model: state.serving.model,
                engine: state.serving.engine,
                head: state.serving.head,
                port: state.serving.port,
                answer: out.cut(state.serving.answer, 600, 'the answer', 'ask with chat'),
                ...(state.measured === undefined
                  ? {}
                  : {
                      firstTokenSeconds: state.measured.firstTokenSeconds,
                      tokensPerSecond: state.measured.tokensPerSecond,
                    }),
              },
            }),
        ...(state.finding === undefined ? {} : { finding: findingOf(state.finding, out) }),
        cured: state.attempts.flatMap(({ remedy }) =>
          remedy?.state === 'proved' ? [`${remedy.cause}: ${remedy.title}`] : [],
        ),
        ...(missing ? { consent: howToAllow(missing, path, world.clusterFile, ended === undefined) } : {}),
        owed: (ended?.owed ?? []).map(({ node, id, title }) => ({ node, id, title })),
        left_out: [...out.said, 'the log; logs and evidence show it'],
      },
    };
  },
};
