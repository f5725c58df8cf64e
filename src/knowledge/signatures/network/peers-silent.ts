import { list } from '../../../domain/units.ts';
import { pattern, type Signature } from '../signature.ts';

const waited = pattern(
  ['for recv operation to complete', 'for send operation to complete'],
  /Timed out waiting (?<milliseconds>\d{1,20}) ?ms for (?:recv|send) operation to complete/,
);

/** Ranks that had met wait for each other's data, each in vain: it is lost on the way between them. */
export const peersSilent: Signature = {
  name: 'peers-silent',
  causes: ['fabric-link-down'],
  seenOn: 'torch 2.13 over Gloo, November 2026, with the link between two hosts cut while weights were read',
  source: 'gloo transport/tcp/unbound_buffer.cc',
  patterns: [waited],
  match(view) {
    const { find } = view;
    const late = find(waited).filter(({ stage }) => stage !== 'start' && stage !== 'rendezvous');
    const nodes = [...new Set(late.map(({ node }) => node))];
    const [first] = late;
    // One alone waits for a peer that is busy or gone; a rank that ended by itself tells more.
    if (first === undefined || nodes.length < 2 || view.serves) return undefined;
    return {
      cause: 'fabric-link-down',
      node: undefined,
      atFault: 'network',
      shown: nodes.flatMap((node) => late.find((found) => found.node === node) ?? []).slice(0, 4),
      title: `${list(nodes)} had met, and then neither heard from the other for ${Math.round(Number(first.groups['milliseconds']) / 1000)} s`,
      why: 'Each waited for data of the other, and neither had ended: what they sent was lost on the way. A link that went down does that without a word.',
      advice: [
        `On each of ${list(nodes)}: ip -br link; ip -s link; sudo dmesg -T | grep -i -e 'link is down' -e 'link down'`,
        'See to the cable and the switch port, then start all ranks anew: firstlight down, then firstlight up.',
      ],
      confidence: 0.6,
      specificity: 1,
      alternatives: [
        { cause: 'firewall-blocks-ports', confidence: 0.2 },
        { cause: 'ranks-with-different-args', confidence: 0.1 },
      ],
    };
  },
};
