import { describe, expect, it } from 'vitest';
import { type Holder, known } from '../../src/domain/facts.ts';
import { containersProbe, parseContainers } from '../../src/knowledge/probes/containers.ts';
import { holdersFrom } from '../../src/knowledge/probes/holders.ts';
import { readProcesses } from '../../src/knowledge/probes/process-reading.ts';
import { stopCommand } from '../../src/knowledge/signatures/memory/memory-owner.ts';
import { isStoppable, stoppableHolders } from '../../src/planning/allocate.ts';
import { nodeMemory } from '../../src/planning/node-memory.ts';
import { plan } from '../../src/planning/plan.ts';
import { GIB, memoryOf, spark, sparkNodes, sparkRecipe, sparks, wholeModel } from '../pretend/facts.ts';
import { outputOf } from './output-of.ts';

const ID = 'd4'.repeat(32);

/** The holder of one container with 40 GiB and these labels, from what `docker inspect` and /proc say of it. */
function holderOf(labels: Readonly<Record<string, string>>): Holder {
  const parts = [
    ID,
    '/pictures_studio.1.x8zq',
    'studio:3',
    'running',
    300,
    { Name: '', MaximumRetryCount: 0 },
    false,
    labels,
    { '8188/tcp': [{ HostIp: '', HostPort: '8188' }] },
  ];
  const stdout = [
    'T 1000.0 100',
    `P 300 1 300 300 0 ${40 * 2 ** 20} 5000 python3`,
    `C 300 0::/system.slice/docker-${ID}.scope`,
    'X 300 0 python3\x01studio.py\x01',
    'W 0 root',
    'E',
    '',
  ].join('\n');
  const found = holdersFrom({
    processes: readProcesses(outputOf(stdout)),
    containers: parseContainers(outputOf(`asked docker\none docker ${JSON.stringify(parts)}\nend\n`)),
    ports: known([]),
    runners: new Map(),
    rootToBeHad: true,
  });
  const [holder] = found.known ? found.value : [];
  if (holder === undefined) throw new Error('no holder');
  return holder;
}

const TASK = {
  'com.docker.swarm.node.id': 'n1',
  'com.docker.swarm.service.id': 's1',
  'com.docker.swarm.service.name': 'pictures_studio',
  'com.docker.swarm.task': '',
  'com.docker.swarm.task.id': 'x8zq',
  'com.docker.swarm.task.name': 'pictures_studio.1.x8zq',
};
const WHY =
  "it is a task of Docker Swarm's service pictures_studio, which would start another in its place; to have its memory, on a manager of the swarm: docker service scale pictures_studio=0 (a global service: keep it off this node by a constraint)";

describe('a container of a Swarm service', () => {
  it('is told by the labels that containers are asked for', () => {
    expect(containersProbe.script).toContain('{{json .Config.Labels}}');
    expect(holderOf(TASK)).toMatchObject({
      name: 'pictures_studio.1.x8zq',
      owner: { kind: 'container', swarmService: 'pictures_studio' },
      protectedWhy: WHY,
    });
    const plain = holderOf({ 'com.docker.stack.namespace': 'pictures' });
    expect(plain.owner).not.toHaveProperty('swarmService');
    expect(plain.protectedWhy).toBeUndefined();
  });

  it('is never proposed to be stopped, since another would take its place, and is told with what would help', () => {
    const facts = spark('b', { holders: known([holderOf(TASK)]) });
    expect([isStoppable(holderOf(TASK), facts), stoppableHolders(facts)]).toEqual([false, []]);
    expect(isStoppable(holderOf({}), facts)).toBe(true);
    const told = nodeMemory(facts, 200 * GIB);
    expect(told.holders).toMatchObject({ value: [{ stop: 'leave', how: WHY }] });
    expect(told.wouldGo).toEqual(known([]));
  });

  it('blocks a launch that does not fit beside it, with the command and where it is to be run', () => {
    const model = known(wholeModel());
    const memory = known(memoryOf({ total: 119.7, free: 50, available: 52, cached: 3 }));
    const launch = (labels: Readonly<Record<string, string>>) =>
      plan({
        cluster: sparks,
        nodes: sparkNodes,
        recipe: sparkRecipe(),
        recipeDigest: 'aaaabbbbccccdddd',
        edits: [],
        engine: 'sglang',
        facts: [spark('a', { model }), spark('b', { model, memory, holders: known([holderOf(labels)]) })],
        sudo: {},
        replace: false,
      });
    const made = launch(TASK);
    expect(made.phases.flatMap(({ steps }) => steps)).toEqual([]);
    expect(made.blockers).toMatchObject([{ cause: 'insufficient-free-memory-at-startup', node: 'spark-b' }]);
    expect(made.blockers[0]?.advice).toContain(
      `pictures_studio.1.x8zq holds 40.0 GiB there and is left alone: ${WHY}.`,
    );
    expect(launch({}).phases.flatMap(({ steps }) => steps.map(({ kind }) => kind))).toContain(
      'stop-container',
    );
  });

  it('blocks the port that it has, with the same words', () => {
    const holder = holderOf(TASK);
    const port = { address: '0.0.0.0', port: 30000, pid: known(300), process: known('docker-proxy') };
    const made = plan({
      cluster: sparks,
      nodes: sparkNodes,
      recipe: sparkRecipe({ serve: { port: 30000, listen: 'all' } }),
      recipeDigest: 'aaaabbbbccccdddd',
      edits: [],
      engine: 'sglang',
      facts: [spark('a', { holders: known([holder]), ports: known([port]) }), spark('b')],
      sudo: {},
      replace: false,
    });
    const [blocker] = made.blockers;
    expect(blocker).toMatchObject({ cause: 'port-already-in-use', node: 'spark-a' });
    expect(blocker?.advice[1]).toBe(`pictures_studio.1.x8zq is left alone here: ${WHY}.`);
  });

  it('is not said to be stopped by docker stop in a finding, and its name is a word for the shell', () => {
    expect(stopCommand(holderOf(TASK))).toBe(
      'docker service scale pictures_studio=0  # on a manager of the swarm',
    );
    expect(stopCommand(holderOf({}))).toBe('docker stop pictures_studio.1.x8zq');
    const odd = holderOf({ 'com.docker.swarm.service.name': 'a b; reboot' });
    expect(stopCommand(odd)).toBe("docker service scale 'a b; reboot'=0  # on a manager of the swarm");
  });
});
