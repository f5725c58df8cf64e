/**
 * What firstlight keeps on a node, and the only thing it leaves there. Homes may be shared between hosts, so
 * the folder carries the host's machine-id. `$R` is the root prefix: empty on every real host.
 *
 *     $HOME/.firstlight/<machine-id>/
 *       ranks/<service name>/     made by mkdir: that is the claim
 *         service.json            JSON of {name, recipe, engine, rank, run, attempt, in, recipeDigest, effectiveDigest,
 *                                 edits, startedAt, health?: {address, port}, servedName?, ranks?, apiKeyEnv?}
 *         command.sh              the rank's command, readable, runnable by hand
 *         runner                  "<pid> <start ticks>" of the rank runner
 *         run.sh                  the rank runner itself; engine, boot, container, starting, *.err: what it keeps for a stop
 *         guard.sh, guard         the rank's guard, and its "<pid> <start ticks>"; guard.json: what it put down
 *         log                     the engine's output, bytes as they came
 *         exit                    exit code, once the rank has ended
 *         stopping                exists once a stop was asked for
 *         serving                 ISO time, once the answer was proved
 *         adopted         what somebody else started: `process <pid> <start ticks>` or `docker <id>`; source: its log
 *         secrets.env             mode 0600, removed at down
 *       ranks/<service name>~<n>/ earlier attempts
 *       undo/<step id>/           mode 0700
 *         record.json             {id, run, title, at, sudo}
 *         undo.sh                 POSIX sh; looks first, so that running it twice does no harm
 *         state                   `pending`, then `restored`
 *         …                       what undo.sh needs (argv, environ, cwd, user of a bare process)
 */
export const NODE_FOLDER_SH = String.raw`FL="$HOME/.firstlight/$(cat "$R/etc/machine-id" 2>/dev/null || hostname)"`;

/**
 * One host-wide place, not the home, which may be shared: `owner` holds the record as JSON, `owner.<token>` says whose
 * it is, and its age is that of the last refresh.
 */
export const LOCK_DIR_SH = String.raw`FL_LOCK="$R/tmp/firstlight.lock"`;

export const LOCK_REFRESH_SECONDS = 10;
export const LOCK_DEAD_SECONDS = 45;
