import { BOOTSTRAP, isContainerAddress, isVirtualInterface } from '../network/addresses.ts';
import { nodesOf } from '../scene.ts';
import { type Found, type Match, pattern, type Signature, type View } from '../signature.ts';

const expected = pattern(
  ['expected, but not set', "KeyError: '"],
  /environment variable (?<name>[A-Z][A-Z0-9_]{1,200}) expected, but not set|KeyError: '(?<name2>(?:MASTER_(?:ADDR|PORT)|(?:LOCAL_)?RANK|WORLD_SIZE|(?:NCCL|GLOO|VLLM|SGLANG|RAY|HEAD|NODE|UCX)_?[A-Z0-9_]{0,200}))'/,
);
const unset = pattern(
  ['is not set', 'not set', 'unset', 'is empty', 'unbound variable', 'parameter null', 'parameter not set'],
  /(?:^|[^A-Z_])(?<name>(?:NCCL|GLOO|TP|VLLM|SGLANG|SGL|UCX|RAY|MASTER|HEAD|NODE|OMPI|MAX|CUDA|TORCH|TRITON|FLASHINFER)_?[A-Z0-9_]{1,200})['"]?:? (?:environment variable )?(?:is |was )?(?:not set|unset|empty|missing|unbound variable)|^(?:\S{1,300}: )*(?:line \d{1,20}: )?(?<name2>[A-Z][A-Z0-9_]{3,}): (?:unbound variable|parameter (?:null or not set|not set(?: or null)?))/,
);
const empty = pattern(
  ['_IFNAME=', '_HOST_IP=', '_IB_HCA=', 'MASTER_ADDR=', '_IB_GID_INDEX='],
  /(?:^|\s)(?<name>(?:NCCL|GLOO|TP)_SOCKET_IFNAME|(?:VLLM|SGLANG)_HOST_IP|NCCL_IB_HCA|NCCL_IB_GID_INDEX|MASTER_ADDR)=(?:['"]{2})?(?:\s|$)/,
);
const exported = pattern(
  ['export ', '+ export', 'docker exec', 'docker run'],
  /(?:^|\+ )export (?<name>(?:NCCL|GLOO|TP|UCX)_[A-Z_]{1,200}|(?:VLLM|SGLANG)_HOST_IP)=(?<value>\S{1,300})/,
);
const copied = pattern(
  [
    'environment variables to workers',
    'env vars to copy',
    'Copying the following',
    'environment variables from the current environment to',
  ],
  /(?:[Cc]opying|[Cc]opied|[Pp]assing) (?:the following )?environment variables (?:to workers|from the current environment to \w{1,80})?:? ?(?<names>\[.{0,400}\])/,
);
const ncclSet = pattern('set by environment to', /(?<name>NCCL_[A-Z_]{1,200}) set by environment to/);
const glooFails = pattern(
  ['connectFullMesh failed', 'Unable to resolve hostname to a (local)'],
  /connectFullMesh failed|Unable to resolve hostname to a \(local\) address/,
);

/** A variable that was set on the host, or on the driver's side, and did not get to where the rank runs. */
export const envNotSet: Signature = {
  name: 'env-not-set',
  causes: ['env-not-set-in-container'],
  seenOn: 'torch 2.4 to 2.13, vLLM 0.20 and later over Ray, docker 28, 2025 and 2026',
  source: 'torch distributed/rendezvous.py; vLLM ray_env.py and envs.py; bash and dash',
  looks: [
    'ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable MASTER_ADDR expected, but not set',
  ],
  patterns: [expected, unset, empty, exported, copied, ncclSet, glooFails, BOOTSTRAP],
  match(view) {
    if (view.serves) return undefined;
    const first = view.find(expected)[0];
    if (first !== undefined) return told(first, nameIn(first), [first], 0.85, 3);
    const bare = [...view.find(unset), ...view.find(empty)].filter(counts)[0];
    if (bare !== undefined) return told(bare, nameIn(bare), [bare], 0.7, 2);
    return notPassed(view) ?? notCopied(view);
  },
};

function nameIn(found: Found): string {
  return found.groups['name'] ?? found.groups['name2'] ?? 'a variable';
}

/** Notes that engines print of what may be set are not meant. */
function counts(found: Found): boolean {
  return !/default|falling back|optional|will use|using (?:the )?|recommend|consider/i.test(found.message);
}

/** Somebody exported it before the container began, and NCCL in there chose a bridge of its own. */
function notPassed(view: View): Match | undefined {
  for (const node of nodesOf(view.evidence)) {
    const on = (found: Found) => found.node === node;
    const given = view
      .find(exported)
      .find((found) => (on(found) || found.side !== undefined) && /SOCKET_IFNAME|IB_HCA/.test(nameIn(found)));
    const used = view.find(BOOTSTRAP).find(on);
    if (given === undefined || used === undefined) continue;
    const taken = view
      .find(ncclSet)
      .some((found) => on(found) && found.groups['name'] === given.groups['name']);
    const name = used.groups['interface'] ?? '';
    const other =
      name !== given.groups['value'] &&
      (isVirtualInterface(name) ||
        isContainerAddress(used.groups['address'] ?? '') ||
        !given.groups['value']?.includes(name));
    if (taken || !other) continue;
    return told(used, nameIn(given), [given, used], 0.78, 3);
  }
  return undefined;
}

/** vLLM says which variables it takes along to Ray's workers, and Gloo's is not among them. */
function notCopied(view: View): Match | undefined {
  const list = view
    .find(copied)
    .find((found) => !(found.groups['names'] ?? '').includes('GLOO_SOCKET_IFNAME'));
  const failed = list === undefined ? undefined : view.find(glooFails)[0];
  const given = view.find(exported).find((found) => nameIn(found) === 'GLOO_SOCKET_IFNAME');
  if (list === undefined || failed === undefined || given === undefined) return undefined;
  return told(failed, 'GLOO_SOCKET_IFNAME', [list, failed], 0.7, 3);
}

function told(
  at: Found,
  name: string,
  shown: readonly Found[],
  confidence: number,
  specificity: 2 | 3,
): Match {
  return {
    cause: 'env-not-set-in-container',
    node: at.node,
    shown,
    title: `${name} is not set where the rank on ${at.node} runs`,
    why: 'What is exported in a shell of the host does not reach a container by itself, nor a worker that Ray starts.',
    advice: [
      `Set ${name} in env of the recipe: each rank is then started with it. By hand: docker run -e ${name}=…, and for Ray before ray start on every node.`,
      `On ${at.node}: docker exec CONTAINER env | grep ${name}`,
    ],
    values: { variable: name },
    confidence,
    specificity,
  };
}
