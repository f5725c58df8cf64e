import { type Ran, script, type Unreachable, type Word } from '../domain/command.ts';
import { type GuardRecord, type GuardReserve, parseGuard } from '../domain/guard.ts';
import type { Service } from '../domain/plan.ts';
import { quote, quotePlainly } from '../domain/quote.ts';
import type { Host, RunOptions } from './host.ts';
import { pause } from './limit.ts';
import { FOLLOW_SCRIPT, SERVING_SCRIPT, STOP_SCRIPT, startScript } from './rank-scripts.ts';

/** What a start needs to know beyond the service. */
export type RankStart = {
  readonly run: string;
  readonly attempt: number;
  readonly startedAt: string;
  /** Memory that must stay available, or the rank is stopped; no guard where it is left out. */
  readonly guard?: GuardReserve;
};

/**
 * Starts a rank in a session of its own, which outlives the connection. Exit 0 with `started`, with `already` when
 * a living rank has the claim, or with `attached` when only its container still ran and is followed again.
 */
export function startRank(
  host: Host,
  service: Service,
  start: RankStart,
  { signal }: RunOptions,
): Promise<Ran> {
  checkName(service.name);
  const secrets = Object.entries(service.secretEnv).map(([name, secret], index) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Error(`${name} cannot be a variable's name`);
    return { name, variable: `FL_SECRET_${index}`, secret };
  });
  const files = [
    hereFile('service.json', `${JSON.stringify(recordOf(service, start))}\n`),
    hereFile('command.sh', commandFile(service, start, secrets.length > 0)),
    ...(secrets.length === 0
      ? []
      : [
          `{ :; ${secrets.map(({ name, variable }) => `printf '%s=%s\\n' ${name} "$${variable}";`).join(' ')} } >"$d/secrets.env"`,
          `unset ${secrets.map(({ variable }) => variable).join(' ')}`,
        ]),
  ].join('\n');
  const env: Record<string, Word> = Object.fromEntries(
    secrets.map(({ variable, secret }) => [variable, { secret }]),
  );
  return host.run(
    script(startScript(files), [service.name, service.in, ...guardWords(start)], { env, timeoutSeconds: 60 }),
    {
      signal,
    },
  );
}

export type FollowOptions = {
  readonly signal: AbortSignal;
  readonly lines: (bytes: Buffer) => void;
  /** About once a second: the node's clock and its MemAvailable. */
  readonly beat: (beat: {
    readonly epochSeconds: number | undefined;
    readonly availableBytes: number | undefined;
  }) => void;
  /** Whenever the rank's guard has put down something new. */
  readonly guard?: (record: GuardRecord) => void;
  /** An interface of the node that is watched beside the rank, and who is told when it gets or loses its carrier. */
  readonly link?: { readonly name: string; readonly tell: (up: boolean) => void };
};

export type Followed =
  | { readonly kind: 'ended'; readonly code: number; readonly bytes: number }
  /** The runner is gone and left no exit code: the host restarted, or somebody ended it. */
  | { readonly kind: 'gone'; readonly bytes: number }
  /** Take it up again at `bytes`. */
  | { readonly kind: 'lost'; readonly failure: Unreachable; readonly bytes: number };

/** Follows a rank's log from a byte (0 is the first) until the rank has ended or the link breaks. */
export async function followRank(
  host: Host,
  name: string,
  fromByte: number,
  { signal, lines, beat, guard, link }: FollowOptions,
): Promise<Followed> {
  checkName(name);
  let bytes = fromByte;
  let end: { readonly code: number | undefined; readonly size: number } | undefined;
  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    lines(chunk);
  };
  const hear = (line: string): void => {
    const [kind, first, second] = line.split(' ');
    if (kind === 'B') beat({ epochSeconds: numberIf(first), availableBytes: bytesOf(second) });
    const record = kind === 'W' ? parseGuard(line.slice(2)) : undefined;
    if (record !== undefined) guard?.(record);
    if (kind === 'L') link?.tell(first === 'up');
    if (kind === 'X') end = { code: numberIf(first) ?? 255, size: numberIf(second) ?? 0 };
    if (kind === 'G') end = { code: undefined, size: numberIf(first) ?? 0 };
  };
  for (;;) {
    const ran = await host.stream(script(FOLLOW_SCRIPT, [name, String(bytes + 1), link?.name ?? '']), {
      signal,
      stdout: take,
      stderrLine: hear,
    });
    if (ran.kind === 'lost') return { kind: 'lost', failure: ran.failure, bytes };
    // Tail may have been ended before it had handed on the last of it.
    if (end === undefined || end.size > bytes) {
      await pause(200, signal);
      continue;
    }
    return end.code === undefined ? { kind: 'gone', bytes } : { kind: 'ended', code: end.code, bytes };
  }
}

