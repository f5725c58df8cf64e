import { describe, expect, it } from 'vitest';
import { known } from '../../src/domain/facts.ts';
import type { SeenContainer } from '../../src/knowledge/probes/containers.ts';
import { holdersFrom } from '../../src/knowledge/probes/holders.ts';
import { readProcesses } from '../../src/knowledge/probes/process-reading.ts';

const ID = 'e3'.repeat(32);
const MIB = 1024;

/** A container's process of 1200 MiB, and a docker client of that command line in that cgroup. */
function holders(client: readonly string[], cgroup: string) {
  const stdout = [
    'T 1000.0 100',
    `P 300 1 300 300 0 ${1200 * MIB} 5000 node`,
    `P 200 1 200 200 0 ${30 * MIB} 4900 docker`,
    `C 300 0::/system.slice/docker-${ID}.scope`,
    'X 300 0 node\x01serve.js\x01',
    `C 200 0::${cgroup}`,
    `X 200 0 ${client.join('\x01')}\x01`,
    'U Id=vllm.service',
    'U Restart=always',
    'U MainPID=200',
    'W 0 root',
    'E',
    '',
  ].join('\n');
  const container: SeenContainer = {
    runtime: 'docker',
    id: ID,
    name: 'vllm-svc',
    image: 'vllm/vllm-openai',
    state: 'running',
    restartPolicy: 'no',
    autoRemove: true,
    labels: {},
    pid: 300,
    published: [],
  };
  const found = holdersFrom({
    processes: readProcesses({ code: 0, stdout, stderr: '', timedOut: false }),
    containers: known([container]),
    ports: known([]),
    runners: new Map(),
    rootToBeHad: true,
  });
  if (!found.known) throw new Error(found.why);
  return found.value;
}

describe('a container that a service runs by staying its client', () => {
  const service = '/system.slice/vllm.service';

  it.each([
    ['by name', ['/usr/bin/docker', 'run', '--rm', '--name', 'vllm-svc', 'vllm/vllm-openai']],
    ['by name in one word', ['docker', 'run', '--name=vllm-svc', 'vllm/vllm-openai']],
    ['started again', ['/usr/bin/docker', 'start', '-a', 'vllm-svc']],
    ['by a short id', ['/usr/bin/docker', 'start', '-a', ID.slice(0, 12)]],
  ])('is the service\u2019s, so that systemctl stops it: %s', (_, client) => {
    expect(holders(client, service)).toMatchObject([
      {
        name: 'vllm.service',
        pid: 300,
        bytes: 1200 * 2 ** 20,
        owner: { kind: 'unit', unit: 'vllm.service', restart: known('always') },
      },
    ]);
  });

  it.each([
    [
      'a login runs the client',
      ['docker', 'run', '--name', 'vllm-svc', 'x'],
      '/user.slice/user-1000.slice/session-2.scope',
    ],
    ['cron started the client', ['docker', 'run', '--name', 'vllm-svc', 'x'], '/system.slice/cron.service'],
    ['the service only reads its log', ['docker', 'logs', '-f', 'vllm-svc'], service],
    ['the service runs another one', ['docker', 'run', '--name', 'vllm-svc-2', 'x'], service],
  ])('stays a container where %s', (_, client, cgroup) => {
    expect(holders(client, cgroup)).toMatchObject([{ name: 'vllm-svc', owner: { kind: 'container' } }]);
  });
});
