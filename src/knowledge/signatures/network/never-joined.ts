import { pattern, type Signature } from '../signature.ts';

const joined = pattern(
  'clients joined',
  /Timed out after (?<seconds>\d{1,20}) seconds waiting for clients\. (?<joined>\d{1,20})\/(?<wanted>\d{1,20}) clients joined/,
);

/** All that older torch says of it. */
const socketTimeout = pattern(
  'Socket Timeout',
  /^(?:\[rank\d+\]: ?)?(?:RuntimeError|torch\.distributed\.DistStoreError): Socket Timeout$/,
);

/** The head's store waited for a rank of which there is no word at all: nobody started it. */
export const neverJoined: Signature = {
  name: 'never-joined',
  causes: ['rank-never-started'],
  seenOn: 'torch 1.13 and 2.13 over Gloo, November 2026',
  source: 'torch TCPStore.cpp, waitForWorkers and doWait',
  looks: [
    'torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.',
  ],
  patterns: [joined, socketTimeout],
  match({ evidence, find }) {
    const counted = find(joined).find(
      ({ role, groups }) => role === 'head' && Number(groups['joined']) < Number(groups['wanted']),
    );
    const found =
      counted ?? find(socketTimeout).find(({ role, stage }) => role === 'head' && stage === 'rendezvous');
    const silent = evidence.ranks.filter(
      ({ role, lines }) => role === 'worker' && lines.every(({ text }) => text.trim() === ''),
    );
    const [first] = silent;
    const workers = evidence.ranks.filter(({ role }) => role === 'worker').length;
    if (found === undefined || first === undefined || silent.length < workers) return undefined;
    const unseen = silent.every((rank) => rank.unseen === true);
    const { groups } = found;
    return {
      cause: 'rank-never-started',
      node: first.node,
      shown: [found],
      title: `${first.node} never came to the rendezvous${counted === undefined ? '' : `: ${groups['joined']} of ${groups['wanted']} ranks were there after ${groups['seconds']} s`}`,
      why: unseen
        ? 'No log of that rank was handed over. Either nobody started it, or its own log tells why it did not come.'
        : 'Its log is empty: nobody started it, or it ended before its first word.',
      advice: [
        `See whether it runs, on ${first.node}: ps -eo pid,lstart,args | grep -e --node-rank`,
        "Start it with the head's command, its own --node-rank and, for vLLM, --headless; firstlight up starts every rank.",
        ...(unseen ? [`If it was started, hand its log over too: --log ${first.node}=FILE`] : []),
      ],
      values: counted === undefined ? {} : { joined: groups['joined'] ?? '', wanted: groups['wanted'] ?? '' },
      confidence: unseen ? 0.6 : 0.8,
      specificity: 1,
      alternatives: [{ cause: 'firewall-blocks-ports', confidence: 0.2 }],
    };
  },
};
