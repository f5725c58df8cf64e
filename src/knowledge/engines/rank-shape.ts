import { type ReachedFacts, valueIf } from '../../domain/facts.ts';
import { type EngineName, type Recipe, softwareOf } from '../../domain/recipe.ts';
import type { RankInput } from './engine.ts';

/** `model_type` of the model on that node: the wrapper's, since engines choose by it; undefined where it is not known. */
export function modelTypeOf(facts: ReachedFacts): string | undefined {
  const model = valueIf(facts.model);
  const config = model?.present ? valueIf(model.config) : undefined;
  const type = config?.['model_type'];
  return typeof type === 'string' ? type : undefined;
}

/**
 * The engine's program with its leading arguments. What the recipe names stands in place of the engine's own name on
 * PATH, and `serve` follows, unless it is there already or the words start a server module of their own
 * (`python3 -m sglang.launch_server`).
 */
export function programOf(recipe: Recipe, engine: EngineName): readonly string[] {
  const own = softwareOf(engine);
  if (recipe.run.in !== 'process') return [own, 'serve'];
  const named = recipe.run.command[engine] ?? recipe.run.command[own];
  const words = typeof named === 'string' ? named.trim().split(/\s+/) : (named ?? []);
  if (words.length === 0)
    return [recipe.run.venv === undefined ? own : `${recipe.run.venv}/bin/${own}`, 'serve'];
  const complete =
    words.at(-1) === 'serve' || words.some((word) => /\.(?:launch_server|api_server)$/.test(word));
  return complete ? words : [...words, 'serve'];
}

/** Programs that must be on a node for a rank to start there as a plain process. */
export function programsOf(recipe: Recipe, engine: EngineName): readonly string[] {
  if (recipe.run.in !== 'process') return [];
  const { venv } = recipe.run;
  const ray = venv === undefined ? 'ray' : `${venv}/bin/ray`;
  return [...programOf(recipe, engine).slice(0, 1), ...(engine === 'vllm-ray' ? [ray] : [])];
}

/** Address the rank's HTTP server binds; loopback where no fabric address is known, never more than was asked for. */
export function hostOf({ recipe, rank, addresses }: RankInput): string {
  if (recipe.serve.listen === 'all') return '0.0.0.0';
  if (recipe.serve.listen === 'fabric') return addresses[rank] ?? '127.0.0.1';
  return '127.0.0.1';
}

/** Where that server answers, seen from its own node. */
export function healthAddressOf(host: string): string {
  return host === '0.0.0.0' ? '127.0.0.1' : host;
}

/** Fabric address of the head; a plain Error without one, since planning blocks before. */
export function headAddressOf({ addresses }: RankInput): string {
  const [head] = addresses;
  if (head === undefined) throw new Error('the head has no fabric address');
  return head;
}

/** "10.0.0.1:20000", "[fd00::1]:20000". */
export function hostPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * Addresses and interface names of this rank's own node, for `network: auto`; empty for `engine` and for one node.
 * Gloo takes exact names only, NCCL would also take patterns; nothing here is ever shared between nodes, since
 * interface names and HCAs differ from Spark to Spark (engines.md 1.8, 10.1).
 */
export function networkEnv(input: RankInput, ownAddressVariable: string): Readonly<Record<string, string>> {
  const { recipe, rank, addresses, interfaceName, rdmaDevices } = input;
  if (recipe.network !== 'auto' || recipe.layout.nodes < 2) return {};
  const own = addresses[rank];
  return {
    ...(own === undefined ? {} : { [ownAddressVariable]: own }),
    ...(interfaceName === undefined
      ? {}
      : {
          GLOO_SOCKET_IFNAME: interfaceName,
          NCCL_SOCKET_IFNAME: interfaceName,
          TP_SOCKET_IFNAME: interfaceName,
        }),
    ...(rdmaDevices.length === 0 ? {} : { NCCL_IB_HCA: rdmaDevices.join(',') }),
  };
}

/**
 * Makes NCCL say which network it took ("Using network IB", "NET/Socket"), with any `network`: it falls back to TCP
 * in silence, and its log is the only place where that shows (spark.md 4). A recipe's own NCCL_DEBUG wins.
 */
export function telltaleEnv({ layout }: Recipe): Readonly<Record<string, string>> {
  return layout.nodes > 1 ? { NCCL_DEBUG: 'INFO' } : {};
}
