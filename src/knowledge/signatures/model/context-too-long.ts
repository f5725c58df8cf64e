import { plainSignature } from '../plain-signature.ts';
import { pattern } from '../signature.ts';

/** More context was asked for than the model was trained for. `values.estimate` is the model's own limit. */
export const contextTooLong = plainSignature({
  name: 'context-too-long',
  cause: 'context-longer-than-model',
  seenOn: 'SGLang 0.5.18, vLLM 0.28, August 2026',
  source: 'SGLang configs/model_config.py; vLLM config/model.py',
  forms: [
    pattern(
      ['User-specified context_length', 'User-specified max_model_len'],
      /User-specified (?:context_length|max_model_len) \((?<context>\d+)\) is greater than the derived (?:context_length \(|max_model_len \(max_position_embeddings=)(?<estimate>\d+)/,
    ),
  ],
  title: ({ node, groups }) =>
    `${node} cannot begin: the model's context ends at ${groups['estimate'] ?? ''} tokens, and ${groups['context'] ?? ''} are asked for`,
  why: 'Beyond the length it was trained for a model answers wrongly, so the engine refuses.',
  advice: ({ groups }) => [
    `Set context: ${groups['estimate'] ?? ''} in the recipe, or less.`,
    "Where the model's card tells how to stretch it (YaRN), set that in args of the engine.",
  ],
  confidence: 0.97,
  specificity: 3,
});
