import { inOrder } from '../line-signature.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

/** What somebody who waited says when he stops waiting. */
const gaveUp = pattern(
  [
    'did not become',
    'not become ready',
    'imed out waiting',
    'imeout waiting',
    'iving up',
    'not ready after',
    'not healthy after',
    'still not ready',
    'still not up',
    'eems stuck',
    'eems to hang',
    'appears to be hung',
    'appears hung',
    'appears stuck',
    'looks hung',
    'no progress',
    'failed to start within',
    'ailed to become',
    'assuming hang',
    'assuming it hung',
    'hung',
    'stuck',
    'exceeded its deadline',
    'exceeded progress deadline',
    'Startup probe failed',
    'failed to start in time',
    'tartup timeout',
    'eadiness timeout',
    'timeout: sending signal',
    'elapsed',
    'restarting',
    'Restarting',
  ],
  /did not become (?:ready|healthy|available)|not become ready|[Tt]im(?:ed out|eout) waiting (?:for|on) (?:the )?(?:server|vllm|sglang|model|health|https?:|\S{1,300}:\d|engine|container|service|API|endpoint|readiness|startup|head|ready|it\b)|[Gg]iving up (?:after|on|waiting)|not (?:ready|healthy|up) after|still not (?:ready|up|healthy)|(?:seems|appears|looks)(?: to be)? (?:stuck|hung|hanging)|seems to hang|no progress (?:for|in|since)|failed to start within|failed to become (?:ready|healthy)|assuming (?:it )?h(?:ang|ung)|exceeded (?:its|progress) deadline|Startup probe failed|failed to start in time|(?:[Ss]tartup|[Rr]eadiness) timeout|timeout: sending signal TERM|\d+ ?s(?:econds)? elapsed.{0,60}(?:abort|exit|kill|restart|giving)|(?:restarting|Restarting) (?:the )?(?:container|server|engine|vllm|sglang)/,
);
/** Somebody ended it by hand, or had it ended. */
const interrupted = pattern(
  ['KeyboardInterrupt', 'signal=SIGTERM', 'signal=SIGINT', '^C'],
  /^(?:\^C|KeyboardInterrupt)|trigger(?:ed)?\b.{0,600}signal=SIG(?:TERM|INT)/,
);
const progress = pattern(
  [
    '% Completed',
    'Load weight begin',
    'Starting to load model',
    'Loading weights took',
    'Model loading took',
    'Load weight end',
    'Loading model from scratch',
  ],
  /(?<percent>\d+)% Completed \| (?<done>\d+)\/(?<all>\d+)|Load weight (?:begin|end)|Starting to load model|Loading weights took|Model loading took|Loading model from scratch/,
);
const serving = pattern(
  ['Application startup complete', 'fired up and ready to roll', 'HTTP/1.1" 200', 'Uvicorn running on'],
  /Application startup complete|fired up and ready to roll|HTTP\/1\.1"? 200|Uvicorn running on/,
);
const broken = pattern(
  [
    'Error',
    'Exception',
    'Traceback',
    'Killed',
    'out of memory',
    'exited with',
    'died',
    'Segmentation',
    'sigquit',
    'failed with',
    'Fatal',
  ],
  /(?:^|[\])] |: )(?:\w{1,80}\.)*[A-Z]\w{0,80}(?:Error|Exception)\b(?::|$)|Traceback \(most|^Killed|\bKilled process|out of memory|exited with code (?!0)|died unexpectedly|Segmentation fault|Received sigquit|^Fatal/,
);
const unauthorised = pattern(
  ['401 Unauthorized', ' 401', 'Unauthorized', 'nvalid API key', 'ncorrect API key', 'nvalid_api_key'],
  /"?(?:GET|HEAD|POST) \/(?<path>[\w./-]{0,400})[^"]{0,400}"? 401|(?:HTTP|status|code|returned|got|error)\D{0,20}\b401\b|401 Unauthorized|["']error["']\s*:\s*["']Unauthorized|(?:[Ii]nvalid|[Ii]ncorrect) API key/,
);
const notReady = pattern(
  [
    'not ready',
    'Not ready',
    'not healthy',
    'unhealthy',
    'waiting for',
    'Waiting for',
    'not up',
    'server is down',
    'server down',
    'is down',
    'unavailable',
    'robe failed',
    'retrying',
    'not become',
    'imed out',
    'imeout',
    'NOT READY',
    'DOWN',
  ],
  /[Nn]ot (?:ready|healthy|up)|unhealthy|[Ww]aiting for|(?:server|endpoint|API|service)(?: is)? (?:down|unavailable)|[Pp]robe failed|retrying|not become|[Tt]imed? ?out|NOT READY|\bDOWN\b/,
);
const healthGaveUp = pattern(
  [
    'ealth check',
    'ealthcheck',
    'iveness probe',
    'eadiness probe',
    'GET /health',
    'Operation timed out',
    '/health',
    'unhealthy',
    'context deadline exceeded',
  ],
  /Health check failed\. Server couldn't get a response from detokenizer for last (?<seconds>\d+)|[Hh]ealth ?[Cc]heck.{0,80}(?:exceeded|timed out|timeout|failed)|(?:[Ll]iveness|[Rr]eadiness) probe failed|GET \/health\w{0,80} HTTP\/1\.[01]"? 503|\/health\S{0,60}.{0,120}(?:timed out|timeout|deadline exceeded|unhealthy|\(28\))|\(28\) Operation timed out after (?<milliseconds>\d+)|(?:unhealthy|health).{0,60}(?:restart|kill)/,
);
const prefilling = pattern(
  [
    'Prefill batch',
    'Avg prompt throughput: ',
    'prompt_tokens',
    'ong prompt',
    'ong prefill',
    'token prompt',
    'token prefill',
    'refilling',
  ],
  /Prefill batch.{0,600}#new-token: (?<tokens>\d+)|Avg prompt throughput: (?!0\.0 )(?<rate>[\d.]{1,400})|(?:prompt[_ ]tokens|num_prompt_tokens)["']?\s*[:=]\s*(?<prompt>\d{4,})|[Pp]refill(?:ing)? (?:of )?(?<length>\d{4,})|[Ll]ong (?:prompt|prefill)|(?<kilo>\d+)[Kk][- ]token (?:prompt|prefill)/,
);

