import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { offlineEvidence } from '../../src/diagnosis/offline.ts';
import { recogniseEngine } from '../../src/diagnosis/recognise-engine.ts';
import { verdictOf } from '../../src/diagnosis/verdict.ts';
import { familyOf } from '../../src/knowledge/causes.ts';
import { linesOf } from '../diagnosis/corpus.ts';
import { answer } from './tell.ts';

const HEALTHY = new URL('../samples/healthy/', import.meta.url);

/** Lines that people and watchers add to logs, and that mean nothing while all goes well. */
const BESIDE: readonly string[] = [
  'Mem:             121          96           3           0          24          22',
  'MemAvailable:   22118332 kB',
  'Cached:         96118332 kB',
  '|    0   N/A  N/A            7741      C   VLLM::EngineCore                     104277MiB |',
  '90211, sglang::scheduler_TP1, 96311 MiB',
  '|  No running processes found                                                             |',
  'vm.min_free_kbytes = 67584',
  '| NVIDIA-SMI 580.173.02             Driver Version: 580.173.02     CUDA Version: 13.0     |',
  'earlyoom[811]: mem avail: 41000 of 122570 MiB (33.45%), swap free: 16383 of 16383 MiB (100.00%)',
  'systemd[1]: Started systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer.',
  '"OOMKilled": false,',
  'spark-a:210:388 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to enp1s0f0np0',
  'spark-a:210:388 [0] NCCL INFO NCCL_IB_HCA set by environment to rocep1s0f0,roceP2p1s0f0',
  'spark-a:210:388 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3',
  'spark-a:210:388 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.',
  'spark-a:210:388 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[0] [send] via NET/IB/1',
  '3: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000',
  'Status: inactive',
  'max locked memory           (kbytes, -l) unlimited',
  'Linux spark-a 6.17.0-1008-nvidia #8-Ubuntu SMP PREEMPT_DYNAMIC aarch64 GNU/Linux',
  'tmpfs            61G     0   61G   0% /dev/shm',
  'export NCCL_SOCKET_IFNAME=enp1s0f0np0',
  'WARNING 10-02 07:11:05 [arg_utils.py:99] VLLM_HOST_IP is not set, using the address of the default route.',
  'Restarting nginx.service: succeeded.',
  'PING spark-b (192.168.200.13) 56(84) bytes of data.',
  '64 bytes from 192.168.200.13: icmp_seq=1 ttl=64 time=0.28 ms',
  'Connection to 192.168.200.13 22 port [tcp/ssh] succeeded!',
  '[AutoTuner]: Tuning fp4_gemm: 100%|##########| 12/12 [00:03<00:00,  4.90profile/s]',
  'WARNING 10-02 07:11:05 [ray_utils.py:341] Tensor parallel size (2) exceeds available GPUs (1). This may result in Ray placement group allocation failures.',
  "(EngineCore pid=9) INFO 10-02 19:00:09 [ray_utils.py:241] Waiting for creating a placement group of specs for 20 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}].",
];

type Logs = Readonly<Record<string, readonly string[]>>;

const jobs = readdirSync(HEALTHY).map((name) => {
  const folder = new URL(`${name}/`, HEALTHY);
  const files = readdirSync(folder).filter((file) => file.endsWith('.log'));
  const logs: Logs = Object.fromEntries(
    files.map((file) => [
      file.replace('.log', ''),
      readFileSync(new URL(file, folder), 'utf8').trimEnd().split('\n'),
    ]),
  );
  return [name, logs] as const;
});

/** The answer to logs that were still written to a moment ago. */
function answerNow(logs: Logs): string {
  const handed = Object.entries(logs).map(([name, lines]) => ({
    name,
    lines: linesOf(Buffer.from(`${lines.join('\n')}\n`)),
    changedAt: 0,
  }));
  const at = Math.max(...handed.flatMap(({ lines }) => lines.at(-1)?.at ?? 0));
  const engine = recogniseEngine(handed.map(({ lines }) => lines)) ?? 'vllm';
  const logsNow = handed.map((one) => ({ ...one, changedAt: at }));
  const { finished: _over, ...running } = offlineEvidence(logsNow, { engine, now: at + 1000 });
  return verdictOf(running).cause;
}

/** Families of this folder's signatures. */
const OURS = ['A', 'B', 'C', 'D', 'E'];

function withLine(logs: Logs, line: string, share: number): Logs {
  return Object.fromEntries(
    Object.entries(logs).map(([name, lines]) => {
      const at = Math.floor(lines.length * share);
      return [name, [...lines.slice(0, at), line, ...lines.slice(at)]];
    }),
  );
}

describe('a healthy job', () => {
  it.each(jobs)('%s stays healthy beside every line that means nothing', (_name, logs) => {
    for (const line of BESIDE)
      for (const share of [0, 0.5, 1])
        expect(answer(withLine(logs, line, share)).cause, line).toBe('no-fault');
  });

  it.each(jobs)('%s is not taken for a failure of ours on its way', (_name, logs) => {
    for (const share of [0.2, 0.4, 0.6, 0.8]) {
      const begun = Object.fromEntries(
        Object.entries(logs).map(([name, lines]) => [name, lines.slice(0, Math.ceil(lines.length * share))]),
      );
      for (const line of ['', ...BESIDE]) {
        const said = answerNow(withLine(begun, line, 1));
        const family = familyOf(said) ?? '';
        expect(OURS.includes(family) ? `${said} after ${share} with "${line}"` : '').toBe('');
      }
    }
  });
});
