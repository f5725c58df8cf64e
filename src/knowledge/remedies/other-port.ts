import { valueIf } from '../../domain/facts.ts';
import type { Remedy } from './remedy.ts';

/** SGLang takes up to twenty ports above the rendezvous (engines.md §1.3). */
const SPAN = 20;
const STEP = 100;
const HIGHEST = 65_500;

/** Another rendezvous port. The API's port is what the user asked for, and is never moved. */
export const otherPort: Remedy = {
  name: 'other-port',
  causes: ['port-already-in-use'],
  title: ({ recipe }) => `Meet at another port than ${recipe.rendezvousPort}`,
  cost: () => 'nothing',
  apply({ recipe, finding, facts }) {
    if (finding.values['kind'] !== 'rendezvous') return undefined;
    const taken = new Set(
      facts.flatMap((node) => (node.reached ? (valueIf(node.ports) ?? []).map((one) => one.port) : [])),
    );
    taken.add(recipe.serve.port);
    const free = (port: number) =>
      Array.from({ length: SPAN }, (_, at) => port + at).every((one) => !taken.has(one));
    for (let port = recipe.rendezvousPort + STEP; port <= HIGHEST - SPAN; port += STEP) {
      if (free(port)) return [{ path: 'rendezvousPort', from: recipe.rendezvousPort, to: port }];
    }
    return undefined;
  },
};