/** A server that is well, and somebody who took it for broken. */
export const misread: Signature = {
  name: 'misread',
  causes: [
    'slow-load-misread-as-hang',
    'health-timeout-shorter-than-prefill',
    'readiness-probe-misreads-401',
  ],
  seenOn: 'vLLM 0.8 to 0.32, SGLang 0.4 to 0.5.23, curl 8, docker and Kubernetes health checks',
  source:
    'uvicorn access log; SGLang entrypoints/http_server.py health_generate; vLLM entrypoints; sgl-project/sglang#22511',
  whileServing: true,
  patterns: [
    gaveUp,
    interrupted,
    progress,
    serving,
    broken,
    unauthorised,
    notReady,
    healthGaveUp,
    prefilling,
  ],
  looks: ['"GET /v1/models HTTP/1.1" 401 Unauthorized', 'server did not become ready within 600s'],
  match(view) {
    return unauthorised401(view) ?? (fails(view) ? undefined : (slowPrefill(view) ?? slowLoad(view)));
  },
};

/** Whether a rank says that something broke; who interrupts a program gets a traceback for it. */
function fails(view: View): boolean {
  return view
    .find(broken)
    .some(
      ({ message, side }) =>
        side === undefined &&
        !/KeyboardInterrupt|Error ignored|Ignore import|TimeoutError: .{0,600}health|Traceback/.test(message),
    );
}

function said(
  cause: string,
  shown: readonly Found[],
  title: string,
  why: string,
  advice: readonly string[],
  confidence: number,
): Match {
  return { cause, node: undefined, atFault: 'none', shown, title, why, advice, confidence, specificity: 3 };
}

