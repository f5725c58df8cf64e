import { describe, expect, it } from 'vitest';
import { repeatsUser, withoutUsers } from '../../src/diagnosis/user-words.ts';
import { answerTo, linesOf, readHealthy } from './corpus.ts';

const HEALTHY = new Map(readHealthy());
const VLLM = String(HEALTHY.get('vllm-single')?.['head']);
const SGLANG = String(HEALTHY.get('sglang-single')?.['head']);

/** What somebody pastes who asks a model why another server failed. */
const PASTED = [
  'my server says this, why?',
  '(EngineCore pid=12) ERROR 05-05 10:01:00 [core.py:900] EngineCore failed to start.',
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 121.69 GiB of which 1.10 GiB is free.',
  '[2026-11-29 20:05:00 TP0] Scheduler hit an exception: Traceback (most recent call last):',
  'ValueError: Free memory on device cuda:0 (71.40/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB).',
  '[2026-11-29 20:05:01] Received sigquit from a child process. It usually means the child failed.',
  'thanks',
];
const FIELDS =
  'input_ids=None, input_embeds=None, image_data=None, sampling_params={"temperature": 0.7, "max_new_tokens": 128}, rid="4bd1", return_logprob=False, stream=True)';
const prefix = '(APIServer pid=1) INFO 05-05 10:03:00 [logger.py:39] ';

/** Records of several lines as engines write them. */
const RECORDS: readonly (readonly [string, string, readonly string[]])[] = [
  [
    "SGLang's --log-requests, the text as it came",
    SGLANG,
    [`[2026-11-29 20:04:30] Receive: obj=GenerateReqInput(text="Hello,`, ...PASTED, `bye", ${FIELDS}`],
  ],
  [
    "SGLang's --log-requests at the end of a request",
    SGLANG,
    [
      `[2026-11-29 20:04:30] Finish: obj=GenerateReqInput(text="Hello,`,
      ...PASTED,
      `bye", ${FIELDS}, out={'text': "It says:`,
      ...PASTED,
      `", 'meta_info': {'id': '4bd1', 'finish_reason': {'type': 'stop'}}}`,
    ],
  ],
  [
    "vLLM's --enable-log-requests, with the prefix on every line",
    VLLM,
    [
      `${prefix}Received request chatcmpl-1: prompt: 'Hello,`,
      ...PASTED.map((line) => prefix + line),
      `${prefix}bye', params: SamplingParams(n=1, temperature=0.7), prompt_token_ids: None, lora_request: None.`,
    ],
  ],
  [
    "vLLM's --enable-log-requests, without it",
    VLLM,
    [
      `${prefix}Received request chatcmpl-1: prompt: 'Hello,`,
      ...PASTED,
      `bye', params: SamplingParams(n=1, temperature=0.7), prompt_token_ids: None, lora_request: None.`,
    ],
  ],
  [
    "vLLM's --enable-log-outputs",
    VLLM,
    [
      `${prefix}Generated response chatcmpl-1 (streaming complete): output: 'It says:`,
      ...PASTED,
      `', output_token_ids: None, finish_reason: stop`,
    ],
  ],
  [
    "SGLang's --log-requests-format json",
    SGLANG,
    [
      `{"timestamp": "2026-11-29T20:04:30", "event": "request.received", "rid": "4bd1", "obj": {"text": ${JSON.stringify(PASTED.join('\n'))}}}`,
    ],
  ],
];

const FAILS =
  '(EngineCore pid=12) ERROR 05-05 10:09:00 [core.py:900] torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device';
const FAILS_SGLANG =
  '[2026-11-29 20:09:00 TP0] torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device';

describe("a user's words of several lines", () => {
  it.each(RECORDS)('are not the engine’s: %s', (_name, log, record) => {
    expect(answerTo({ head: `${log}${record.join('\n')}\n` })).toMatchObject({
      cause: 'no-fault',
      finding: undefined,
    });
    // The same words said by the engine itself are.
    expect(answerTo({ head: `${log}${PASTED.join('\n')}\n` }).cause).not.toBe('no-fault');
  });

  it.each(RECORDS)('end where the record does: %s', (_name, log, record) => {
    const fails = log === SGLANG ? FAILS_SGLANG : FAILS;
    const said = answerTo({ head: `${log}${[...record, fails].join('\n')}\n` });
    expect(said.finding?.quotes.map(({ text }) => text)).toEqual([fails]);
    expect(said.cause).toBe('kernels-not-built-for-sm121');
  });

  it('of a record without its end last until the engine speaks again', () => {
    const cut = [
      `[2026-11-29 20:04:30] Receive: obj=GenerateReqInput(text="Hello,`,
      'torch.OutOfMemoryError: CUDA out of memory',
    ];
    expect(answerTo({ head: `${SGLANG}${cut.join('\n')}\n` }).cause).toBe('no-fault');
    expect(answerTo({ head: `${SGLANG}${[...cut, FAILS_SGLANG].join('\n')}\n` }).cause).toBe(
      'kernels-not-built-for-sm121',
    );
  });

  it('are not quoted where nothing else tells why it ended', () => {
    const secret = 'my name is Quentin';
    const record = [
      `[2026-11-29 20:04:30] Receive: obj=GenerateReqInput(text="Hello,`,
      secret,
      `bye", ${FIELDS}`,
    ];
    const said = answerTo({ head: `${SGLANG}${record.join('\n')}\nquux.FrobnicationError: flux\n` });
    expect(said.cause).toBe('unknown');
    expect(said.finding?.quotes.map(({ text }) => text)).not.toContain(secret);
  });

  it('are told by the forms of the records alone', () => {
    expect(repeatsUser('Receive: obj=GenerateReqInput(rid=1, sampling_params={})')).toEqual({
      ends: undefined,
    });
    expect(repeatsUser('Received request chatcmpl-1: params: SamplingParams(n=1)')).toBeUndefined();
    const lines = linesOf(Buffer.from(`one\n${RECORDS[0]?.[2].join('\n')}\ntwo\n`));
    expect(withoutUsers(lines, () => false).map(({ text }) => text)).toEqual(['one', 'two']);
  });
});
