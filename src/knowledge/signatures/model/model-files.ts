import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

const pointerText = pattern(
  [
    'git-lfs.github.com/spec',
    'without having git-lfs installed',
    'should have been pointers',
    'invalid load key',
  ],
  /git-lfs\.github\.com\/spec|without having git-lfs installed|should have been pointers|invalid load key, 'v'/,
);

/** The files are the hundred bytes that git leaves when git-lfs is not installed. */
export const lfsPointers = lineSignature({
  name: 'lfs-pointers',
  cause: 'weights-are-lfs-pointers',
  seenOn: 'vLLM 0.4, safetensors 0.3 to 0.7, torch 2, transformers 4 and 5',
  source:
    'safetensors tensor.rs; torch serialization.py; transformers modeling_utils.py; git-lfs pointer spec',
  forms: [
    pattern(
      ['HeaderTooLarge', 'header too large'],
      /(?:SafetensorError|deserializing header|[Ee]rror).{0,600}(?:HeaderTooLarge|header too large)/,
    ),
    pointerText,
    pattern(
      ['(134 bytes', '(135 bytes', ' 134 ', ' 135 ', ' 133 ', ' 136 '],
      /(?:^| )13[3-6] .{0,600}\.(?:safetensors|bin|gguf)\b|\.(?:safetensors|bin|gguf)\b.{0,600}\b13[3-6] bytes/,
    ),
  ],
  title: (_found, where) => `The weight files on ${where} hold no weights`,
  why: 'Their first bytes are text: the repository was cloned without git-lfs, which leaves a pointer of about 130 bytes in place of each file.',
  advice: (_found, where) => [
    `On ${where}, in the model's folder: ls -l *.safetensors; git lfs install && git lfs pull`,
    'Or fetch it anew: hf download MODEL --local-dir THE_FOLDER. firstlight plan then shows the size of the whole model.',
  ],
  confidence: ({ message }) => (/git-lfs|load key|pointers/.test(message) ? 0.96 : 0.86),
  specificity: 3,
  looks: ['safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge'],
});

/** A copy or a download that broke off. */
export const weightsTruncated = lineSignature({
  name: 'weights-truncated',
  cause: 'weights-truncated',
  seenOn: 'safetensors 0.3 to 0.7, torch 2.x, huggingface_hub 0.34 and 1.0',
  source:
    'safetensors tensor.rs; torch serialization.py and caffe2/serialize; huggingface_hub file_download.py',
  forms: [
    pattern(
      [
        'MetadataIncompleteBuffer',
        'InvalidHeader',
        'HeaderTooSmall',
        'incomplete metadata',
        'header too small',
        'invalid header',
        'invalid JSON in header',
        'invalid UTF-8 in header',
      ],
      /(?:SafetensorError|deserializing header|[Ee]rror).{0,600}(?:MetadataIncompleteBuffer|InvalidHeader\w{0,80}|HeaderTooSmall|incomplete metadata|header too small|invalid (?:header|JSON in header|UTF-8 in header))/,
    ),
    pattern(
      [
        'failed finding central directory',
        'unexpected EOF, expected',
        'pickle data was truncated',
        'Ran out of input',
        'file might be corrupted',
      ],
      /failed finding central directory|unexpected EOF, expected (?<missing>\d+) more bytes|pickle data was truncated|EOFError: Ran out of input|file might be corrupted/,
    ),
    pattern(
      ['Consistency check failed', 'hecksum mismatch', 'hash mismatch', 'ize mismatch', 'sha256'],
      /Consistency check failed: file should be of size (?<expected>\d+) but has size (?<size>\d+)(?: \((?<file>[^)]{1,400})\))?|(?:[Cc]hecksum|[Hh]ash|sha256).{0,40}(?:mismatch|does not match|failed).{0,600}(?:safetensors|\.bin|gguf|shard)|(?:safetensors|\.bin|gguf|shard)\S{0,300}.{0,80}(?:[Cc]hecksum|[Hh]ash|sha256).{0,20}(?:mismatch|does not match|failed)/,
    ),
    pattern(
      ['data offset', 'shorter than', 'is incomplete', 'truncated'],
      /(?:safetensors|\.bin|gguf|shard)\S{0,300}.{0,80}(?:is (?:truncated|incomplete|corrupt)|shorter than|beyond the end of)|tensor '[^']{1,400}' data is not within the file bounds/,
    ),
  ],
  unless: [pointerText],
  title: ({ groups }, where) =>
    `A weight file on ${where} is incomplete${groups['file'] ? `: ${groups['file']}` : ''}`,
  why: 'It is shorter than its own header says, as after a copy that broke off or a full disk.',
  advice: (_found, where) => [
    `Compare sizes with another node, in the model's folder on ${where}: ls -l *.safetensors; df -h .`,
    'Copy again what differs: rsync -a --checksum, or hf download MODEL --local-dir THE_FOLDER, which fetches what is missing.',
  ],
  confidence: 0.92,
  specificity: 3,
  looks: ['safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer'],
});
