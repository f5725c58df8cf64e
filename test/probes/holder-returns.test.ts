import { describe, expect, it } from 'vitest';
import { known, type Return } from '../../src/domain/facts.ts';
import { holdersFrom } from '../../src/knowledge/probes/holders.ts';
import { readProcesses } from '../../src/knowledge/probes/process-reading.ts';

const LARGE = 900_000;

type Row = {
  readonly pid: number;
  readonly parent?: number;
  readonly name: string;
  readonly args: readonly string[];
};

/** A large process in that cgroup, with these above it, and what would start it again. */
function returnsOf(cgroup: string, above: readonly Row[], units: readonly string[] = []): readonly Return[] {
  const [parent] = above;
  const stdout = [
    'T 1000.0 100',
    `P 300 ${parent?.pid ?? 1} 300 300 1000 ${LARGE} 5000 llama-server`,
    ...above.map(({ pid, parent: up = 1, name }) => `P ${pid} ${up} ${pid} ${pid} 1000 900 4000 ${name}`),
    `C 300 0::${cgroup}`,
    'X 300 1 llama-server\x01-m\x01x.gguf\x01',
    ...above.map(({ pid, args }) => `Y ${pid} ${args.join('\x01')}\x01`),
    'D',
    'R 0',
    'B',
    ...units,
    'W 1000 aurora',
    'E',
    '',
  ].join('\n');
  const holders = holdersFrom({
    processes: readProcesses({ code: 0, stdout, stderr: '', timedOut: false }),
    containers: known([]),
    ports: known([]),
    runners: new Map(),
    rootToBeHad: true,
  });
  const holder = holders.known ? holders.value.find(({ pid }) => pid === 300) : undefined;
  if (holder === undefined) throw new Error('no holder');
  return holder.returns ?? [];
}

const SESSION = '/user.slice/user-1000.slice/session-4.scope';

describe('what would start a process again', () => {
  it('is a shell loop above it, named with its pid and without its secrets', () => {
    const loop = 'while true; do llama-server --api-key abc; sleep 1; done';
    const [found, ...more] = returnsOf(SESSION, [{ pid: 200, name: 'bash', args: ['bash', '-c', loop] }]);
    expect(more).toEqual([]);
    expect(found).toMatchObject({ by: 'loop', keepAway: 'end the loop first: kill 200', handled: false });
    expect(found?.what).toMatch(
      /^a shell loop of aurora, pid 200: bash -c while true; do llama-server --api-key \*\*\*/,
    );
  });

  it('is a loop further up as well, and the command watch', () => {
    const far = returnsOf(SESSION, [
      { pid: 210, parent: 200, name: 'sh', args: ['sh', 'serve.sh'] },
      { pid: 200, name: 'sh', args: ['sh', '-c', 'until false; do sh serve.sh; done'] },
    ]);
    expect(far.map(({ by }) => by)).toEqual(['loop']);
    expect(returnsOf(SESSION, [{ pid: 200, name: 'watch', args: ['watch', 'llama-server'] }])[0]?.by).toBe(
      'loop',
    );
  });

  it('is cron, by its process above or by its cgroup', () => {
    const above = returnsOf('/system.slice/cron.service', [
      { pid: 210, parent: 200, name: 'sh', args: ['/bin/sh', '-c', 'llama-server -m x.gguf'] },
      { pid: 200, name: 'cron', args: ['/usr/sbin/CRON', '-f'] },
    ]);
    expect(above).toMatchObject([{ by: 'cron', what: 'cron, at its next time' }]);
    expect(above[0]?.keepAway).toContain('crontab -e as aurora');
    expect(returnsOf('/system.slice/cron.service', []).map(({ by }) => by)).toEqual(['cron']);
  });

  it('is a supervisor', () => {
    const args = ['/usr/bin/python3', '/usr/bin/supervisord', '-n'];
    expect(returnsOf(SESSION, [{ pid: 200, name: 'supervisord', args }])).toMatchObject([
      { by: 'supervisor', what: 'supervisord, pid 200, which keeps it running' },
    ]);
  });

  it('may be the script that started it, of which that much is said', () => {
    expect(returnsOf(SESSION, [{ pid: 200, name: 'bash', args: ['bash', 'run.sh'] }])).toMatchObject([
      { by: 'parent', what: 'bash run.sh, pid 200, which started it and may do so again' },
    ]);
  });

  it('is nobody where a person typed it, or nothing is above it', () => {
    expect(returnsOf(SESSION, [])).toEqual([]);
    expect(returnsOf(SESSION, [{ pid: 200, name: 'bash', args: ['-bash'] }])).toEqual([]);
    expect(returnsOf(SESSION, [{ pid: 200, name: 'tmux: server', args: ['tmux'] }])).toEqual([]);
    expect(returnsOf(SESSION, [{ pid: 200, name: 'sshd', args: ['sshd: aurora@pts/0'] }])).toEqual([]);
  });
});

describe('what would start a unit again', () => {
  it('is its Restart, and the socket, timer or path that triggers it', () => {
    const found = returnsOf(
      '/system.slice/ollama.service',
      [],
      [
        'U Id=ollama.service',
        'U Restart=always',
        'U MainPID=300',
        'U TriggeredBy=ollama.socket ollama.timer ollama.path something.device',
      ],
    );
    expect(found.map(({ by, what, handled }) => [by, what, handled])).toEqual([
      ['unit', 'Restart=always of ollama.service', true],
      ['socket', 'ollama.socket, at the next connection', true],
      ['timer', 'ollama.timer, when its time comes', true],
      ['path', 'ollama.path, when its file changes', true],
    ]);
  });

  it('of a user is asked of that user’s manager', () => {
    const found = returnsOf(
      '/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service',
      [],
      ['V Id=llama.service', 'V Restart=on-failure', 'V MainPID=300', 'V TriggeredBy=llama.socket'],
    );
    expect(found.map(({ keepAway }) => keepAway)).toEqual([
      'systemctl --user stop llama.service',
      'systemctl --user stop llama.socket',
    ]);
  });
});
