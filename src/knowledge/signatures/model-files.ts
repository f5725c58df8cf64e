import { plainSignature } from './plain-signature.ts';
import { pattern } from './signature.ts';

/** The files are the hundred bytes that git leaves when git-lfs is not installed. */
export const lfsPointers = plainSignature({
  name: 'lfs-pointers',
  cause: 'weights-are-lfs-pointers',
  seenOn: 'vLLM 0.4, safetensors 0.4, 2025',
  source: 'safetensors tensor.rs',
  forms: [pattern('HeaderTooLarge', /SafetensorError: .*HeaderTooLarge/)],
  title: (found) => `The weight files on ${found.node} hold no weights`,
  why: 'Their first bytes are text: the repository was cloned without git-lfs, which leaves a pointer in place of each file.',
  advice: (found) => [`On ${found.node}, in the model's folder: ls -l *.safetensors; git lfs pull`],
  confidence: 0.85,
  specificity: 3,
});

/** A copy that broke off. */
export const weightsTruncated = plainSignature({
  name: 'weights-truncated',
  cause: 'weights-truncated',
  seenOn: 'safetensors 0.4, 2025',
  source: 'safetensors tensor.rs',
  forms: [
    pattern(
      ['MetadataIncompleteBuffer', 'InvalidHeaderDeserialization', 'InvalidHeaderLength', 'HeaderTooSmall'],
      /SafetensorError: .*(?:MetadataIncompleteBuffer|InvalidHeader\w+|HeaderTooSmall)/,
    ),
  ],
  title: (found) => `A weight file on ${found.node} is incomplete`,
  why: 'It is shorter than its own header says, as after a copy that broke off.',
  advice: (found) => [
    `Compare the sizes in the model's folder on ${found.node} with another node's, and copy again.`,
  ],
  confidence: 0.92,
  specificity: 3,
});
