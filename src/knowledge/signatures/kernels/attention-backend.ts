import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** The chosen attention backend, or the one that was left over, cannot serve this model on this GPU. */
export const attentionBackend = lineSignature({
  name: 'attention-backend',
  cause: 'attention-backend-unsupported',
  seenOn: 'vLLM 0.8 to 0.32, SGLang 0.4.6 to 0.5.23',
  source:
    'vLLM platforms/cuda.py, v1/attention/backend.py and backends; SGLang server_args.py and hybrid_linear_attn_backend.py; flashinfer fmha',
  forms: [
    pattern(
      ['is not valid for this configuration', 'No valid attention backend', 'Invalid attention backend'],
      /Selected backend (?:\w{1,80}\.)?(?<backend>\w{1,80}) is not valid for this configuration|No valid attention backend|Invalid attention backend(?: for \w{1,80})?,?:? ?'?(?<other>\w{1,80})?/,
    ),
    pattern(
      ['attention sinks', 'Sinks are only supported', 'does not support sinks', 'support sink'],
      /(?:does not|doesn't|not)(?: currently)? support(?:s|ed)?\b.{0,600}\bsinks?\b|attention sinks? (?:is|are)? ?not supported|Sinks are only supported|sinks?.{0,600}only supported (?:in|with|by)/i,
    ),
    pattern(
      ['supported backend', 'to specify the backend'],
      /(?:only supported backends?|supported backends? (?:on|are|is)).{0,600}?(?:--attention-backend (?<meant>\w{1,80}))|use --attention-backend (?<use>\w{1,80})(?: or --attention-backend \w{1,80})* to specify the backend/,
    ),
    pattern(
      ['attention backend', 'Attention backend', 'AttentionBackend'],
      /(?:requires one of (?<choices>.{1,200}) attention backend|[Aa]ttention ?[Bb]ackend\b.{0,600}(?:is not (?:supported|compatible|available)|not support(?:ed)?\b|only support|incompatible)|(?:is not supported|not compatible|unsupported) (?:by|with|in|for) (?:the )?(?<name>\w{1,80}) attention backend)/,
    ),
    pattern(
      [
        'backend is only supported on',
        'Backend requires SM',
        'backend requires',
        'backend is not supported on',
      ],
      /(?<backend>TRTLLM MHA|TRTLLM MLA|CuteDSL MLA|Cutlass MLA|FlashAttention v[34]|FA[34]|[Ff]lash(?:Attention|infer|mla)\w{0,80}|FLASHMLA|'fa[34]'|hpc_ops|XQA)(?: \w{1,80})* [Bb]ackend(?: for \w{1,80})? (?:is only supported on|requires|is not supported on)/,
    ),
    pattern(
      ['is only supported on', 'only supports Ampere', 'is not supported by ', 'only supported on sm'],
      /(?<backend>FA[234]|Flash ?Attention\w{0,80}|FlashMLA[\w ]{0,400}|XQA(?: MLA)?|flash_attn at sgl-kernel|FlashInfer\w{0,80}) is only supported on|Flash ?Attention only supports Ampere|[Hh]ead (?:size|dim(?:ension)?) (?<head>\d+) is not supported by (?<by>\w{1,80})/,
    ),
    pattern(
      ['TllmGenFmhaRunner', 'trtllm_paged_attention', 'Missing TRTLLM-GEN kernel', 'FMHA', 'fmha'],
      /TllmGenFmhaRunner.{0,600}Unsupported architecture|Missing TRTLLM-GEN kernel|(?:fmha|FMHA|paged_attention).{0,600}(?:[Uu]nsupported (?:architecture|arch|SM)|is not supported on)/,
    ),
    pattern(
      ['GDN', 'gdn', 'linear-attn', 'linear attn', 'linear_attn'],
      /(?:AssertionError|ValueError|NotImplementedError).{0,600}(?:hybrid GDN|GDN (?:attention|prefill|backend)|gdn[-_ ](?:prefill[-_ ])?backend|linear[-_ ]attn[-_ ]backend)/,
    ),
  ],
  counts: ({ message, line }) =>
    !/At this moment|[Mm]oE|to be installed|pip install|speculative decoding|change page_size|[Ff]alling back|falls back|fallback to|^Using |^Cannot use \w+ backend|instead\b.{0,600}$/.test(
      message,
    ) ||
    /Error/.test(message) ||
    /\bERROR\b/.test(line.text),
  title: ({ groups }, where) =>
    `The attention backend${groups['backend'] ? ` ${groups['backend']}` : ''} on ${where} cannot serve this model on this GPU`,
  why: 'Each attention backend supports some GPUs, head sizes and kinds of attention only; the line names what is missing.',
  advice: ({ groups }) => {
    const meant = groups['meant'] ?? groups['use'];
    return [
      meant === undefined
        ? 'Choose another with --attention-backend in args of the engine: triton or flashinfer for SGLang, TRITON_ATTN or FLASHINFER for vLLM; or leave it out, so that the engine chooses.'
        : `Set --attention-backend ${meant} in args of the engine.`,
      'A VLLM_ATTENTION_BACKEND in env of the recipe forces one too.',
    ];
  },
  values: ({ groups }): Readonly<Record<string, string>> => {
    const meant = groups['meant'] ?? groups['use'];
    return meant === undefined ? {} : { meant };
  },
  confidence: 0.86,
  specificity: 3,
  looks: [
    "ValueError: Selected backend AttentionBackendEnum.FLASHMLA is not valid for this configuration. Reason: ['compute capability not supported']",
  ],
});
