import type { Family } from '../knowledge/causes.ts';

/** Words by which a line betrays its family although no signature knows it; the earlier of two equal ones wins. */
const WORDS: readonly (readonly [Family, RegExp])[] = [
  [
    'J',
    /^(?:ssh|scp|rsync|kex_exchange|mux_client|channel \d+):|\bsudo: |Permission denied \(|Host key|known_hosts|publickey/,
  ],
  [
    'L',
    /thermal|throttl|temperature|overheat|power (?:brake|cap|state|limit)|clocks?_event|\bXid\b.*\b(?:79|62)\b/i,
  ],
  ['D', /\bray(?:let|\.exceptions| start| status|_)|\bGCS\b|placement group|RayWorker|RayActor/],
  ['E', /\bNCCL\b|\bncclU|ibv_|mlx\d|RoCE|\bRDMA\b|rdma|\bGID\b|memlock|\/dev\/shm|libibverbs|NET\/IB/],
  ['B', /KV cache|kv_cache|cuda ?graph|CUDA graph|captur(?:e|ing)|max_num_seqs|max_model_len|memory pool/i],
  [
    'A',
    /out of memory|\bOOM\b|oom[-_ ]kill|NvMap|cudaMalloc|memory allocation|Free memory|SIGKILL|exit code:? -?(?:9|137)\b|earlyoom|Cannot allocate memory|low on memory/i,
  ],
  [
    'F',
    /ptxas|\bnvcc\b|sm_?1?\d\d|no kernel image|kernel image|cubin|\bPTX\b|Triton|triton|CUDA driver|driver version|libcu\w+\.so|ninja|flashinfer|cutlass|illegal (?:memory|instruction)|attention backend|undefined symbol/i,
  ],
  [
    'G',
    /docker|podman|containerd|OCI runtime|\bimage\b|ModuleNotFoundError|ImportError|No module named|\bpip\b|wheel|nvidia-container|exec format|x509|cgroup|Read-only file system/i,
  ],
  [
    'H',
    /unrecognized arguments|invalid choice|argument |not supported for|does not support|Unsupported|architectures|trust_remote_code|divisible|tensor parallel|quantiz|transformers|tokenizer|ValidationError|pydantic/i,
  ],
  [
    'I',
    /safetensors|huggingface|HfHub|hf_hub|Repo(?:sitory)?NotFound|checkpoint|config\.json|No such file|No space left|disk|shard|\bhub\b|snapshot/i,
  ],
  [
    'C',
    /Gloo|gloo|TCPStore|rendezvous|init_process_group|EADDRINUSE|address already in use|hostname|resolve|interface|node[-_]rank|world[-_]size|Connection (?:refused|timed out|reset)|No route to host|DistNetworkError|DistStoreError/i,
  ],
  [
    'K',
    /chat\/completions|tool[-_ ](?:call|choice|parser)|reasoning|finish_reason|chat template|speculative|HTTP\/1\.1" [45]\d\d|execute_model|EngineDead/i,
  ],
];

/**
 * The family that the weightiest lines speak of, or undefined: for a failure that no signature knows. Each line counts
 * by its weight, and an earlier one for more.
 */
export function guessFamily(
  lines: readonly { readonly text: string; readonly weight: number }[],
): { readonly family: Family; readonly share: number } | undefined {
  const votes = new Map<Family, number>();
  let all = 0;
  lines.forEach(({ text, weight }, index) => {
    const told = WORDS.filter(([, form]) => form.test(text));
    const worth = (weight * weight) / (1 + index / 4) / Math.max(1, told.length);
    for (const [family] of told) {
      votes.set(family, (votes.get(family) ?? 0) + worth);
      all += worth;
    }
  });
  const [best] = [...votes].toSorted((a, b) => b[1] - a[1]);
  return best === undefined ? undefined : { family: best[0], share: best[1] / all };
}
