/** Families of causes, by the letters that a finding carries. */
export const FAMILIES = {
  A: 'Memory',
  B: 'KV cache and graphs',
  C: 'Rendezvous, addresses, ranks',
  D: 'Ray',
  E: 'NCCL and RDMA',
  F: 'Kernels, toolchain, driver',
  G: 'Image, packages, container runtime',
  H: 'Flags, model support, layout',
  I: 'Model files and hub',
  J: 'SSH and remote execution',
  K: 'Serving',
  L: 'Power and heat',
  M: 'False alarms',
} as const;

export type Family = keyof typeof FAMILIES;

/** Where a fault lies when a signature says nothing else; `rank` is the node that shows it. */
export type Place = 'rank' | 'launcher' | 'network' | 'client' | 'both' | 'none';

/** One cause of the closed list. */
export type Cause = {
  readonly slug: string;
  readonly family: Family | undefined;
  /** Who can end it: this tool by a remedy or a step, a person, or no one because nothing is broken. */
  readonly cure: 'firstlight' | 'person' | 'no-one';
  readonly place: Place;
  /** What it means, one sentence. */
  readonly meaning: string;
};

type Row = readonly [slug: string, cure: Cause['cure'], place: Place, meaning: string];

// biome-ignore format: a table
const LIST: Readonly<Record<Family, readonly Row[]>> = {
  A: [
    ['page-cache-hides-unified-memory', 'firstlight', 'rank', 'On unified memory, file pages in the cache count as taken for the GPU, although the kernel would give them back.'],
    ['insufficient-free-memory-at-startup', 'firstlight', 'rank', 'Less memory is free than the engine asks for at its start, and no single holder explains it.'],
    ['leftover-process-holds-gpu-memory', 'firstlight', 'rank', 'Another process, often of an earlier run, still holds the memory.'],
    ['gpu-memory-still-being-reclaimed', 'firstlight', 'rank', 'The holder is gone, but the driver has not given its memory back yet.'],
    ['vm-watermark-reserve-too-high', 'person', 'rank', 'The kernel keeps so large a reserve (`vm.min_free_kbytes`) that too little counts as free.'],
    ['driver-version-regression', 'firstlight', 'rank', 'This driver version leaves less memory or works worse than the one before.'],
    ['oom-killer-during-weight-load', 'firstlight', 'rank', 'The kernel ended a rank because the host\'s memory ran out while weights were read.'],
    ['ray-memory-monitor-killed-worker', 'firstlight', 'rank', 'Ray\'s memory monitor ended a worker, counting page cache as used.'],
    ['userspace-oom-daemon-killed-worker', 'person', 'rank', 'A daemon such as earlyoom or systemd-oomd ended a rank.'],
    ['unified-memory-exhausted-host-freeze', 'firstlight', 'rank', 'The shared memory ran out so far that the host stopped answering.'],
    ['unified-memory-exhausted-driver-alloc', 'firstlight', 'rank', 'The driver could not get memory although the host reports some as available.'],
    ['jit-compile-parallelism-oom', 'firstlight', 'rank', 'Too many compilers at once used up the memory while kernels were built.'],
    ['device-allocation-failed-sigkill-unattributed', 'firstlight', 'rank', 'A GPU allocation failed and a SIGKILL followed whose sender is not known.'],
  ],
  B: [
    ['kv-cache-too-small-for-max-len', 'firstlight', 'rank', 'What is left for the KV cache does not hold one request of the wanted context.'],
    ['kv-cache-negative-other-process-counted', 'firstlight', 'rank', 'Another process\'s memory was counted as the engine\'s own, so the budget for the KV cache fell under nought.'],
    ['gpu-memory-utilization-too-low', 'firstlight', 'rank', 'The share of memory given to the engine hardly holds the weights.'],
    ['kv-pool-size-not-positive', 'firstlight', 'rank', 'After the weights nothing is left for SGLang\'s KV pool.'],
    ['cuda-graph-capture-oom', 'firstlight', 'rank', 'Memory ran out while CUDA graphs were captured.'],
    ['too-many-sequences-for-memory', 'firstlight', 'rank', 'Working memory for that many sequences at once is not there.'],
    ['cuda-graph-capture-with-host-staged-nccl', 'firstlight', 'both', 'Graph capture breaks because NCCL stages its data through the host meanwhile.'],
  ],
  C: [
    ['loopback-address-advertised', 'firstlight', 'rank', 'A rank told the others an address of 127.0.0.0/8 or ::1, where each finds only itself.'],
    ['wrong-network-address-advertised', 'firstlight', 'rank', 'A rank told the others an address of a network that they do not share.'],
    ['hostname-resolves-to-wrong-address', 'firstlight', 'rank', 'A node\'s name leads to an address that is not the node\'s.'],
    ['wrong-socket-interface', 'firstlight', 'both', 'An interface was asked for that the node does not have, or in a form the library does not take.'],
    ['duplicate-node-rank', 'firstlight', 'launcher', 'Two nodes were started under the same rank.'],
    ['duplicate-host-ip', 'firstlight', 'launcher', 'Several nodes present themselves under one address.'],
    ['head-store-restarted-while-worker-attached', 'firstlight', 'rank', 'The head began anew while a worker still hung on its old store.'],
    ['port-already-in-use', 'firstlight', 'rank', 'Something else listens on a port that the engine needs.'],
    ['firewall-blocks-ports', 'person', 'network', 'Packets to the right address and port are dropped on the way.'],
    ['container-network-isolated', 'firstlight', 'both', 'The container has a network of its own, in which the other nodes are not found.'],
    ['ranks-with-different-args', 'firstlight', 'launcher', 'The ranks were started with arguments that do not fit together.'],
    ['rank-local-kernel-cache-drift', 'firstlight', 'both', 'One rank compiles or tunes kernels that the others have cached, and they fall out of step.'],
    ['env-not-set-in-container', 'firstlight', 'rank', 'A variable that was set on the host did not get into the container.'],
  ],
  D: [
    ['ray-version-mismatch', 'person', 'rank', 'The nodes run different versions of Ray or Python.'],
    ['ray-gpu-not-registered', 'firstlight', 'rank', 'Ray does not know of a GPU that the node has.'],
    ['process-limit-too-low', 'firstlight', 'rank', 'A limit on processes or threads stops new ones from being made.'],
  ],
  E: [
    ['wrong-rdma-device-list', 'firstlight', 'both', 'NCCL was given RDMA devices that do not lead to the peer, or that the node does not have.'],
    ['wrong-gid-index', 'firstlight', 'both', 'The chosen GID belongs to another RoCE version or address.'],
    ['mtu-mismatch', 'person', 'network', 'The two ends of a link have different MTUs.'],
    ['rdma-cabling-topology', 'firstlight', 'network', 'The cables join ports in a way that NCCL\'s pairing does not expect.'],
    ['rdma-not-available-in-container', 'firstlight', 'both', 'The container has no RDMA devices or libraries, so NCCL uses TCP.'],
    ['rdma-underused-one-half-or-small-mtu', 'firstlight', 'both', 'RDMA works, but over half the link or with small packets.'],
    ['lossless-ethernet-config-lost', 'firstlight', 'network', 'A switch or NIC lost the settings that keep RoCE free of loss.'],
    ['memlock-limit-too-low', 'firstlight', 'rank', 'Memory cannot be pinned because the memlock limit is too low.'],
    ['kernel-regression-rdma-registration', 'firstlight', 'both', 'This kernel fails to register memory for RDMA where an older one did.'],
    ['nccl-build-incompatible-with-platform', 'firstlight', 'both', 'This build of NCCL hangs or fails on this platform.'],
    ['nccl-version-mismatch-across-nodes', 'person', 'both', 'The nodes run NCCL versions that do not talk to each other.'],
    ['stale-nccl-config-in-image', 'firstlight', 'both', 'A configuration file of NCCL in the image overrides what was set.'],
    ['shared-memory-too-small', 'firstlight', 'rank', '/dev/shm in the container is too small.'],
  ],
  F: [
    ['kernels-not-built-for-sm121', 'firstlight', 'rank', 'The kernels in the image were not built for the GB10.'],
    ['kernels-exceed-sm121-shared-memory', 'firstlight', 'rank', 'A kernel wants more shared memory than the GB10 has.'],
    ['bundled-ptxas-too-old', 'firstlight', 'rank', 'The ptxas that comes with Triton does not know the GB10.'],
    ['image-toolchain-newer-than-driver', 'person', 'rank', 'The image\'s CUDA compiles code that the driver cannot load.'],
    ['driver-too-old', 'person', 'rank', 'The NVIDIA driver is older than the image\'s CUDA needs.'],
    ['jit-cache-shared-between-nodes', 'firstlight', 'rank', 'Caches of compiled kernels lie on a share that several nodes write to.'],
    ['attention-backend-unsupported', 'firstlight', 'rank', 'The chosen attention backend does not support this model or GPU.'],
    ['experimental-kernel-crash', 'firstlight', 'rank', 'A kernel that is marked experimental crashed.'],
    ['cuda-library-version-mismatch', 'person', 'rank', 'A library wants another CUDA version than the image has.'],
    ['build-tool-missing', 'person', 'rank', 'A tool needed to compile kernels at run time is not installed.'],
  ],
  G: [
    ['image-wrong-architecture', 'person', 'rank', 'The image is built for another processor.'],
    ['package-missing-in-image', 'person', 'rank', 'A program or Python package is missing where the rank runs.'],
    ['no-wheel-for-aarch64', 'person', 'rank', 'A Python package has no build for ARM.'],
    ['cpu-only-torch-wheel', 'person', 'rank', 'The installed torch was built without CUDA.'],
    ['nvidia-runtime-not-configured', 'person', 'rank', 'docker does not know how to give GPUs to a container.'],
    ['gpu-not-visible-in-container', 'person', 'rank', 'The rank sees no GPU.'],
    ['container-lost-gpu-access', 'firstlight', 'rank', 'A running container lost the GPU that it had.'],
    ['docker-group-missing', 'person', 'rank', 'The user may not talk to docker.'],
    ['cache-directory-not-writable', 'firstlight', 'rank', 'A cache folder belongs to another user.'],
    ['env-file-crlf-or-bom', 'person', 'launcher', 'A file of variables has line ends or marks of Windows in it.'],
    ['clock-skew', 'person', 'rank', 'A node\'s clock is so wrong that certificates seem invalid.'],
  ],
  H: [
    ['flag-unknown-to-this-version', 'firstlight', 'rank', 'The installed engine does not know a flag or its value.'],
    ['flag-of-other-engine', 'firstlight', 'rank', 'The flag belongs to the other engine.'],
    ['flag-misspelled', 'firstlight', 'rank', 'The flag exists, written otherwise.'],
    ['transformers-too-old', 'person', 'rank', 'transformers is older than the model.'],
    ['tokenizers-too-old', 'person', 'rank', 'tokenizers cannot read the model\'s tokenizer file.'],
    ['model-not-supported-by-engine', 'firstlight', 'rank', 'The engine does not have the model\'s architecture.'],
    ['trust-remote-code-missing', 'person', 'rank', 'The model brings its own code, and the engine was not told to trust it.'],
    ['remote-code-module-missing-on-worker', 'person', 'rank', 'The model\'s own code reached the head but not a worker.'],
    ['tp-size-not-divisible', 'firstlight', 'rank', 'The attention heads, or the ranks over the nodes, do not divide evenly.'],
    ['tp-breaks-quantization-blocks', 'firstlight', 'rank', 'Split over that many ranks, weights no longer hold whole quantisation blocks.'],
    ['more-ranks-than-gpus', 'person', 'launcher', 'More ranks are wanted than there are GPUs.'],
  ],
  I: [
    ['model-path-missing-on-worker', 'person', 'rank', 'A rank does not find the model\'s folder at its path.'],
    ['weights-are-lfs-pointers', 'person', 'rank', 'The weight files are git-lfs pointers.'],
    ['weights-truncated', 'person', 'rank', 'A weight file is shorter than it says.'],
    ['unbalanced-load-barrier-timeout', 'firstlight', 'rank', 'One rank read its weights so much slower that another stopped waiting.'],
    ['hf-gated-or-unauthenticated', 'person', 'rank', 'The hub wants a token or an accepted licence.'],
    ['hf-rate-limited', 'firstlight', 'rank', 'The hub refuses because of too many requests.'],
    ['hf-unreachable', 'firstlight', 'rank', 'The hub cannot be reached.'],
    ['disk-full', 'person', 'rank', 'A disk has no room left.'],
    ['destination-directory-missing', 'person', 'rank', 'The folder to copy into does not exist.'],
  ],
  J: [
    ['ssh-wrong-address', 'person', 'launcher', 'The address does not lead to the host.'],
    ['ssh-key-not-available', 'person', 'launcher', 'No key that the host accepts could be used.'],
    ['ssh-host-key-unknown', 'person', 'launcher', 'The host\'s key is not in known_hosts.'],
    ['ssh-host-key-changed', 'person', 'rank', 'The host\'s key is another one than before.'],
    ['ssh-server-limits-connections', 'firstlight', 'rank', 'The server drops logins because too many come at once.'],
    ['ssh-jump-forwarding-disabled', 'person', 'rank', 'The jump host does not forward connections.'],
    ['sudo-needs-password', 'person', 'rank', 'sudo asks for a password that was not given.'],
    ['remote-shell-reparsed-arguments', 'firstlight', 'launcher', 'A shell on the way took arguments apart a second time.'],
  ],
  K: [
    ['reasoning-consumes-output', 'person', 'client', 'All tokens went into reasoning, and none were left for the answer.'],
    ['reasoning-parser-mismatch', 'firstlight', 'rank', 'The reasoning parser does not fit the model, and puts the answer in the wrong field.'],
    ['tool-parser-not-enabled', 'firstlight', 'rank', 'Tool calls were asked for, and no parser is turned on.'],
    ['tool-parser-mismatch', 'firstlight', 'rank', 'The tool parser does not fit the model.'],
    ['chat-template-missing', 'person', 'rank', 'The model has no chat template.'],
    ['worker-died-head-still-healthy', 'firstlight', 'rank', 'A worker is gone, and the head\'s health does not show it.'],
    ['late-jit-exceeds-execute-timeout', 'firstlight', 'rank', 'A kernel was compiled while serving, for longer than the engine waits.'],
    ['engine-bug-speculative-decoding', 'firstlight', 'rank', 'Speculative decoding makes this engine version fail.'],
  ],
  L: [
    ['thermal-shutdown', 'person', 'rank', 'The node switched itself off because of heat.'],
    ['gpu-stuck-in-low-power-state', 'person', 'rank', 'The GPU\'s clock stays low until the node has been without power.'],
  ],
  M: [
    ['slow-load-misread-as-hang', 'no-one', 'none', 'Loading is slow, not stuck.'],
    ['health-timeout-shorter-than-prefill', 'no-one', 'none', 'A health check gave up while a long prompt was being read.'],
    ['readiness-probe-misreads-401', 'no-one', 'none', 'The probe took "not authorised" for "not ready".'],
    ['no-fault', 'no-one', 'none', 'Nothing is broken; what looked like a failure was not one.'],
  ],
};

