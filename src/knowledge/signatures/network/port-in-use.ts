import type { Evidence } from '../../../domain/evidence.ts';
import { valueIf } from '../../../domain/facts.ts';
import { factsOf } from '../scene.ts';
import { type Found, pattern, type Signature, type View } from '../signature.ts';

const store = pattern(
  'The server socket has failed to listen on any local network address',
  /failed to listen on any local network address\..{0,400}?port: (?<port>\d{1,20}).{0,400}?(?:EADDRINUSE|address already in use)/,
);
const storeOld = pattern(
  'The server socket has failed to bind to',
  /failed to bind to .{0,400}?:(?<port>\d{1,20}) .{0,400}?(?:EADDRINUSE|[Aa]ddress already in use)/,
);
const sglang = pattern(
  ['dist_init_port', 'is in use. Waiting for'],
  /(?:port (?<waited>\d{1,20}) is in use\. Waiting for|dist_init_port at (?<port>\d{1,20}) is not available)/,
);
const uvicorn = pattern(
  'error while attempting to bind on address',
  /\[Errno 98\] error while attempting to bind on address \('(?<address>[^']{0,200})', (?<port>\d{1,20})(?:, \d{1,20}, \d{1,20})?\)/,
);
const zmq = pattern(
  'Address already in use (addr=',
  /Address already in use \(addr='tcp:\/\/.{0,400}?:(?<port>\d{1,20})'\)/,
);
const errno = pattern('[Errno 98] Address already in use', /OSError: \[Errno 98\] Address already in use/);
const ray = pattern(
  [
    'is already running at',
    'is already in use',
    'Failed to start GCS',
    'port conflict',
    'already in use by another process',
  ],
  /Ray is trying to start at \S{1,300}?:(?<port>\d{1,20}), but is already running at|(?:[Pp]ort|dashboard|GCS\D{1,60}) ?(?<other>\d{3,5}) (?:is )?already in use|[Aa]ddress (?<bound>\S{1,300}?:(?<waited>\d{1,20})) is already in use|port (?:number )?conflict\D{1,60}(?<waited2>\d{3,5})/,
);
const plain = pattern(
  ['ddress already in use', 'EADDRINUSE'],
  /(?:bind|listen|Bind|Listen|socket|grpc|zmq|gloo|ZMQError)\S{0,300}[^\n]{0,200}?(?::(?<port>\d{2,5})\b[^\n]{0,200})?(?:[Aa]ddress already in use|EADDRINUSE)/,
);
const docker = pattern(
  ['port is already allocated', 'failed to bind host port'],
  /(?:Bind for [\d.[\]:]{0,200}?:(?<port>\d{1,20}) failed|failed to bind host port (?:for )?[\d.[\]:]{0,200}?:(?<other>\d{1,20}))/,
);

/** A port the engine needs is held by somebody else. `values.kind` is `rendezvous`, `api` or `other`. */
export const portInUse: Signature = {
  name: 'port-in-use',
  causes: ['port-already-in-use'],
  seenOn: 'torch 2.11.0, November 2026; SGLang 0.5, uvicorn, docker 28',
  source: 'captured; SGLang server_args.py',
  looks: [
    'The server socket has failed to listen on any local network address. port: 29501, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use',
    "error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
  ],
  patterns: [store, storeOld, sglang, uvicorn, zmq, errno, docker, ray, plain],
  match(view) {
    const { evidence, find } = view;
    const shown = [store, storeOld, sglang, uvicorn, zmq, docker, ray, errno, plain].flatMap((form) =>
      find(form),
    );
    const first = shown[0];
    if (first === undefined) return undefined;
    const port = portOf(view, first);
    const kind = kindOf(evidence, first, port);
    const holder = holderOf(evidence, first.node, port);
    const what = { rendezvous: 'the rendezvous', api: 'the API', other: 'the engine' }[kind];
    return {
      cause: 'port-already-in-use',
      node: first.node,
      shown: shown.filter((found) => found.rank === first.rank).slice(0, 3),
      title: `${port === '' ? 'A port that it wants' : `Port ${port}`} on ${first.node} is taken${holder.name ? ` by ${holder.name}` : ''}`,
      why: `${first.node} needs it for ${what}, and something else listens there already.`,
      advice: [
        `On ${first.node}: sudo ss -ltnp 'sport = :${port || 'PORT'}'`,
        kind === 'api'
          ? 'Stop what listens there, or choose another serve.port in the recipe.'
          : 'Stop what listens there, or choose another rendezvousPort in the recipe.',
      ],
      values: { port, kind, ...holder.values },
      confidence: 0.95,
      specificity: 3,
    };
  },
};

/** The port that the line names, else the head's for the API: as it was launched, or as its log repeats the command. */
function portOf({ evidence, command }: View, found: Found): string {
  const { port, waited, waited2, other } = found.groups;
  const named = port ?? waited ?? waited2 ?? other;
  if (named !== undefined || found.role !== 'head') return named ?? '';
  if (evidence.services.length > 0) return String(evidence.recipe.serve.port);
  return /(?:--port[ =]|'port': |\bport=)(\d{1,5})\b/.exec(command(found.node))?.[1] ?? '';
}

function kindOf(evidence: Evidence, found: Found, port: string): 'rendezvous' | 'api' | 'other' {
  if (port === String(evidence.recipe.serve.port)) return 'api';
  if (port === String(evidence.recipe.rendezvousPort)) return 'rendezvous';
  if (/error while attempting to bind|already allocated|host port/.test(found.message)) return 'api';
  return /listen on any local|failed to bind to|dist_init_port|Waiting for/.test(found.message)
    ? 'rendezvous'
    : 'other';
}

function holderOf(
  evidence: Evidence,
  node: string,
  port: string,
): { readonly name: string; readonly values: Readonly<Record<string, string>> } {
  const facts = factsOf(evidence, node);
  const listener = (valueIf(facts?.ports) ?? []).find((one) => String(one.port) === port);
  const pid = valueIf(listener?.pid);
  const holder = (valueIf(facts?.holders) ?? []).find((one) => one.pid === pid);
  const name = holder?.name ?? valueIf(listener?.process);
  if (name === undefined) return { name: '', values: {} };
  return {
    name: pid === undefined ? name : `${name} (pid ${pid})`,
    values: { holder: name, ...(pid === undefined ? {} : { pid: String(pid) }) },
  };
}
