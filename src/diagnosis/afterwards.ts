import type { SideLog } from '../domain/evidence.ts';
import { type NodeFacts, valueIf } from '../domain/facts.ts';

/** What the look after a failure read, as logs beside the ranks': of each node its kernel's, and how containers ended. */
export function logsAfterwards(after: readonly NodeFacts[]): readonly SideLog[] {
  return after.flatMap((facts): readonly SideLog[] => {
    if (!facts.reached || facts.afterwards === undefined) return [];
    const at = Date.parse(facts.at);
    const log = (name: string, kind: SideLog['kind'], texts: readonly string[]): readonly SideLog[] =>
      texts.length === 0
        ? []
        : [
            {
              name: `${facts.node} ${name}`,
              kind,
              node: facts.node,
              lines: texts.map((text, index) => ({ line: index + 1, at, text })),
            },
          ];
    const { kernelLog, containers } = facts.afterwards;
    const ended = (valueIf(containers) ?? []).filter(({ state }) => state !== 'running');
    return [
      ...log('kernel', 'kernel', valueIf(kernelLog) ?? []),
      ...log(
        'containers',
        'daemon',
        ended.map(
          ({ name, exitCode, oomKilled, error }) =>
            `container ${name} exited with code ${exitCode}, OOMKilled: ${oomKilled}${error === '' ? '' : `: ${error}`}`,
        ),
      ),
    ];
  });
}
