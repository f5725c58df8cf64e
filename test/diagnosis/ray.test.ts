import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnosis/diagnose.ts';
import { recogniseEngine } from '../../src/diagnosis/recognise-engine.ts';
import type { Evidence } from '../../src/domain/evidence.ts';
import type { Service } from '../../src/domain/plan.ts';
import { evidenceOf } from './cases.ts';

const HEAD = '192.168.200.12';
const WORKER = '192.168.200.13';
const STAMP = '08-17 10:00:09';
const CORE = '(EngineCore pid=9) ';

function service(rank: number): Service {
  return {
    name: `model-x-r${rank}`,
    node: rank === 0 ? 'spark-a' : 'spark-b',
    rank,
    role: rank === 0 ? 'head' : 'worker',
    engine: 'vllm-ray',
    in: 'docker',
    argv: [],
    env: {},
    secretEnv: {},
    recipe: 'model-x',
    recipeDigest: '',
    effectiveDigest: '',
    edits: [],
    servedName: 'model-x',
    address: rank === 0 ? HEAD : WORKER,
  };
}

/** What the head's log says, over Ray on both Sparks; the worker's own says nothing of vLLM. */
function headSays(lines: readonly string[], ended: Readonly<Record<string, number>> = {}): Evidence {
  const worker = ['Waiting for Ray at 192.168.200.12:20000.'];
  const evidence = evidenceOf({ engine: 'vllm-ray', logs: { head: lines, worker }, ended });
  return { ...evidence, services: [service(0), service(1)] };
}

describe('over Ray', () => {
  it('a worker’s failure in the head’s log is the worker’s, quoted from where it stands', () => {
    const finding = diagnose(
      headSays([
        `${CORE}INFO ${STAMP} [ray_utils.py:354] No current placement group found. Creating a new placement group.`,
        `${CORE}\u001b[36m(RayWorkerProc pid=77, ip=${WORKER})\u001b[0m ValueError: Free memory on device cuda:0 (14.02/121.69 GiB) on startup is less than desired GPU memory utilization (0.85, 103.44 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.`,
      ]),
      { final: true },
    );
    expect(finding).toMatchObject({ node: 'spark-b', rank: 1, role: 'worker' });
    expect(finding.quotes).toMatchObject([{ node: 'spark-a', rank: 0, line: 2 }]);
  });

  it('Gloo’s loopback is laid to the node that is dialled, not to the one that dials', () => {
    const words = `connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:40121`;
    const finding = diagnose(headSays([`${CORE}(RayWorkerProc pid=12) RuntimeError: Gloo ${words}`]), {
      final: true,
    });
    expect(finding).toMatchObject({ cause: 'loopback-address-advertised', node: 'spark-b' });
    expect(finding.advice.join('\n')).not.toContain('SGLANG_HOST_IP');
  });

  it('a node that did not join is named, though its own log says little', () => {
    const gaveUp = [`Ray has 1 of 2 nodes: ${HEAD}`, `Ray has only 1 of 2 nodes: ${HEAD}`];
    expect(diagnose(headSays(gaveUp, { head: 1 }), { final: true })).toMatchObject({
      node: 'spark-b',
      title: 'Ray on spark-b did not join the head',
    });
    const joined = [`Ray has 1 of 2 nodes: ${HEAD}`, `Ray has 2 of 2 nodes: ${HEAD}, ${WORKER}`];
    expect(diagnose(headSays(joined, { head: 1 }), { final: true }).title).not.toContain('did not join');
  });

  it('GPUs that Ray does not have are a cause once nothing moves any more', () => {
    const waits = [
      `Ray has 2 of 2 nodes: ${HEAD}, ${WORKER}`,
      `${CORE}INFO ${STAMP} [ray_utils.py:241] Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check \`ray status\``,
    ];
    expect(diagnose(headSays(waits), { final: true })).toMatchObject({ cause: 'ray-gpu-not-registered' });
  });

  it('another version of Ray is the fault of the node that has it', () => {
    const worker = [
      'Waiting for Ray at 192.168.200.12:20000.',
      'RuntimeError: Version mismatch: The cluster was started with:',
      '    Ray: 2.60.0',
    ];
    const evidence = evidenceOf({ engine: 'vllm-ray', logs: { head: [], worker }, ended: { worker: 1 } });
    expect(diagnose(evidence, { final: true })).toMatchObject({
      cause: 'ray-version-mismatch',
      node: 'spark-b',
    });
  });

  it('is told from vLLM without it by what Ray writes', () => {
    const engine = `${CORE}INFO ${STAMP} [core.py:123] Initializing a V1 LLM engine (v0.28.1) with config: model='/m'`;
    const worker = `${CORE}(RayWorkerProc pid=77, ip=${WORKER}) INFO ${STAMP} [default_loader.py:430] Loading weights took 2.51 seconds`;
    expect(recogniseEngine([[{ text: engine }]])).toBe('vllm');
    expect(recogniseEngine([[{ text: engine }, { text: worker }]])).toBe('vllm-ray');
  });

  it('an image without Ray is told from its shell’s own words', () => {
    const evidence = headSays(['sh: 22: ray: not found'], { head: 127 });
    expect(diagnose(evidence, { final: true })).toMatchObject({ cause: 'package-missing-in-image' });
  });
});
