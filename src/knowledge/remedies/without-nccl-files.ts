import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** NCCL reads nccl.conf and loads a plugin that lies in the image unless it is told not to (NCCL's env documentation). */
export const withoutNcclFiles: Remedy = {
  name: 'without-nccl-files',
  causes: ['stale-nccl-config-in-image'],
  title: () => "Leave aside the image's own settings and plugins of NCCL",
  cost: () => 'nothing, where they were made for other machines',
  apply: ({ recipe }) => setEnv(recipe, { NCCL_CONF_FILE: '/dev/null', NCCL_NET_PLUGIN: 'none' }),
};