/** Stops a rank: TERM, after the grace KILL for its whole session. Exit 0 when nothing of it is left; twice does no harm. */
export function stopRank(
  host: Host,
  name: string,
  { graceSeconds }: { readonly graceSeconds: number },
  { signal }: RunOptions,
): Promise<Ran> {
  checkName(name);
  const seconds = Math.ceil(graceSeconds);
  return host.run(script(STOP_SCRIPT, [name, String(seconds)], { timeoutSeconds: seconds + 45 }), { signal });
}

/** Notes on the node since when the rank's answer is proved. */
export function markServing(host: Host, name: string, iso: string, { signal }: RunOptions): Promise<Ran> {
  checkName(name);
  return host.run(script(SERVING_SCRIPT, [name, iso], { timeoutSeconds: 20 }), { signal });
}

/** The reserve in KiB, and whether the guard may take less on a small host. */
function guardWords({ guard }: RankStart): readonly string[] {
  return guard === undefined
    ? ['off', 'set']
    : [String(Math.ceil(guard.reserveBytes / 1024)), guard.set ? 'set' : 'auto'];
}

function recordOf(service: Service, { run, attempt, startedAt }: RankStart): object {
  const { name, recipe, engine, rank, recipeDigest, effectiveDigest, edits } = service;
  const key = Object.keys(service.secretEnv)[0];
  return {
    ...{
      name,
      recipe,
      engine,
      rank,
      run,
      attempt,
      in: service.in,
      recipeDigest,
      effectiveDigest,
      edits,
      startedAt,
    },
    ...(service.healthPort === undefined
      ? {}
      : { health: { address: service.healthAddress ?? '127.0.0.1', port: service.healthPort } }),
    ...(service.servedName === undefined ? {} : { servedName: service.servedName }),
    ...(service.ranks === undefined ? {} : { ranks: service.ranks }),
    ...(key === undefined ? {} : { apiKeyEnv: service.secretEnv[key] }),
  };
}

/** The rank's command as a script that a person can read and run. */
function commandFile(service: Service, { run, attempt }: RankStart, secrets: boolean): string {
  const words = service.argv.map((word) => {
    if (typeof word !== 'string') throw new Error('a secret may not be an argument of a rank');
    return word;
  });
  const argv = service.in === 'process' ? words.map(quotePlainly) : containerArgv(service, words, secrets);
  return [
    '#!/bin/sh',
    `# Rank ${service.rank} (${service.role}, ${service.engine}) of ${service.recipe}; firstlight run ${run}, attempt ${attempt}.`,
    ...Object.entries(service.env).map(([name, value]) => `export ${name}=${quotePlainly(value)}`),
    ...(secrets && service.in === 'process'
      ? [`while IFS= read -r line; do export "$line"; done <"$(dirname "$0")/secrets.env"`]
      : []),
    `exec ${byFlags(argv)}`,
    '',
  ].join('\n');
}

/** `docker run …` or `podman run …` in the background, under our name and labels; secrets by a file, never by `-e`. */
function containerArgv(service: Service, words: readonly string[], secrets: boolean): readonly string[] {
  const [runtime, run, ...rest] = words;
  if (runtime !== service.in || run !== 'run')
    throw new Error(`a rank in ${service.in} begins with ${service.in} run`);
  return [
    ...[runtime, run, '-d', '--name', `firstlight-${service.name}`].map(quotePlainly),
    ...['--label', `firstlight.rank=${service.name}`].map(quotePlainly),
    ...['--label', `firstlight.digest=${service.effectiveDigest}`].map(quotePlainly),
    ...(secrets ? ['--env-file', `"$(dirname "$0")/secrets.env"`] : []),
    ...rest.map(quotePlainly),
  ];
}

/** A flag and its values to a line. */
function byFlags(words: readonly string[]): string {
  return words
    .map((word, index) => `${index === 0 ? '' : word.startsWith('-') ? ' \\\n  ' : ' '}${word}`)
    .join('');
}

function hereFile(name: string, text: string): string {
  let end = 'FIRSTLIGHT_FILE';
  while (text.includes(end)) end += '_';
  return `cat >"$d/${name}" <<'${end}'\n${text.endsWith('\n') ? text : `${text}\n`}${end}`;
}

/** The name becomes a folder and a container: docker's rule is the narrower. */
function checkName(name: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name)) throw new Error(`${quote(name)} cannot be a rank's name`);
}

function numberIf(text: string | undefined): number | undefined {
  const value = Number.parseFloat(text ?? '');
  return Number.isFinite(value) ? value : undefined;
}

function bytesOf(kilobytes: string | undefined): number | undefined {
  const value = numberIf(kilobytes);
  return value === undefined ? undefined : value * 1024;
}
