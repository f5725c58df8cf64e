import { valueIf } from '../../../domain/facts.ts';
import { factsOf, nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const registration = pattern(
  ['ibv_reg_', 'ibv_create_', "Couldn't allocate MR", "Couldn't create CQ", 'ibv_alloc_'],
  /ibv_(?:reg_(?:mr|dmabuf_mr)\w{0,80}|create_(?:cq|qp|srq)\w{0,80}|alloc_pd) failed(?: with (?:error )?(?:(?<number>\d{1,20}) )?(?<reason>[A-Z][A-Za-z ]{0,200}?))?(?: errno \d{1,20})?(?:[,.]|$)|Couldn't allocate MR|Couldn't create CQ/,
);
const limit = pattern(
  ['RLIMIT_MEMLOCK', 'max locked memory', 'Max locked memory', 'memlock', 'locked memory'],
  /RLIMIT_MEMLOCK(?: is|:)? ?(?<bytes>\d{1,20}|unlimited|infinity)|[Mm]ax locked memory\D{0,60}(?<kib>\d{1,20}|unlimited)|memlock\s{0,60}[=:]?\s{0,60}(?<set>-?\d{1,20}|unlimited)|locked memory limit|Unable to (?:lock|pin) memory/,
);
const kernel = pattern(
  ['-nvidia', '-generic', 'Linux version'],
  /\b(?<kernel>\d{1,20}\.\d{1,20}\.\d{1,20}-\d{1,20}-(?:nvidia|generic|oem)[\w-]{0,200})|Linux version (?<version>\d{1,20}\.\d{1,20}\.\d{1,20}\S{0,300})/,
);
const cma = pattern('CmaTotal', /CmaTotal:\s{1,60}0 kB/);
const kernelSays = pattern(
  ['mlx5_ib', 'create_mkey', 'reg_create', 'mlx5_core'],
  /(?:mlx5_ib|mlx5_core).{0,400}(?:reg_create|create_mkey|reg_user_mr|alloc_mr)\S{0,300}.{0,400}(?:failed|-\d{1,20})/,
);
const weightsDone = pattern(
  ['Loading weights took', 'Load weight end', 'Model loading took'],
  /^Loading weights took |^Load weight end\.|^Model loading took /,
);

const trouble = pattern(
  ['NV_ERR_NO_MEMORY', 'unhandled system error', 'ncclSystemError', 'Cannot allocate memory'],
  /NV_ERR_NO_MEMORY|NCCL error.{0,400}unhandled system error|ncclSystemError|NCCL.{0,400}Cannot allocate memory/,
);

/** Kernels from this one on are seen to fail at registration where 6.17 did not (GB10, September 2026). */
const REGRESSED = 7;

/** Memory cannot be registered for RDMA: a limit on locked memory, or a kernel that refuses without one. */
export const memoryRegistration: Signature = {
  name: 'memory-registration',
  causes: ['memlock-limit-too-low', 'kernel-regression-rdma-registration'],
  seenOn: 'NCCL 2.19 to 2.30, 2023 to 2026; kernel 7.0.0-1019-nvidia on GB10, September 2026',
  source: 'NCCL misc/ibvwrap.cc; libibverbs init.c; NVIDIA/open-gpu-kernel-modules#1358',
  looks: [
    'NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory',
    'libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.',
  ],
  patterns: [registration, limit, kernel, cma, kernelSays, weightsDone, trouble],
  match(view) {
    const all = [...view.find(registration), ...view.find(kernelSays)].toSorted(
      (a, b) => a.line.at - b.line.at,
    );
    const first =
      all.find((found) => found.message.includes('ibv_') || found.message.startsWith("Couldn't")) ?? all[0];
    if (first === undefined) return byKernel(view);
    const low = view.find(limit).find((found) => found.node === first.node && isLow(found));
    if (low !== undefined) return memlock(first, [first, low], low, 0.95);
    const free = view.find(limit).find((found) => isFree(found));
    const suspect = regressed(view, first.node);
    const cmaGone = view.find(cma).find((found) => found.node === first.node);
    const late =
      !['start', 'rendezvous'].includes(first.stage) &&
      view.find(weightsDone).some((found) => found.node === first.node);
    const other = /address|argument|permitted|denied/.test((first.groups['reason'] ?? '').toLowerCase());
    if (suspect !== undefined || cmaGone !== undefined || free !== undefined || late || other) {
      const shown = [first, suspect?.found, cmaGone, free, ...view.find(kernelSays).slice(0, 1)];
      const sure = suspect !== undefined || cmaGone !== undefined ? 0.9 : free !== undefined ? 0.75 : 0.6;
      return regression(
        view,
        first,
        shown.filter((found) => found !== undefined),
        suspect?.version,
        sure,
      );
    }
    return memlock(first, [first], undefined, 0.75);
  },
};

/** The kernel itself is named, and what fails is what is known of it: memory right after the rendezvous. */
function byKernel(view: View): Match | undefined {
  const failed = view.find(trouble).find((found) => !/WARN.*socket|remote process/.test(found.message));
  if (failed === undefined || view.serves) return undefined;
  // Alone, without RDMA, it is the driver that got no memory.
  if (failed.message.includes('NV_ERR') && nodesOf(view.evidence).length < 2) return undefined;
  const suspect = regressed(view, failed.node);
  const gone = view.find(cma).find((found) => found.node === failed.node);
  const line = suspect?.found ?? gone;
  return line === undefined ? undefined : regression(view, failed, [failed, line], suspect?.version, 0.75);
}

function isLow(found: Found): boolean {
  const { bytes, kib, set } = found.groups;
  const value = bytes ?? set ?? (kib === undefined ? undefined : String(Number(kib) * 1024));
  const size = Number(value ?? Number.NaN);
  return (size >= 0 && size < 2 ** 32) || /locked memory limit|Unable to (?:lock|pin)/.test(found.message);
}

function isFree(found: Found): boolean {
  return Object.values(found.groups).some(
    (value) => value === 'unlimited' || value === 'infinity' || value === '-1',
  );
}

function regressed(
  view: View,
  node: string,
): { readonly version: string; readonly found: Found | undefined } | undefined {
  const said = view.find(kernel).find((found) => found.node === node && major(nameOf(found)) >= REGRESSED);
  if (said !== undefined) return { version: nameOf(said), found: said };
  const seen = valueIf(factsOf(view.evidence, node)?.host)?.kernel ?? view.version(node, 'kernel');
  return seen !== undefined && major(seen) >= REGRESSED ? { version: seen, found: undefined } : undefined;
}

function nameOf(found: Found): string {
  return found.groups['kernel'] ?? found.groups['version'] ?? '';
}

function major(version: string): number {
  return Number(/^\d+/.exec(version)?.[0] ?? 0);
}

function memlock(first: Found, shown: readonly Found[], low: Found | undefined, confidence: number): Match {
  const { node } = first;
  const value = low?.groups['bytes'] ?? low?.groups['kib'] ?? low?.groups['set'];
  return {
    cause: 'memlock-limit-too-low',
    node,
    shown,
    title: `The rank on ${node} may not lock as much memory as RDMA needs`,
    why: `Registering memory for RDMA pins it, and the limit on locked memory ${value === undefined ? 'is reached' : `stands at ${value}`}.`,
    advice: [
      'Start the container with --ulimit memlock=-1 and --cap-add IPC_LOCK; firstlight up does so for containers.',
      `For a plain process on ${node}: "* - memlock unlimited" in /etc/security/limits.d/rdma.conf, then log in anew; ulimit -l must print unlimited.`,
    ],
    values: value === undefined ? {} : { limit: value },
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'kernel-regression-rdma-registration', confidence: 1 - confidence }],
  };
}

function regression(
  view: View,
  first: Found,
  shown: readonly Found[],
  version: string | undefined,
  confidence: number,
): Match {
  const everywhere = nodesOf(view.evidence).length > 1;
  return {
    cause: 'kernel-regression-rdma-registration',
    node: everywhere ? undefined : first.node,
    ...(everywhere ? { atFault: 'both' } : {}),
    shown,
    title: `The kernel ${version === undefined ? 'on' : `${version} on`} ${first.node} refuses to register memory for RDMA`,
    why: 'The limit on locked memory is not in the way, and the same call works under kernels of the 6.x line: 7.0 kernels for the GB10 are known to fail here, often only after the weights are read.',
    advice: [
      `On each node: uname -r; boot the kernel before (for a Spark 6.17.0-…-nvidia): sudo grub-reboot, or sudo apt install linux-image-6.17.0-…-nvidia, and hold it with sudo apt-mark hold.`,
      'firstlight plan shows the kernel of each node; the ranks get past the rendezvous when it worked.',
    ],
    values: version === undefined ? {} : { kernel: version },
    confidence,
    specificity: 3,
    alternatives: [{ cause: 'memlock-limit-too-low', confidence: 1 - confidence }],
  };
}
