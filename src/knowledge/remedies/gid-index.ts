import type { Remedy } from './remedy.ts';
import { dropEnv, setEnv } from './set-env.ts';

/** The usual place of the RoCE v2 address in the table of GIDs (NVIDIA/nccl#426; spark.md 4). */
const USUAL_INDEX = '3';

/** One index for all nodes is taken away, so that NCCL chooses; where none was given, the usual one is tried. */
export const gidIndex: Remedy = {
  name: 'gid-index',
  causes: ['wrong-gid-index'],
  title: ({ recipe }) =>
    'NCCL_IB_GID_INDEX' in recipe.env
      ? 'Let NCCL choose the GID on each node'
      : `Use the GID at index ${USUAL_INDEX}, where RoCE v2 usually is`,
  cost: () => 'nothing',
  // Where the log shows an index that was given, another one is not better.
  apply: ({ recipe, finding }) =>
    dropEnv(recipe, ['NCCL_IB_GID_INDEX']) ??
    (finding.values['index'] === undefined ? setEnv(recipe, { NCCL_IB_GID_INDEX: USUAL_INDEX }) : undefined),
};
