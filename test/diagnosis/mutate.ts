/** Logs of one job by name, as text. */
export type Texts = Readonly<Record<string, string>>;

/** One way in which logs of the same failure differ; `seed` draws what it needs. */
export type Mutation = {
  readonly name: string;
  /** What must stay: cause and node, the cause alone, or only that nothing else is named with confidence. */
  readonly keeps: 'all' | 'cause' | 'honesty';
  apply(texts: Texts, random: (below: number) => number): Texts;
};

const lines =
  (change: (line: string, index: number) => string) =>
  (texts: Texts): Texts =>
    each(texts, (text) =>
      text
        .split('\n')
        .map((line, at) => (line === '' ? line : change(line, at)))
        .join('\n'),
    );

function each(texts: Texts, change: (text: string) => string): Texts {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, change(text)]));
}

const HOSTS = /\b(?:spark|node|gpu|dgx|gx10)-?([a-d]|0?[1-4])\b/g;
const PRIVATE = /\b(192\.168|10\.\d+|172\.(?:1[6-9]|2\d|3[01]))\.(\d+)\.(\d+)\b/g;

/** What hosts, people and terminals change in a log without changing what went wrong. */
export const mutations: readonly Mutation[] = [
  {
    name: 'line ends of DOS',
    keeps: 'all',
    apply: (texts) => each(texts, (text) => text.replaceAll('\n', '\r\n')),
  },
  { name: 'colours', keeps: 'all', apply: lines((line, at) => `\u001b[3${at % 8}m${line}\u001b[0m`) },
  {
    name: 'a prefix of Ray',
    keeps: 'all',
    apply: lines((line) =>
      /^\(\w+ pid=/.test(line) ? `(RayWorkerWrapper pid=77, ip=10.9.8.7) ${line}` : line,
    ),
  },
  {
    name: 'stamps of docker',
    keeps: 'all',
    apply: lines((line) => `2026-11-29T15:00:32.123456789Z ${line}`),
  },
  {
    name: 'the files of docker itself',
    keeps: 'all',
    apply: lines((line) =>
      JSON.stringify({ log: `${line}\n`, stream: 'stderr', time: '2026-11-29T15:00:32.1Z' }),
    ),
  },
  {
    name: 'the files of a Kubernetes node',
    keeps: 'all',
    apply: lines((line) => `2026-11-29T15:00:32.123456789Z stderr F ${line}`),
  },
  { name: 'names of compose services', keeps: 'all', apply: lines((line) => `engine-1  | ${line}`) },
  {
    name: 'the journal of a service',
    keeps: 'all',
    apply: lines((line) => `Nov 29 15:00:32 gx10 vllm[4711]: ${line}`),
  },
  {
    name: 'progress that redraws itself',
    keeps: 'all',
    apply: lines((line, at) =>
      at % 3 === 0 ? `\rworking:  10%|#         | 1/10\rworking:  90%|######### | 9/10\r${line}` : line,
    ),
  },
  {
    name: 'other host names',
    keeps: 'all',
    apply: (texts) =>
      each(texts, (text) => text.replace(HOSTS, (_all, which) => `rack7-blade${which}.example`)),
  },
  {
    name: 'other private addresses',
    keeps: 'all',
    apply: (texts) =>
      each(texts, (text) => text.replace(PRIVATE, (_all, _net, third, last) => `10.77.${third}.${last}`)),
  },
  {
    name: 'other ports',
    keeps: 'all',
    apply: (texts) =>
      each(texts, (text) =>
        text.replace(/(?<=[\d\]]:|port[ :=]+)(2\d{4}|3\d{4}|4\d{4}|5\d{4})\b/g, (port) =>
          String(Number(port) + 111),
        ),
      ),
  },
  {
    name: 'other process numbers and dates',
    keeps: 'all',
    apply: (texts) =>
      each(texts, (text) =>
        text
          .replace(/pid=(\d+)/g, (_all, pid) => `pid=${Number(pid) + 1111}`)
          .replace(/\b2026-(?=\d\d-\d\d\b)/g, '2027-'),
      ),
  },
  {
    name: 'other users and models',
    keeps: 'all',
    apply: (texts) =>
      each(texts, (text) =>
        text.replace(/\/home\/\w+/g, '/home/zoe').replace(/\/models\/[\w.-]+/g, '/models/Other-Model-7B'),
      ),
  },
  {
    name: 'other places in the sources',
    keeps: 'all',
    apply: (texts) => each(texts, (text) => text.replace(/\[(\w+\.py):\d+\]/g, '[$1:4711]')),
  },
  {
    name: 'lines of ten thousand characters between',
    keeps: 'all',
    apply: lines((line, at) => (at % 2 === 0 ? `${line}\nINFO config: ${'x=1, '.repeat(2000)}` : line)),
  },
  {
    name: 'a healthy chatter around it',
    keeps: 'all',
    apply: lines((line, at) =>
      at % 2 === 0 ? `INFO 11-29 10:00:00 [loggers.py:1] nothing to see here, request ${at}\n${line}` : line,
    ),
  },
  {
    name: 'binary garbage',
    keeps: 'all',
    apply: (texts, random) => {
      const garbage = Array.from({ length: 200 }, () => String.fromCharCode(random(32)))
        .join('')
        .replaceAll('\n', '');
      return each(texts, (text) => `${garbage}\n${text}${garbage}`);
    },
  },
  {
    name: 'IPv6 in place of IPv4',
    keeps: 'cause',
    apply: (texts) =>
      each(texts, (text) =>
        text
          .replace(
            /(?<!ffff:)\b(?:192\.168|10\.\d+|172\.(?:1[6-9]|2\d|3[01]))\.(\d+)\.(\d+):(?=\d)/g,
            '[fd00::$1:$2]:',
          )
          .replace(
            /(?<!ffff:)\b(?:192\.168|10\.\d+|172\.(?:1[6-9]|2\d|3[01]))\.(\d+)\.(\d+)\b/g,
            'fd00::$1:$2',
          ),
      ),
  },
  {
    name: 'all ranks in one file',
    keeps: 'honesty',
    apply: (texts) => {
      const all = Object.values(texts).map((text) => text.split('\n').filter((line) => line !== ''));
      const longest = Math.max(...all.map((one) => one.length));
      const mixed = Array.from({ length: longest }, (_, at) => all.flatMap((one) => one[at] ?? [])).flat();
      return { head: `${mixed.join('\n')}\n` };
    },
  },
  {
    name: 'a last line that is cut',
    keeps: 'honesty',
    apply: (texts, random) => each(texts, (text) => text.slice(0, text.length - 1 - random(30))),
  },
  {
    name: 'a missing first half',
    keeps: 'honesty',
    apply: (texts) => each(texts, (text) => text.slice(text.indexOf('\n', text.length / 2) + 1) || text),
  },
];
