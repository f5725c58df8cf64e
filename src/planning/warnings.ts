import { isLoopback } from '../domain/address.ts';
import type { Node } from '../domain/cluster.ts';
import { type MemoryFacts, type NodeFacts, type ReachedFacts, valueIf } from '../domain/facts.ts';
import type { Phase, Warning } from '../domain/plan.ts';
import type { EngineName, Recipe } from '../domain/recipe.ts';
import { gib, plural, thousands } from '../domain/units.ts';
import type { Allocation, Share } from './allocate.ts';
import { cacheMeans, cacheUnknownWhy } from './clear.ts';
import { activeRdma } from './fabric.ts';
import { gpuAnswer } from './gpu-answer.ts';
import { reachedOf } from './our-ranks.ts';

type Input = {
  readonly nodes: readonly Node[];
  readonly facts: readonly NodeFacts[];
  readonly recipe: Recipe;
  readonly engine: EngineName;
  readonly allocation: Allocation;
  readonly phases: readonly Phase[];
  readonly sudo: Readonly<Record<string, boolean>>;
  readonly evicted: ReadonlySet<string>;
};

/** What does not stop a launch and may spoil it, each with the way out. */
export function warningsOf(input: Input): readonly Warning[] {
  const perNode = input.nodes.flatMap((node): readonly Warning[] => {
    const there = reachedOf(input.facts, node.name);
    if (there === undefined) return [];
    const share = input.allocation.shares.find((one) => one.node === node.name);
    return [
      ...hostWarnings(there, input),
      ...memoryWarnings(there, share, input),
      ...sudoWarnings(there, input),
      ...returnWarnings(there, input),
    ];
  });
  return [...perNode, ...networkWarnings(input), ...recipeWarnings(input)];
}

/** Every name of the host on loopback, as `/etc/hosts` of Debian and Ubuntu has it. */
export function ownNameOnLoopback(facts: ReachedFacts): boolean {
  const own = valueIf(valueIf(facts.host)?.ownAddresses);
  return own !== undefined && own.length > 0 && own.every(isLoopback);
}

/** Less than a hundredth of the swap is left. */
export function swapUsedUp({ swapTotalBytes, swapFreeBytes }: MemoryFacts): boolean {
  if (swapTotalBytes === undefined || swapFreeBytes === undefined) return false;
  return swapTotalBytes > 0 && swapFreeBytes < swapTotalBytes / 100;
}

/** Seconds by which a node's clock may differ before logs of several nodes are hard to read side by side. */
export function clockIsOff(offsetSeconds: number): boolean {
  return Math.abs(offsetSeconds) > 5;
}

function hostWarnings(facts: ReachedFacts, { recipe, nodes }: Input): readonly Warning[] {
  const { node } = facts;
  const offset = valueIf(facts.clockOffsetSeconds);
  const said: Warning[] = [];
  if (nodes.length > 1 && recipe.network === 'engine' && ownNameOnLoopback(facts))
    said.push({
      node,
      title: `${node} resolves its own name to ${valueIf(valueIf(facts.host)?.ownAddresses)?.join(', ')}, and the recipe leaves addresses to the engine.`,
      advice: 'Write network: auto in the recipe, or give the name its fabric address in /etc/hosts.',
    });
  if (recipe.run.in === 'process' && valueIf(facts.host)?.killsAtLogout)
    said.push({
      node,
      title: `${node} ends all that a login has started when the login ends (KillUserProcesses=yes), so the rank would end with our connection.`,
      advice: `On ${node}: set KillUserProcesses=no in /etc/systemd/logind.conf, then sudo systemctl restart systemd-logind; or run the ranks in containers.`,
    });
  if (offset !== undefined && clockIsOff(offset))
    said.push({
      node,
      title: `The clock of ${node} is ${Math.abs(offset).toFixed(0)} s ${offset > 0 ? 'ahead' : 'behind'}.`,
      advice: `On ${node}: timedatectl set-ntp true`,
    });
  const gpus = gpuAnswer(facts);
  // Where the look has no answer, whether it fits is not known, which is said with the memory.
  if (gpus.known && gpus.value.length === 0)
    said.push({
      node,
      title: `No GPU was seen on ${node}${facts.gpus.known ? '' : `: ${facts.gpus.why}`}; its memory is planned as the host's.`,
      advice: `On ${node}: nvidia-smi -L`,
    });
  return said;
}

