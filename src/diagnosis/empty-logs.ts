import type { Evidence, RankEvidence } from '../domain/evidence.ts';
import { list } from '../domain/units.ts';

/** What can be said of finished logs in which nothing stands at all; undefined where anything does. */
export function emptyLogs({
  finished,
  ranks,
  side,
}: Evidence):
  | { readonly title: string; readonly why: string; readonly advice: readonly string[] }
  | undefined {
  const handed = ranks.filter(({ unseen }) => unseen !== true);
  const [first] = handed;
  if (finished !== true || first === undefined || ![...handed, ...(side ?? [])].every(isBlank))
    return undefined;
  const one = handed.length === 1;
  return {
    title: `The ${one ? 'log' : 'logs'} of ${list(handed.map(({ node }) => node))} ${one ? 'is' : 'are'} empty`,
    why: 'Nothing was written: the program was never started, or what it prints goes elsewhere (a terminal, the journal, the container’s own log), or waits in its buffer.',
    advice: [
      `Take what it printed from where it goes, errors too: docker logs CONTAINER >${first.node}.log 2>&1, or journalctl -u UNIT -o cat >${first.node}.log, or start it with PYTHONUNBUFFERED=1 and >${first.node}.log 2>&1`,
      'See whether it was started, and how it ended: docker ps -a; pgrep -af "sglang|vllm"',
    ],
  };
}

/** " The log of worker is empty.": beside logs that are not; '' where each says something, or is not whole yet. */
export function emptyBeside({ finished, ranks }: Evidence): string {
  const empty = ranks.filter((rank) => rank.unseen !== true && isBlank(rank)).map(({ node }) => node);
  if (finished !== true || empty.length === 0) return '';
  return ` The ${empty.length === 1 ? 'log' : 'logs'} of ${list(empty)} ${empty.length === 1 ? 'is' : 'are'} empty.`;
}

function isBlank({ lines }: Pick<RankEvidence, 'lines'>): boolean {
  return lines.every(({ text }) => text.trim() === '');
}