/** What planning and following the hosts name beyond the closed list of a diagnosis. */
// biome-ignore format: a table
const BEYOND: readonly (readonly [slug: string, family: Family, cure: Cause['cure'], place: Place, meaning: string])[] = [
  ['fabric-link-down', 'E', 'person', 'rank', 'The link of a node to the others went down after the launch: its cable, its port, or the switch.'],
  ['host-restarted', 'L', 'firstlight', 'rank', 'A host began anew while its rank ran; what ran there ended with it.'],
  ['gpu-hardware-fault', 'L', 'person', 'rank', 'The GPU itself failed by its driver\'s word (an Xid of the hardware): it fell off the bus, or its memory has errors that cannot be corrected.'],
  ['memory-exhausted-rank-stopped', 'A', 'firstlight', 'rank', 'The memory of a node ran out, and the rank\'s guard stopped it before the host froze.'],
  ['context-longer-than-model', 'H', 'firstlight', 'launcher', 'More context is asked for than the model was trained for.'],
  ['host-unreachable', 'J', 'person', 'rank', 'A host does not answer, or does not let us in, so nothing can be seen or started there.'],
  ['image-missing', 'G', 'firstlight', 'rank', 'The container image is on none of the nodes that need it, or not under this name.'],
  ['engine-missing', 'G', 'person', 'rank', 'The engine is not installed where the rank runs.'],
  ['head-ended-from-outside', 'K', 'firstlight', 'rank', 'The head was ended by a signal that somebody else sent, and the other ranks cannot go on without it.'],
  ['rank-never-started', 'C', 'firstlight', 'rank', 'A rank that the others wait for was not started, or gave no word of itself.'],
  ['needs-replace', 'C', 'firstlight', 'rank', 'Another service of this tool holds the place; it is replaced only when that is asked for.'],
];

