import { lacks } from './lacks.ts';
import { PythonError } from './python-error.ts';
import type { Env } from './rank.ts';

/** The first drafts are made while graphs are captured: throws where this build's code for it is broken. */
export function draft(env: Env, speculates: boolean): void {
  if (speculates && lacks(env, 'speculative-decoding'))
    throw new PythonError(
      'draft',
      'RuntimeError',
      'The expanded size of the tensor (3) must match the existing size (1) at non-singleton dimension 0.  Target sizes: [3].  Tensor sizes: [1]',
    );
}
