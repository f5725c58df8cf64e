import type { Event } from '../../domain/event.ts';
import { quotePlainly } from '../../domain/quote.ts';
import { consentCommand } from '../../domain/run-words.ts';
import { inGib } from './short.ts';

export type Asked = Extract<Event, { type: 'consent-asked' }>;

/** The steps that a person has to allow, and every way in which a person can: an agent has none. */
export function howToAllow(asked: Asked, file: string, clusterFile: string, waits: boolean) {
  const ids = asked.steps.map((step) => step.id);
  const rules = asked.steps.map(
    ({ node, target }) =>
      `  - {node: ${node}, kind: ${target.kind}, name: ${JSON.stringify(target.name)}, user: ${JSON.stringify(target.user)}}`,
  );
  return {
    run: asked.run,
    plan: asked.plan,
    steps: asked.steps.map(({ id, node, title, target, undo }) => ({
      id,
      node,
      title,
      holds: `${target.what}, ${inGib(target.bytes)} GiB`,
      user: target.user,
      comesBack:
        undo.kind === 'command'
          ? undo.title
          : undo.kind === 'irreversible'
            ? `never: ${undo.why}`
            : 'nothing to give back',
    })),
    how: [
      ...(waits
        ? [
            `While this run waits, a person answers in a terminal on this machine: ${consentCommand(asked.run, ids)}`,
            'or on the page of firstlight serve, in the card that asks.',
          ]
        : [
            'Call up again with waitForConsentSeconds, and ask the person to answer meanwhile: in a terminal with firstlight consent RUN ID…, or on the page of firstlight serve.',
            `Or the person starts it: firstlight up ${quotePlainly(file)} --consent ${ids.join(',')}`,
          ]),
      `Or the owner of this cluster writes, by hand, policy.yaml beside ${clusterFile}:\nallow:\n${rules.join('\n')}`,
    ],
  };
}