function isFamily(letter: string): letter is Family {
  return letter in FAMILIES;
}

/** The closed list: 112 causes in the order of their families, `no-fault` last. */
export const causes: readonly Cause[] = Object.entries(LIST).flatMap(([letter, rows]) =>
  rows.map(([slug, cure, place, meaning]) => ({
    slug,
    family: isFamily(letter) ? letter : undefined,
    cure,
    place,
    meaning,
  })),
);

/** Nothing is recognised well enough. */
export const unknownEntry: Cause = {
  slug: 'unknown',
  family: undefined,
  cure: 'person',
  place: 'rank',
  meaning: 'Nothing in the evidence is recognised well enough to name a cause.',
};

/** Slugs that a plan's blockers and a run's findings use beyond the closed list. */
export const furtherCauses: readonly Cause[] = BEYOND.map(([slug, family, cure, place, meaning]) => ({
  slug,
  family,
  cure,
  place,
  meaning,
}));

const BY_SLUG: ReadonlyMap<string, Cause> = new Map(
  [...causes, unknownEntry, ...furtherCauses].map((cause) => [cause.slug, cause]),
);

/** What is known of a slug; undefined for one that is on no list. */
export function causeOf(slug: string): Cause | undefined {
  return BY_SLUG.get(slug);
}

/** The family of a cause; undefined for `unknown` and for a slug of no list. */
export function familyOf(slug: string): Family | undefined {
  return causeOf(slug)?.family;
}

/** The same as the field of a finding; empty where there is no family. */
export function familyField(slug: string): { readonly family?: Family } {
  const family = familyOf(slug);
  return family === undefined ? {} : { family };
}