function memoryWarnings(facts: ReachedFacts, share: Share | undefined, input: Input): readonly Warning[] {
  const { node } = facts;
  const memory = valueIf(facts.memory);
  const said: Warning[] = [];
  if (memory !== undefined && swapUsedUp(memory))
    said.push({
      node,
      title: `The swap of ${node} is used up, so it ran out of memory before.`,
      advice: 'See what was pushed out before a launch; a reboot empties it.',
    });
  if (share === undefined) return said;
  if (share.memory.verdict === 'may-boot')
    said.push({
      node,
      title: `The plan may or may not boot on ${node}: ${gib(share.memory.sumBytes)} give or take ${gib(share.memory.errorBytes)}, and ${gib(share.memory.canGetAfterClearingBytes)} to be had.`,
      advice: 'Lower context or sequences for room to spare.',
    });
  if (share.memory.verdict === 'unknown')
    said.push({
      node,
      title: `Whether it fits on ${node} is not known: ${share.memory.rules.join('; ').replace(/^unknown: /, '')}.`,
      advice: gpuAnswer(facts).known
        ? 'The launch itself will tell.'
        : `On ${node}: ${facts.driver?.trouble?.remedy ?? 'nvidia-smi -L'}`,
    });
  if (cacheMeans(share, input) === 'none')
    said.push({
      node,
      title: `The page cache of ${node} hides free memory, and without root it cannot be dropped.`,
      advice: `On ${node}: sync; echo 1 | sudo tee /proc/sys/vm/drop_caches`,
    });
  const unsure = cacheUnknownWhy(share);
  if (unsure !== undefined)
    said.push({
      node,
      title: `Whether the page cache of ${node} hides free memory is not known: ${unsure}.`,
      advice: `It is left as it is; to drop it, on ${node}: sync; echo 1 | sudo tee /proc/sys/vm/drop_caches`,
    });
  return said;
}

function sudoWarnings(facts: ReachedFacts, { phases, sudo }: Input): readonly Warning[] {
  const { node } = facts;
  const steps = phases
    .flatMap((phase) => phase.steps)
    .filter((step) => step.node === node && step.command.sudo === true);
  if (steps.length === 0 || sudo[node] === true) return [];
  return [
    {
      node,
      title: `${plural(steps.length, 'step')} on ${node} need${steps.length === 1 ? 's' : ''} root; sudo asks for a password there, and none is at hand.`,
      advice: `Give it when asked, or with --sudo-password-file ${node}=FILE (mode 0600).`,
    },
  ];
}

/** What is stopped and would be started again by something that no step keeps away. */
function returnWarnings({ node }: ReachedFacts, { phases }: Input): readonly Warning[] {
  return phases
    .flatMap((phase) => phase.steps)
    .filter((step) => step.node === node)
    .flatMap(({ target }) =>
      (target?.returns ?? []).map(({ what, keepAway }) => ({
        node,
        title: `${target?.name} on ${node} would come back by ${what}.`,
        advice: `On ${node}, to keep it away: ${keepAway}`,
      })),
    );
}

function networkWarnings({ nodes, facts }: Input): readonly Warning[] {
  if (nodes.length < 2) return [];
  const seen = nodes.flatMap((node) => reachedOf(facts, node.name) ?? []);
  const some = seen.filter((there) => (valueIf(there.rdma) ?? []).length > 0);
  const without = seen.filter((there) => there.rdma.known && activeRdma(there).length === 0);
  if (some.length === 0 || without.length === 0) return [];
  return without.map((there) => ({
    node: there.node,
    title: `${there.node} has no active RDMA device with an address, so all ranks use sockets.`,
    advice: `On ${there.node}: rdma link; ip -br addr`,
  }));
}

function recipeWarnings({ recipe, allocation }: Input): readonly Warning[] {
  const said: Warning[] = [];
  if (recipe.serve.listen === 'all' && recipe.serve.apiKey === undefined)
    said.push({
      node: undefined,
      title: 'The API listens on every network, and anybody who reaches it may use it.',
      advice: 'Set serve.apiKey, or listen: loopback or fabric.',
    });
  const need = allocation.shares.find((share) => share.need !== undefined)?.need;
  if (
    need?.maxTokens !== undefined &&
    need.contextTokens !== undefined &&
    need.contextTokens > need.maxTokens
  )
    said.push({
      node: undefined,
      title: `The recipe asks for a context of ${thousands(need.contextTokens)} tokens, and the model's own limit is ${thousands(need.maxTokens)}.`,
      advice: `context: ${need.maxTokens}, unless the engine's arguments stretch the model's rotary angles.`,
    });
  const { sequences, wantedSequences } = allocation;
  const known = allocation.shares.some((share) => share.need !== undefined);
  // Where not even one fits, a blocker says so.
  const none = allocation.shares.some(({ memory }) => memory.verdict === 'does-not-fit');
  if (known && !none && sequences < wantedSequences) {
    const context = allocation.shares.find((share) => share.need !== undefined)?.need?.contextTokens ?? 0;
    said.push({
      node: undefined,
      title: `${plural(wantedSequences, 'sequence')} of ${thousands(context)} tokens do not fit together; there is room for ${sequences}.`,
      advice: 'Further ones wait in the queue; lower context or sequences to say what is meant.',
    });
  }
  return said;
}
