import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** A refusal by the hub for want of a token or a licence, whatever else is said of it. */
const refused = pattern(
  [
    'GatedRepo',
    'gated repo',
    'Access to model ',
    'Invalid user token',
    'awaiting a review',
    'LocalTokenNotFoundError',
    'Invalid username or password',
    'Invalid credentials in Authorization',
    'Token is required',
    'Repository Not Found for url',
    'RepositoryNotFoundError',
    'HF_TOKEN',
    'is not a local folder and is not a valid model identifier',
    'private repository',
  ],
  /GatedRepo|gated repo|Access to (?:model|dataset) (?<repo>\S{1,300}) is restricted|Invalid user token|awaiting a review|LocalTokenNotFoundError|Invalid username or password|Invalid credentials in Authorization header|Token is required \(|RepositoryNotFoundError: 401|Repository Not Found for url: (?<url>\S{1,300}?)\.?$|(?:401|403) .{0,600}HF_TOKEN|HF_TOKEN.{0,600}(?:not set|missing|invalid)|(?:^|[\s'":])(?<name>[\w-][\w.-]{0,400}(?:\/[\w.-]{1,400})?) is not a local folder and is not a valid model identifier|If this is a private repository/,
);
const statusOfHub = pattern(
  ['401 Client Error', '403 Client Error', '401 Unauthorized', '403 Forbidden'],
  /40[13] (?:Client Error|Unauthorized|Forbidden).{0,600}(?:https?:\/\/(?:\w{1,80}\.)?(?:huggingface\.co|hf\.co|hf-mirror\.com)\/(?<path>\S{1,300})|[Gg]ated)/,
);
const limited = pattern(
  ['429 Client Error', 'Error 429', 'Too Many Requests', 'rate limit', 'status code: 429', '429 Too Many'],
  /429 Client Error|HTTP Error 429|(?:huggingface\.co|hf\.co|[Hh]ub|HfHub).{0,600}(?:429|Too Many Requests|rate limit)|(?:429|Too Many Requests|rate limit).{0,600}(?:huggingface\.co|hf\.co|[Hh]ub|your IP|per \d+ minutes|HF_TOKEN)|We had to rate limit (?:your IP|you)/i,
);

/** The hub wants a token or an accepted licence. */
export const hubGated = lineSignature({
  name: 'hub-gated',
  cause: 'hf-gated-or-unauthenticated',
  seenOn: 'huggingface_hub 0.16 to 1.0, transformers 4 and 5',
  source: 'huggingface_hub utils/_http.py and errors.py; transformers utils/hub.py',
  forms: [refused, statusOfHub],
  title: ({ groups }, where) =>
    `The hub does not let ${where} read ${groups['repo'] ?? groups['url'] ?? 'the model'}`,
  why: 'The model is gated or private, and no token that may read it came with the request: none was given to the container, or its owner has not accepted the licence.',
  advice: (_found, where) => [
    "Accept the licence on the model's page with the account of the token.",
    `Give HF_TOKEN to the rank on every node; or download once and copy the folder: hf download MODEL --local-dir THE_FOLDER, on ${where}`,
    `It has worked when, in the container: hf auth whoami names the account`,
  ],
  confidence: ({ message }) =>
    /Repository ?Not ?Found|not a local folder|private repository/.test(message) ? 0.72 : 0.94,
  specificity: 3,
  looks: [
    'Access to model org/model is restricted. You must have access to it and be authenticated to access it.',
  ],
});

/** Too many requests. */
export const hubLimited = lineSignature({
  name: 'hub-limited',
  cause: 'hf-rate-limited',
  seenOn: 'huggingface_hub 0.20 to 1.0',
  source: 'huggingface_hub utils/_http.py; messages of the hub itself',
  forms: [limited],
  title: (_found, where) => `The hub refuses ${where} because of too many requests`,
  why: 'Without a token the hub counts requests by address, and all nodes behind one router share it.',
  advice: () => [
    'Wait a few minutes, and give HF_TOKEN to every rank: with a token the limit is higher.',
    'Better: download once, copy the folder over the fabric, and start with HF_HUB_OFFLINE=1.',
  ],
  confidence: 0.93,
  specificity: 3,
  looks: ['429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/org/model'],
});

/** The hub cannot be reached at all. */
export const hubUnreachable = lineSignature({
  name: 'hub-unreachable',
  cause: 'hf-unreachable',
  seenOn: 'huggingface_hub 0.16 to 1.0, transformers 4 and 5, requests 2, httpx 0.28',
  source: 'huggingface_hub file_download.py; transformers utils/hub.py; urllib3; httpcore',
  forms: [
    pattern(
      [
        "host='huggingface.co'",
        "host='hf.co'",
        'huggingface.co',
        'hf-mirror.com',
        'cdn-lfs',
        'xethub',
        'cas-bridge',
      ],
      /(?:HTTPS?ConnectionPool\(host='(?<host>(?:[\w.-]{0,400}\.)?(?:huggingface\.co|hf\.co|hf-mirror\.com))'|(?:huggingface\.co|hf\.co|hf-mirror\.com|xethub\.\S{1,300})).{0,600}(?:Max retries|timed out|[Tt]imeout|Name or service not known|name resolution|[Uu]nreachable|refused|reset by peer|SSLError|ProxyError|NameResolutionError|NewConnectionError|50[234] |No route)|(?:Could not|Failed to|Cannot|couldn't|Can't|unable to|Unable to) (?:resolve|connect|reach)\b.{0,600}(?:huggingface\.co|hf\.co|hf-mirror\.com)|(?:timed out|[Tt]imeout|Max retries|50[234] \w{1,80} Error).{0,200}(?:huggingface\.co|hf\.co|hf-mirror\.com)/,
    ),
    pattern(
      [
        'LocalEntryNotFoundError',
        'locate the file on the Hub',
        "couldn't connect to '",
        'OfflineModeIsEnabled',
        'offline mode is enabled',
        'look-ups and downloads online',
        'Cannot find an appropriate cached snapshot',
      ],
      /LocalEntryNotFoundError|trying to locate the files? on the Hub|couldn't connect to '\S{1,300}' to load|OfflineModeIsEnabled|offline mode is enabled|look-ups and downloads online|Cannot find an appropriate cached snapshot/,
    ),
    pattern(
      ['Error while trying to fetch', 'thrown while requesting', 'ConnectError', 'ConnectTimeout'],
      /(?:thrown while requesting (?:HEAD|GET) https?:\/\/\S{0,300}(?:huggingface|hf)\S{0,300}|(?:httpx|httpcore)\.(?:ConnectError|ConnectTimeout|ReadTimeout)|^ConnectTimeout)/,
    ),
  ],
  unless: [refused, limited],
  counts: ({ message }) =>
    !/[Rr]etrying in|Retry \d+\/\d+|telemetry|UserWarning/.test(message) || /Error/.test(message),
  title: (_found, where) => `${where} does not reach the model hub`,
  why: ({ message }) =>
    /[Oo]ffline/.test(message)
      ? 'Offline mode is on, and a file that is wanted is not in the cache.'
      : 'A name was given where a folder could stand, so the engine asks the hub, and gets no answer; what lies in the cache is asked for again all the same.',
  advice: (_found, where) => [
    'Give the folder itself as path in the recipe: firstlight then needs no hub.',
    'Where everything is in the cache: HF_HUB_OFFLINE=1 in env of the recipe, and the same HF_HOME on every node.',
    `On ${where}: curl -sI https://huggingface.co | head -1; env | grep -i proxy`,
  ],
  values: ({ message }) => ({ offline: /[Oo]ffline/.test(message) ? 'yes' : 'no' }),
  confidence: ({ message }) => (/httpx|httpcore|^ConnectTimeout/.test(message) ? 0.7 : 0.9),
  specificity: 3,
  looks: [
    "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
  ],
});
