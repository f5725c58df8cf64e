import type { Remedy } from './remedy.ts';
import { setEnv } from './set-env.ts';

/** The model lies in a folder on every node: nothing needs to be asked of the hub (huggingface_hub constants.py). */
export const offlineHub: Remedy = {
  name: 'offline-hub',
  causes: ['hf-unreachable', 'hf-rate-limited'],
  title: () => 'Use what lies on the nodes, and ask the hub for nothing',
  cost: () => 'nothing; what the folder lacks is not fetched',
  apply({ recipe, finding }) {
    // Offline already: then a file is missing, and only a person can bring it.
    if (finding.values['offline'] === 'yes') return undefined;
    return setEnv(recipe, { HF_HUB_OFFLINE: '1', TRANSFORMERS_OFFLINE: '1' });
  },
};
