import { describe, expect, it } from 'vitest';
import { known } from '../../src/domain/facts.ts';
import type { SeenContainer } from '../../src/knowledge/probes/containers.ts';
import { holdersFrom } from '../../src/knowledge/probes/holders.ts';
import type { ProcessReading, ProcessRow } from '../../src/knowledge/probes/process-reading.ts';

const SESSION = ['1:name=systemd:/user.slice/user-1000.slice/session-4.scope'];
const row = (pid: number, parent: number): ProcessRow => ({
  pid,
  parent,
  group: pid,
  session: pid,
  uid: 1000,
  residentBytes: 2 ** 30,
  startTicks: String(pid),
  name: 'python3',
});
const READING: ProcessReading = {
  rows: new Map([
    [1, row(1, 0)],
    [70, { ...row(70, 1), residentBytes: 2 ** 20, name: 'conmon' }],
    [71, row(71, 70)],
    [72, row(72, 71)],
    [90, row(90, 1)],
  ]),
  details: new Map(
    [71, 72, 90].map((pid) => [
      pid,
      { cgroup: SESSION, args: ['python3', 'serve.py'], environmentReadable: true },
    ]),
  ),
  gpuBytes: known(new Map()),
  units: new Map(),
  unitTrouble: '',
  users: new Map([[1000, 'aurora']]),
  uptimeSeconds: 100,
  ticksPerSecond: 100,
  ownCgroup: SESSION,
  marks: new Map(),
  gpuNames: new Map(),
  parents: new Map(),
};
const NOTES: SeenContainer = {
  runtime: 'podman',
  id: 'a'.repeat(64),
  name: 'notes',
  image: 'localhost/notes',
  state: 'running',
  restartPolicy: 'no',
  autoRemove: false,
  labels: {},
  pid: 71,
  published: [],
};

describe('podman without root on a host with cgroup v1, which leaves containers in the cgroup of the login', () => {
  const owners = (containers: readonly SeenContainer[]) => {
    const holders = holdersFrom({
      processes: known(READING),
      containers: known(containers),
      ports: known([]),
      runners: new Map(),
      rootToBeHad: true,
    });
    return holders.known ? holders.value.map(({ name, owner, bytes }) => [name, owner.kind, bytes]) : holders;
  };

  it('takes the main process and its children for the container, and nobody else', () => {
    expect(owners([NOTES])).toEqual([
      ['notes', 'container', 2 ** 31],
      ['python3 serve.py', 'process', 2 ** 30],
    ]);
  });

  it('takes nothing for a container that has ended, whose pid somebody else may have', () => {
    expect(owners([{ ...NOTES, state: 'exited' }])).not.toContainEqual(expect.arrayContaining(['notes']));
  });
});
