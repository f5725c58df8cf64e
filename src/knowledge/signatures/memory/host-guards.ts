import { ADDRESS_FORMS, addressBook, nodeAt } from '../network/addresses.ts';
import { pattern, type Signature } from '../signature.ts';

const ray = pattern(
  [
    'memory pressure (OOM)',
    'running low on memory',
    'ray.exceptions.OutOfMemoryError',
    'memory_monitor',
    'memory usage threshold',
    'NODE_OUT_OF_MEMORY',
  ],
  /(?<count>\d{1,20}) Workers? \(tasks \/ actors\) killed due to memory pressure|killed due to the node running low on memory|ray\.exceptions\.OutOfMemoryError|Memory on the node \(IP: (?<ip>[\d.a-fA-F:]{1,200})|memory usage above threshold|exceeds the memory usage threshold|NODE_OUT_OF_MEMORY|[Kk]illing (?:a |the )?worker.{0,400}memory (?:monitor|pressure|usage)/,
);
const rayNode = pattern(
  ['(ID: ', '(IP: '],
  /\b(?:on|at) (?:the )?node \((?:ID: \w{1,80}, )?IP: (?<ip>[\d.a-fA-F:]{1,200})/,
);
const daemon = pattern(
  [
    'earlyoom',
    'systemd-oomd',
    'nohang',
    'oomd[',
    'oomd:',
    'bustd',
    'low memory!',
    'memory guard',
    'mem-guard',
    'memguard',
    'memory watchdog',
    'oom guard',
  ],
  /(?:earlyoom|nohang|bustd)\S{0,300}?(?:\[\d{1,20}\])?: .{0,400}(?:[Ss]ending SIG|low memory|Implement|killed|sent SIG|process exited)|systemd-oomd(?:\[\d{1,20}\])?: .{0,400}[Kk]illed|systemd-oomd killed (?<count>\d{1,20})|killed by systemd-oomd|(?:oom|mem|memory)[ -]?(?:guard|watchdog)\S{0,300}?:? .{0,400}(?:[Kk]ill|SIG(?:TERM|KILL)|stopp|terminat)/i,
);
const swept = pattern(
  'sending SIG',
  /sending SIG(?<signal>TERM|KILL) to process (?<pid>\d{1,20})(?: uid \d{1,20})? "?(?<name>[^":]{1,200})/,
);

/** Ray's own watch over a node's memory ended a worker; it counts page cache as used. */
export const rayMemoryMonitor: Signature = {
  name: 'ray-memory-monitor',
  causes: ['ray-memory-monitor-killed-worker'],
  seenOn: 'Ray 2.44 to 2.60, 2025 and 2026',
  source: "Ray's raylet/node_manager.cc, worker_killing_policy.cc, python/ray/exceptions.py",
  looks: [
    'ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.',
    '(raylet) node_manager.cc: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8289, IP: 10.0.0.2)',
  ],
  whileServing: true,
  patterns: [ray, rayNode, ...ADDRESS_FORMS],
  match(view) {
    const all = view.find(ray);
    const first = all[0];
    if (first === undefined) return undefined;
    const named = [...all, ...view.find(rayNode)].find((found) => found.groups['ip'] !== undefined);
    const node = nodeAt(addressBook(view), view.evidence, first, named?.groups['ip']);
    return {
      cause: 'ray-memory-monitor-killed-worker',
      node,
      shown: all.slice(0, 3),
      title: `Ray's memory monitor ended the worker on ${node}`,
      why: 'It ends workers once 95 % of the host is used, and counts the weights in unified memory and the page cache for reading them as used. The other ranks just stop advancing.',
      advice: [
        'Set RAY_memory_monitor_refresh_ms: "0" in env of the recipe, so that ray start has it on every node.',
        'Do not lower memory.fraction for it: that starves the KV cache later.',
      ],
      confidence: 0.95,
      specificity: 3,
    };
  },
};

/** earlyoom, systemd-oomd or a guard of somebody's own ended a rank: no line of the kernel tells of it. */
export const userspaceOom: Signature = {
  name: 'userspace-oom',
  causes: ['userspace-oom-daemon-killed-worker'],
  seenOn: 'earlyoom 1.7 and 1.8, systemd-oomd 255, 2026',
  source: 'earlyoom kill.c, systemd oomd-util.c and oomd-manager.c',
  looks: [
    'earlyoom[1187]: sending SIGTERM to process 48213 uid 0 "VLLM::Worker_TP": badness 1243, VmRSS 9120 MiB',
    'systemd-oomd[812]: Killed /system.slice/docker-3f1c.scope due to memory pressure for /system.slice being 68.32% > 50.00% for > 20s with reclaim activity',
  ],
  whileServing: true,
  patterns: [daemon, swept],
  match({ find }) {
    const all = find(daemon);
    const first = all.find((found) => /sending SIG|[Kk]illed|kill/.test(found.message)) ?? all[0];
    if (first === undefined) return undefined;
    const { node } = first;
    const name = /earlyoom|systemd-oomd|nohang|bustd/.exec(first.message)?.[0] ?? 'A guard';
    const victim = find(swept).find((found) => found.node === node)?.groups['name'];
    const shown = all.filter((found) => found.node === node);
    return {
      cause: 'userspace-oom-daemon-killed-worker',
      node,
      shown: [first, ...shown.filter((found) => found !== first)].slice(0, 3),
      title: `${name} on ${node} ended ${victim === undefined ? 'the rank' : victim} because memory was low`,
      why: 'It acts on shares of the whole memory that a model on unified memory exceeds on purpose; the kernel itself had not run out.',
      advice: [
        name === 'systemd-oomd'
          ? `On ${node}: sudo systemctl mask --now systemd-oomd (undo with unmask)`
          : name === 'earlyoom'
            ? `On ${node}: sudo systemctl disable --now earlyoom, or give it --avoid '(VLLM|sglang|ray)' in /etc/default/earlyoom`
            : `On ${node}: take the engine out of what that guard may end, or lower its limits.`,
        'Leave real room instead: a lower memory.fraction, or a larger memory.reserve in the recipe.',
      ],
      values: { daemon: name, ...(victim === undefined ? {} : { victim }) },
      confidence: 0.95,
      specificity: 3,
    };
  },
};
