/**
 * Lines that good starts print too, whatever word is in them: never quoted as proof. Sources: torch, transformers and
 * pynvml warnings; OpenSSH 9 and 10; NVIDIA's kernel module; engines.md 1.4 and 2.3.
 */
const FORMS: readonly RegExp[] = [
  /\bis deprecated\b|[Dd]eprecat(?:ed|ion)|\w*Warning: |^\s*warnings\.warn\(/,
  /^\[Gloo\] Rank \d+ is connected to \d+ peer ranks/,
  /destroy_process_group\(\) was not called/,
  /^Pseudo-terminal will not be allocated|post-quantum key exchange|store now, decrypt later|openssh\.com\/pq\.html|^Warning: Permanently added/,
  /Error ignored in is_in_the_same_node/,
  /^\[?\s*\d+\.\d+\]? NVRM: (?:nvCheckOkFailedNoLog|nvAssert)|NVRM: nvCheckOkFailedNoLog/,
  /TensorFlow|oneDNN custom operations|Unable to register cu(?:DNN|BLAS|FFT)|computation placer already registered/,
  /^Setting OMP_NUM_THREADS|OMP_NUM_THREADS environment variable/,
  /generation flags are not valid|Using a slow image processor|max_position_embeddings|Special tokens have been added/,
  /does not support P2P|custom allreduce is disabled|disabled because this process group spans|SymmMemCommunicator: Device capability/i,
  /TCP client failed to connect\/validate to host .*willRetry=1/,
  /GET \/(?:health|metrics|v1\/models)\S* HTTP\/1\.1"? 200/,
  /The default value of |will be removed in|is experimental|not found in .*config.*using default|Performance might be sub-?optimal/i,
  /Using default MoE config|Config file not found|No shared memory broadcast block|can be safely ignored|you may ignore/i,
  /^WARNING:? (?:All log messages|Running pip as)/,
  /^INFO\b|^DEBUG\b/,
  /setlocale: LC_ALL|does not support swap limit|attribute `?version`? is obsolete/,
  /Ignore import error when loading /,
  /which is of cuda capability|cuda capability supported by this version|^\s*\(\d+\.\d+\) - \(\d+\.\d+\)\s*$/i,
  /client socket cannot be initialized to connect to .*errno: 97/,
  /NCCL INFO (?:NET\/Plugin: (?:Could not find|No plugin)|cudaDriverVersion|Bootstrap|NCCL_\w+ set by|Comm config|Using network|comm 0x)/,
];

/** Whether good starts print this line too. */
export function isHarmless(message: string): boolean {
  return FORMS.some((form) => form.test(message));
}
