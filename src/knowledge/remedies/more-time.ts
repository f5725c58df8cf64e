import { argsOf, softwareOf } from '../../domain/recipe.ts';
import type { Remedy } from './remedy.ts';
import { flagValue, setArgs } from './set-args.ts';
import { setEnv } from './set-env.ts';

/** Longer than any compilation seen; the engines' own limits are 300 s (engines.md 1.4, 2.4). */
const SECONDS = '1800';

/** The engine waits longer for a step, in which a kernel may be compiled. */
export const moreTime: Remedy = {
  name: 'more-time',
  causes: ['late-jit-exceeds-execute-timeout'],
  title: () => 'Let the engine wait half an hour for a step',
  cost: () => 'a worker that really hangs is noticed later',
  apply({ recipe, engine }) {
    if (softwareOf(engine) === 'vllm') return setEnv(recipe, { VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS: SECONDS });
    const now = flagValue(argsOf(recipe, engine), '--watchdog-timeout');
    return Number(now) >= Number(SECONDS)
      ? undefined
      : setArgs(recipe, engine, { '--watchdog-timeout': SECONDS });
  },
};
