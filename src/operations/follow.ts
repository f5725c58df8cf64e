import { diagnose, failed, fatalLine } from '../diagnosis/diagnose.ts';
import { DURING } from '../diagnosis/during.ts';
import { interfaceWith } from '../diagnosis/link-down.ts';
import { QUIET_MILLISECONDS, STUCK_MILLISECONDS } from '../diagnosis/nothing-more.ts';
import { endLog, newTracker, splitLog, trackLine } from '../diagnosis/stages.ts';
import { stall } from '../diagnosis/stall.ts';
import type { Unreachable } from '../domain/command.ts';
import type { Evidence, LogLine } from '../domain/evidence.ts';
import type { NodeFacts } from '../domain/facts.ts';
import type { Stage } from '../domain/finding.ts';
import type { Service } from '../domain/plan.ts';
import type { EngineName, Recipe } from '../domain/recipe.ts';
import { engines } from '../knowledge/engines/index.ts';
import { followRank } from '../remote/rank-runner.ts';
import { FabricLinks } from './fabric-links.ts';
import { FollowedGuards } from './followed-guards.ts';
import { askHealth } from './health.ts';
import { keepLines } from './logs/keep-lines.ts';
import type { Recorder } from './recorder.ts';
import type { Verified } from './verify.ts';
import type { World } from './world.ts';

export type FollowInput = {
  readonly attempt: number;
  readonly engine: EngineName;
  readonly recipe: Recipe;
  readonly services: readonly Service[];
  readonly before: readonly NodeFacts[];
  /** Asks the model once it seems to serve; the ranks are followed meanwhile, for one may end of the first question. */
  readonly verify: () => Promise<Verified>;
};

export type FollowEnd =
  | { readonly kind: 'serving'; readonly evidence: Evidence; readonly proof: Verified }
  | { readonly kind: 'failed'; readonly evidence: Evidence }
  | {
      readonly kind: 'node-lost';
      readonly node: string;
      readonly failure: Unreachable;
      readonly evidence: Evidence;
    }
  | { readonly kind: 'detached' };

/** A link that flaps is back by then; one that stays down ends nothing by itself for minutes (engines' own patience). */
const DARK_MILLISECONDS = 20_000;
const NODE_LOST_MILLISECONDS = 60_000;
/** A question without an answer may come before the end of the rank that failed: so long that is waited for. */
const UNANSWERED_MILLISECONDS = QUIET_MILLISECONDS + 1000;

/**
 * Follows all ranks of one attempt as one stream until it serves, fails or is left alone. A broken connection
 * is taken up again at its byte. `onMoved` is called whenever a rank's stage moved: remedies are proved there.
 */
