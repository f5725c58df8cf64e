import { inOrder, sameLog, whoSaid } from '../line-signature.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

/** A setting that was refused is no bug. */
const REFUSED =
  /not (?:yet )?support|unsupported|only support|requires?\b|must (?:be|have|not|match)|cannot be|should be|not allowed|incompatible|is not (?:available|valid|implemented)|invalid|expected|mismatch.{0,600}config|has no|unknown|missing|is set but|got /i;

/** What Python prints of the place of an error, and engines of their drafting. */
const drafting = pattern(
  [
    'spec_decode',
    'speculative',
    'peculative',
    'eagle',
    'EAGLE',
    'Eagle',
    'mtp',
    'MTP',
    'draft',
    'ngram',
    'medusa',
    'dflash',
    'DFlash',
    'nextn',
    'rejection_sampl',
  ],
  /spec_decode|[Ss]peculative(?:[_ ](?:config|decod|algorithm|worker|token|draft))?|\b[Ee][Aa][Gg][Ll][Ee]\d?\b|eagle_worker|\bmtp\b|\bMTP\b|_mtp\b|draft[_ ](?:model|token|probs|worker|runner)|num_draft|ngram_(?:proposer|worker)|medusa|[Dd][Ff]lash|nextn|rejection_sampl/,
);
const error = pattern(
  ['Error', 'Exception', 'assert ', 'Assertion'],
  /(?:^|[\])] |: )(?:\[rank\d+\]: ?)?(?:\w{1,80}\.)*(?<kind>AssertionError|IndexError|KeyError|ValueError|TypeError|AttributeError|NotImplementedError|RuntimeError|AcceleratorError|RuntimeException|UnboundLocalError|ZeroDivisionError)\b(?::|$)|Assertion `.{0,600}` failed/,
);
const inSource = pattern(
  'File "',
  /File "[^"]{0,400}(?:spec_decode|speculative|eagle\w{0,80}|mtp|medusa|dflash|ngram_proposer|rejection_sampler|draft\w{0,80})[^"]{0,400}\.py"|File "[^"]{0,400}\.py", line \d+, in _?(?:propose|draft|verify|speculative|rejection_sampl)\w{0,80}/i,
);

/** Causes with words of their own; where they are said it is they. */
const OTHER =
  /out of memory|No such file|Permission|Connection|timed out|no kernel image|not divisible|not supported for now|attention backend|Free memory|KV cache is needed|address already|NCCL|illegal memory|illegal instruction/i;

/** An error out of the code that drafts and verifies tokens: a bug of this version of the engine. */
export const speculativeBug: Signature = {
  name: 'speculative-bug',
  causes: ['engine-bug-speculative-decoding'],
  seenOn: 'vLLM 0.8 to 0.32, SGLang 0.4 to 0.5.23',
  source: 'vLLM v1/spec_decode and v1/sample/rejection_sampler.py; SGLang speculative/',
  whileServing: true,
  patterns: [drafting, error, inSource],
  looks: ['File "…/vllm/v1/spec_decode/eagle.py", line 412, in propose', 'AssertionError'],
  match(view) {
    const frames = view.find(inSource);
    const errors = inOrder([error], view);
    const worded = errors.find(
      (found) =>
        !OTHER.test(found.message) &&
        !REFUSED.test(found.message) &&
        /speculative|spec[_ ]decod|\bdraft|\beagle|\bmtp\b|accepted token|propos|rejection sampl/i.test(
          found.message,
        ),
    );
    const beside = errors.find(
      (found) => !OTHER.test(found.message) && frames.some((frame) => near(frame, found)),
    );
    const crash = errors.find(
      (found) =>
        /illegal memory|illegal instruction|device-side assert/.test(found.message) &&
        frames.some((frame) => near(frame, found)),
    );
    const first = worded ?? beside ?? crash;
    if (first === undefined) return whileDrafting(view, errors);
    const frame = frames.find((one) => near(one, first));
    const hint = view.find(drafting).find((found) => sameLog(found, first) && found.line !== first.line);
    if (frame === undefined && worded === undefined) return undefined;
    const place = whoSaid(first, [first], view);
    return {
      cause: 'engine-bug-speculative-decoding',
      ...place,
      shown: [
        first,
        ...(frame === undefined ? [] : [frame]),
        ...(frame === undefined && hint !== undefined ? [hint] : []),
      ],
      title: `Speculative decoding fails in this version of the engine on ${place.node ?? 'every node'}`,
      why: 'The error comes out of the code that drafts tokens or checks them.',
      advice: [
        'Start without it: leave --speculative-config (vLLM) or --speculative-algorithm (SGLang) out of args; answers stay the same, only slower.',
        'Or use a newer image; give the error to its makers.',
      ],
      confidence: frame !== undefined ? (crash === first ? 0.66 : 0.78) : 0.62,
      specificity: frame !== undefined ? 3 : 2,
    };
  },
};

/** The log shows that drafts are made, and an error of shapes and indices that nothing else explains. */
const DRAFTS =
  /speculative_config['"]?[:=] ?(?:\{|SpeculativeConfig)|--speculative|speculative_algorithm['"]?[:=] ?['"]\w|SpecDecoding metrics|accept len: \d|num_speculative_tokens['"]?[:=] ?\d/;
const SHAPES =
  /AssertionError|IndexError|(?:RuntimeError|ValueError).{0,600}(?:size of tensor|shape|expanded size|index \d+|out of bounds|must match)|device-side assert/;

function whileDrafting(view: View, errors: readonly Found[]): Match | undefined {
  const first = errors.find(
    ({ message, stage }) =>
      SHAPES.test(message) &&
      !OTHER.test(message) &&
      !/divisible|world.size|tp_size|% /.test(message) &&
      ['kv', 'graphs', 'warmup', 'serving'].includes(stage),
  );
  const drafts = view.find(drafting).find(({ message }) => DRAFTS.test(message));
  if (first === undefined || drafts === undefined) return undefined;
  const place = whoSaid(first, [first], view);
  return {
    cause: 'engine-bug-speculative-decoding',
    ...place,
    shown: [first, drafts],
    title: `The engine on ${place.node ?? 'every node'} fails, perhaps in its speculative decoding`,
    why: 'Shapes or indices do not fit, in a server that drafts tokens; no line says more.',
    advice: [
      'Start without speculation once: leave --speculative-config (vLLM) or --speculative-algorithm (SGLang) out of args.',
      'If it fails the same way then, it is another bug of this version: use a newer image.',
    ],
    confidence: 0.55,
    specificity: 1,
  };
}

function near(frame: Found, found: Found): boolean {
  const gap = found.line.line - frame.line.line;
  return sameLog(frame, found) && gap >= 0 && gap <= 25;
}
