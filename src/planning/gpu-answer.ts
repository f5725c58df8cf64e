import { type Fact, type Gpu, known, type ReachedFacts, unknown, valueIf } from '../domain/facts.ts';

/**
 * The GPUs of a node as a plan may go by them: none where the host has neither driver nor its tool. Unknown where the
 * look has no answer (nvidia-smi hangs, or what it said is cut off): such a node may have GPUs of any kind, with memory
 * of their own or the host's, so that no figure of the host stands for what a launch would have.
 */
export function gpuAnswer({ node, gpus, driver }: ReachedFacts): Fact<readonly Gpu[]> {
  if (gpus.known) return gpus;
  const trouble = driver?.trouble;
  if (trouble !== undefined && trouble.seen.length > 0) return known(trouble.seen);
  const none = trouble?.kind === 'no-tool' && (valueIf(driver?.listed) ?? 0) === 0;
  return none ? known([]) : unknown(`the GPUs of ${node} are not known: ${gpus.why}`);
}
