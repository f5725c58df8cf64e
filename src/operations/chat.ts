import { UserError } from '../domain/user-error.ts';
import type { Api } from './api.ts';
import { apiKeyFrom } from './api-key.ts';
import { chatWith } from './chat-stream.ts';
import { inputs } from './inputs.ts';
import { look } from './look.ts';
import type { Operation } from './operation.ts';
import { servicesOnNodes } from './services-on-nodes.ts';
import { unreachedSentences } from './unreached-sentences.ts';

/** `firstlight chat "…"`: one question to the model that serves, through the SSH connection to the head. */
export const chat: Operation<typeof inputs.chat> = {
  name: 'chat',
  summary: 'ask the model that serves',
  effect: 'reads',
  input: inputs.chat,
  async run(input, world) {
    const facts = await look(world, world.cluster.nodes, undefined);
    const head = servicesOnNodes(facts)
      .flatMap((job) => job.ranks)
      .find((rank) => rank.record.rank === 0 && rank.record.state !== 'ended');
    const [unseen] = facts.flatMap((node) => (node.reached ? [] : [node.failure]));
    if (head?.record.health === undefined && unseen !== undefined)
      throw new UserError(
        'not-serving',
        `whether a model serves is not known: ${unreachedSentences(facts).join(' ')}`,
        unseen.remedy,
      );
    if (head?.record.health === undefined)
      throw new UserError(
        'not-serving',
        'nothing that firstlight started serves on this cluster',
        'bring a model up with firstlight up RECIPE',
      );
    const api: Api = {
      host: world.hosts.of(head.node),
      ...head.record.health,
      model: head.record.servedName ?? head.record.recipe,
      key: apiKeyFrom(world, head.record.apiKeyEnv),
    };
    const result = await chatWith(world, api, {
      prompt: input.prompt,
      ...(input.system === undefined ? {} : { system: input.system }),
      maxTokens: input.maxTokens,
      onText: (part) => world.live({ kind: 'text', part: part.kind, text: part.text }),
    });
    if (result.kind === 'failed')
      throw new UserError(
        'not-serving',
        `the model did not answer: ${result.why}`,
        'firstlight status says how it is',
      );
    const { answer, reasoning, finish, firstTokenSeconds, tokensPerSecond, outputTokens } = result;
    return {
      report: { kind: 'chat', answer, reasoning, finish, firstTokenSeconds, tokensPerSecond, outputTokens },
      exit: 0,
    };
  },
};
