import type { Family } from '../knowledge/causes.ts';

/** Words that leave no doubt of the family; the first that fits counts alone. */
const SURE: readonly (readonly [Family, RegExp])[] = [
  [
    'H',
    /unrecognized arguments|invalid choice|ambiguous option|architectures? .* (?:not|are not) supported/i,
  ],
  [
    'F',
    /No such file or directory: '(?:ninja|nvcc|gcc|g\+\+|cc|c\+\+|ptxas|cicc|ldconfig)'|no kernel image|ptxas fatal/,
  ],
  ['G', /command not found|No module named|exec format error|x509: certificate/i],
  ['K', /RPC call to \w+ timed out|chat template|<think>|tool_choice|finish_reason/],
  ['A', /signal 9|exit(?:ed with)? code:? ?-?(?:9|137)\b|earlyoom|oom-kill|Out of memory: Killed/i],
];

/** Words by which a line betrays its family although no signature knows it; the earlier of two equal ones wins. */
const WORDS: readonly (readonly [Family, RegExp])[] = [
  [
    'G',
    /command not found|ModuleNotFoundError|No module named|ImportError|No CUDA GPUs|NVML|infer device type|libcuda\.so\.1|docker|podman|containerd|OCI runtime|\bimage\b|\bpip\b|wheel|nvidia-container|exec format|x509|cgroup|Read-only file system|PermissionError|EnvironmentFile|\.env\b/i,
  ],
  [
    'J',
    /^(?:ssh|scp|kex_exchange|mux_client|channel \d+):|\bsudo: |Permission denied \(|Host key|known_hosts|publickey|unexpected EOF while looking|syntax error near unexpected token/,
  ],
  [
    'L',
    /thermal|throttl|temperature|overheat|power (?:brake|cap|state|limit)|clocks?_event|-- Boot |uncleanly shut down|\bXid\b.*\b(?:79|62)\b|low[- ]power/i,
  ],
  [
    'A',
    /out of memory|OutOfMemory|\bOOM\b|oom[-_ ]kill|NvMap|cudaMalloc|memory allocation|Free memory|SIGKILL|signal 9|exit(?:ed with)? code:? ?-?(?:9|137)\b|earlyoom|Cannot allocate memory|low on memory|memory pressure|^Killed$|NV_ERR_NO_MEMORY|capacity is unbalanced/i,
  ],
  [
    'I',
    /safetensors|huggingface|HfHub|hf_hub|Repo(?:sitory)?NotFound|checkpoint|config\.json|No such file|No space left|\d+% full|disk|finish loading|\bhub\b|snapshot|Error -?\d* downloading|HTTPError|Max retries exceeded/i,
  ],
  [
    'K',
    /chat\/completions|chat template|tool[-_ ](?:call|choice|parser)|reasoning|<think>|finish_reason|speculative|HTTP\/1\.1" [45]\d\d|execute_model|EngineDead/i,
  ],
  [
    'D',
    /\bray(?:let|\.exceptions| start| status|_)|\bGCS\b|placement group|RayActor|start new thread|Resource temporarily unavailable|pids?[-_.](?:limit|max|cgroup)/,
  ],
  ['E', /NCCL|nccl[A-Z]|ibv_|mlx\d|RoCE|\bRDMA\b|rdma|\bGID\b|memlock|\/dev\/shm|libibverbs|NET\/IB/],
  [
    'B',
    /KV cache|kv_cache|cache blocks|cuda ?graph|captur(?:e|ing)|max_num_seqs|max_model_len|memory pool|gpu_memory_utilization|mem-fraction/i,
  ],
  [
    'F',
    /ptxas|\bnvcc\b|sm_?1?\d\d|no kernel image|cubin|\bPTX\b|triton|CUDA driver|driver version|libcu\w+\.so|libnv\w+\.so|ninja|flashinfer|cutlass|illegal (?:memory|instruction)|attention backend|undefined symbol|stale file handle|jit/i,
  ],
  [
    'H',
    /unrecognized arguments|invalid choice|argument |not supported for|does not support|Unsupported|architectures|trust_remote_code|divisible|tensor parallel|quantiz|transformers|tokenizer|ValidationError|pydantic/i,
  ],
  [
    'C',
    /gloo|TCPStore|rendezvous|init_process_group|EADDRINUSE|address already in use|unique IP|hostname|resolve|interface|node[-_]rank|world[-_]size|Connection (?:refused|timed out|reset)|No route to host|DistNetworkError|DistStoreError|waiting for clients/i,
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
    const sure = SURE.find(([, form]) => form.test(text));
    const told = sure === undefined ? WORDS.filter(([, form]) => form.test(text)) : [sure];
    const worth = (weight * weight) / (1 + index / 4) / Math.max(1, told.length);
    for (const [family] of told) {
      votes.set(family, (votes.get(family) ?? 0) + worth);
      all += worth;
    }
  });
  const [best] = [...votes].toSorted((a, b) => b[1] - a[1]);
  return best === undefined ? undefined : { family: best[0], share: best[1] / all };
}