function unauthorised401(view: View): Match | undefined {
  const all = inOrder([unauthorised], view).filter(
    ({ message }) => !/huggingface|hf\.co|Client Error|registry|docker/.test(message),
  );
  const first = all[0];
  if (first === undefined) return undefined;
  const probes = all.filter(
    ({ groups, side }) =>
      /^(?:v1\/models|health|ping|metrics|v1$|$)/.test(groups['path'] ?? '-') || side !== undefined,
  );
  const waits = view.find(notReady);
  const up = view.find(serving);
  if (probes.length === 0 || (waits.length === 0 && probes.length < 2 && up.length === 0)) return undefined;
  return said(
    'readiness-probe-misreads-401',
    [first, ...waits.filter((one) => one.line !== first.line).slice(0, 1), ...up.slice(0, 1)],
    'The server is up: the probe came without its API key',
    '401 means "who are you", not "not ready": a server that answers it serves.',
    [
      'Send the key: curl -H "Authorization: Bearer $KEY" …/v1/models; or ask /health, which stays open with a key.',
    ],
    waits.length > 0 || up.length > 0 ? 0.9 : 0.75,
  );
}

function slowPrefill(view: View): Match | undefined {
  // A server that still comes up says 503 to whoever asks.
  const lost = inOrder([healthGaveUp], view).filter(
    ({ message, stage, side }) => side !== undefined || stage === 'serving' || !/" 503/.test(message),
  );
  const first = lost[0];
  const read = view.find(prefilling);
  if (first === undefined || read.length === 0) return undefined;
  // A rank that ended by itself was not only slow to answer.
  if (view.evidence.ranks.some(({ ended }) => ended !== undefined && !ended.requested)) return undefined;
  const seconds =
    first.groups['seconds'] ??
    (first.groups['milliseconds'] === undefined
      ? undefined
      : String(Math.round(Number(first.groups['milliseconds']) / 1000)));
  return said(
    'health-timeout-shorter-than-prefill',
    [first, ...read.slice(0, 2)],
    'The health check gave up while a long prompt was being read',
    `${seconds === undefined ? 'The check' : `It waits ${seconds} s, and`} gets its answer only between steps; a long prefill takes longer, and nothing is broken.`,
    [
      'Give the check more time: SGLANG_HEALTH_CHECK_TIMEOUT=120 in env, and the same for whoever asks (docker --health-timeout, timeoutSeconds, curl -m).',
      'Or make steps shorter: a smaller --chunked-prefill-size (SGLang) or --max-num-batched-tokens (vLLM).',
    ],
    0.85,
  );
}

function slowLoad(view: View): Match | undefined {
  const waited = inOrder([gaveUp], view)[0];
  const stopped = view.find(interrupted).find(({ stage }) => stage === 'weights');
  const first = waited ?? stopped;
  const steps = view.find(progress);
  if (first === undefined || steps.length === 0) return undefined;
  const bars = steps.flatMap(({ groups }) => (groups['done'] === undefined ? [] : [Number(groups['done'])]));
  const moves = bars.length > 1 && Math.max(...bars) > Math.min(...bars);
  // What came up before was no slow load: somebody waits for something else.
  const up = view.find(serving);
  const came = up.some(({ line }) => line.at > first.line.at);
  if (up.length > 0 && !came && first.side === undefined) return undefined;
  if (!moves && !came && (bars.length === 0 || waited === undefined)) return undefined;
  return said(
    'slow-load-misread-as-hang',
    [first, ...steps.slice(-2)],
    'Loading was slow, not stuck, when somebody stopped waiting',
    came ? 'The server came up afterwards.' : 'The weights were still being read, a bit more in each line.',
    [
      'Wait longer: a large model takes 10 to 20 minutes from a cold disk; let the limit follow the progress, as firstlight does.',
      'To make it faster: warm the page cache on every node (cat *.safetensors > /dev/null), or --load-format fastsafetensors.',
    ],
    waited === undefined ? 0.56 : moves || came ? 0.84 : 0.66,
  );
}