export async function followAttempt(
  world: World,
  recorder: Recorder,
  input: FollowInput,
  onMoved: (evidence: Evidence) => void,
): Promise<FollowEnd> {
  const stop = new AbortController();
  const signal = AbortSignal.any([world.signal, stop.signal]);
  const engine = engines[input.engine];
  const tracker = newTracker(
    engine,
    input.services.map(({ rank, address }) => ({ rank, address })),
    world.clock.now(),
  );
  const lines = new Map<number, LogLine[]>(input.services.map((service) => [service.rank, []]));
  const ended = new Map<number, { code: number | undefined; requested: boolean; at: number }>();
  const guards = new FollowedGuards(recorder, input.attempt);
  const links = new FabricLinks(recorder);
  const lostSince = new Map<string, { since: number; failure: Unreachable }>();
  let lastLineAt = world.clock.now();
  let fatalSeen = 0;
  let fatalAt: number | undefined;
  let told = '';
  let unanswered: { readonly proof: Verified; readonly at: number } | undefined;

  const evidence = (): Evidence => ({
    engine: input.engine,
    recipe: input.recipe,
    services: input.services,
    ranks: input.services.map((service) => ({
      rank: service.rank,
      role: service.role,
      node: service.node,
      lines: lines.get(service.rank) ?? [],
      ...tracker.of(service.rank),
      ended: ended.get(service.rank),
      guard: guards.of(service.rank),
    })),
    before: input.before,
    after: [],
    now: world.clock.now(),
  });

  const following = Promise.all(input.services.map((service) => followOne(service)));
  try {
    for (;;) {
      if (world.signal.aborted) return { kind: 'detached' };
      const now = world.clock.now();
      const seen = evidence();
      if (isOver(seen)) return { kind: 'failed', evidence: seen };
      for (const [node, lost] of lostSince) {
        if (now - lost.since > NODE_LOST_MILLISECONDS)
          return { kind: 'node-lost', node, failure: lost.failure, evidence: seen };
      }
      if (unanswered !== undefined) {
        if (now - unanswered.at > UNANSWERED_MILLISECONDS)
          return { kind: 'serving', evidence: seen, proof: unanswered.proof };
      } else if (await serves(seen)) {
        const proof = await input.verify();
        if (proof.kind === 'proved') {
          guards.tell(input.services);
          tellBehind();
          return { kind: 'serving', evidence: evidence(), proof };
        }
        unanswered = { proof, at: world.clock.now() };
      }
      await world.clock.wait(100, world.signal).catch(() => undefined); // an abort is read at the top of the loop
    }
  } finally {
    stop.abort();
    await following;
  }

  /** A rank that waits for a lost peer may print a line every two seconds for ten minutes: silence is not waited for. */
  function isOver(seen: Evidence): boolean {
    const { now } = seen;
    if (ended.size === input.services.length || stall(seen) !== undefined) return true;
    if ([...ended.values()].some(({ at }) => now - at > QUIET_MILLISECONDS)) return true;
    // Ranks that try to connect again and again print, and do not move on.
    const dark = Math.max(links.downSince ?? now, ...seen.ranks.map(({ movedAt }) => movedAt));
    if (now - dark > DARK_MILLISECONDS) return true;
    const quiet = now - lastLineAt > QUIET_MILLISECONDS;
    const since = fatalAt;
    const stuck =
      since !== undefined &&
      now - since > STUCK_MILLISECONDS &&
      seen.ranks.every(({ movedAt }) => movedAt <= since);
    return (quiet || stuck) && failed(seen);
  }

  async function serves(seen: Evidence): Promise<boolean> {
    // A worker whose log stays behind, as on a full disk, may serve all the same: its own server is asked.
    const behind = seen.ranks.every(
      ({ role, movedAt }) => role === 'worker' || seen.now - movedAt > QUIET_MILLISECONDS,
    );
    const ready = seen.ranks.every(
      (rank) =>
        rank.ended === undefined &&
        (rank.stage === 'serving' || (rank.role === 'worker' && (behind || !engine.workerHealth))),
    );
    if (!ready) return false;
    const asked = input.services.flatMap(
      ({ node, healthPort: port, healthAddress: address = '127.0.0.1' }) =>
        port === undefined ? [] : [{ node, address, port }],
    );
    const answers = await Promise.all(
      // An abort is read at the top of the loop.
      asked.map((server) => askHealth(world, server, signal).catch(() => ({ ok: false }))),
    );
    return answers.every((answer) => answer.ok);
  }

  async function followOne(service: Service): Promise<void> {
    const host = world.hosts.of(service.node);
    const stamped = service.in !== 'process';
    const { node, address } = service;
    const link = address === undefined ? undefined : interfaceWith(input.before, node, address)?.name;
    let bytes = 0;
    let carry = '';
    while (!signal.aborted) {
      const end = await followRank(host, service.name, bytes, {
        signal,
        lines: (chunk) => {
          bytes += chunk.length;
          lostSince.delete(service.node);
          const split = splitLog(carry, chunk, stamped);
          carry = split.carry;
          take(service, split.lines);
        },
        beat: ({ availableBytes }) => {
          lostSince.delete(service.node);
          world.live({ kind: 'beat', node: service.node, availableBytes });
          guards.available(service.node, availableBytes);
        },
        guard: (record) => guards.hear(service, record),
        ...(link === undefined
          ? {}
          : {
              link: {
                name: link,
                tell: (up: boolean) => links.hear(service.node, link, up, world.clock.now()),
              },
            }),
      }).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (end === undefined) return;
      if (end.kind === 'lost') {
        const lost = lostSince.get(service.node);
        // A connection that breaks says less than what those meet who try it anew.
        if (lost !== undefined && end.failure.why !== 'closed') lost.failure = end.failure;
        if (lost === undefined) {
          lostSince.set(service.node, { since: world.clock.now(), failure: end.failure });
          recorder.emit({
            type: 'note',
            level: 'warning',
            node: service.node,
            text: `${end.failure.sentence} Following goes on when it answers again.`,
          });
        }
        await world.clock.wait(1000, signal).catch(() => undefined); // the loop ends by the signal
        continue;
      }
      take(service, endLog(carry, stamped));
      const code = end.kind === 'ended' ? end.code : undefined;
      ended.set(service.rank, { code, requested: false, at: world.clock.now() });
      recorder.emit({
        type: 'rank-ended',
        attempt: input.attempt,
        node: service.node,
        rank: service.rank,
        code,
        requested: false,
      });
      return;
    }
  }

  function tellBehind(): void {
    if (!engine.workerHealth) return;
    for (const { rank, node, stage } of evidence().ranks.filter((one) => one.stage !== 'serving'))
      recorder.emit({
        type: 'note',
        level: 'warning',
        node,
        text: `The log of rank ${rank} on ${node} stopped ${DURING[stage]}, although it answers. See whether a disk is full there: df -h ~`,
      });
  }

  function take(service: Service, texts: readonly string[]): void {
    if (texts.length === 0) return;
    const at = world.clock.now();
    lastLineAt = at;
    const kept = lines.get(service.rank) ?? [];
    const first = (kept.at(-1)?.line ?? 0) + 1;
    const fresh = texts.map((text, index) => ({ line: first + index, at, text: recorder.clean(text) }));
    keepLines(kept, fresh);
    world.journal.appendLog(recorder.run, input.attempt, service.rank, fresh);
    world.live({
      kind: 'lines',
      rank: service.rank,
      node: service.node,
      lines: fresh.map(({ text }) => text),
    });
    // A log that is taken up again comes in large pieces: of each stage only where the piece left it is told.
    const moves: { rank: number; stage: Stage; percent: number | undefined; line: number }[] = [];
    for (const line of fresh) {
      const step = trackLine(tracker, service.rank, line);
      if (step !== undefined) {
        const before = moves.findIndex(({ rank, stage }) => rank === step.rank && stage === step.stage);
        if (before !== -1) moves.splice(before, 1);
        moves.push({ ...step, line: line.line });
      }
      if (fatalLine(engine, line.text)) {
        fatalSeen += 1;
        fatalAt ??= at;
      }
    }
    for (const move of moves) {
      recorder.emit({
        type: 'rank-stage',
        attempt: input.attempt,
        // Over Ray the workers' lines stand in the head's log.
        node: input.services.find(({ rank }) => rank === move.rank)?.node ?? service.node,
        ...move,
      });
    }
    if (moves.length > 0) onMoved(evidence());
    if (fatalSeen > 0) provisional();
  }

  /** Within a second of the fatal line; told again only when the cause or the node changes. */
  function provisional(): void {
    fatalSeen = 0;
    const finding = diagnose(evidence(), { final: false });
    const key = `${finding.cause} ${finding.node}`;
    if (key === told || finding.cause === 'unknown') return;
    told = key;
    recorder.emit({ type: 'finding', attempt: input.attempt, ...finding });
  }
}
