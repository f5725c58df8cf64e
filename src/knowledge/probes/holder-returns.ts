import type { Owner, Return } from '../../domain/facts.ts';
import { type Member, shortName } from './holder-member.ts';
import { unitState } from './holder-owner.ts';
import { maskSecrets } from './mask-secrets.ts';
import type { ProcessReading, ProcessRow } from './process-reading.ts';

const SHELL = /^-?(ba|da|z|k|a|fi)?sh$|^busybox$/;
const SUPERVISOR =
  /^(supervisord?|runsv|s6-supervise|monit|circusd|pm2.*|God Daemon|PM2.*|watchman|forever|nodemon|systemd-run)$/;
const CRON = /^(cron|crond|CROND|CRON|atd|anacron)$/;
/** A login, or what only hosts sessions: it starts nothing again. */
const QUIET =
  /^(sshd|login|su|sudo|tmux.*|screen|systemd|init|gnome-terminal.*|konsole|xterm|dbus.*|code|node)\b/;

/** What would start this holder again once it was stopped, as far as it shows; most certain first. */
export function returnsOf(main: Member, owner: Owner, reading: ProcessReading): readonly Return[] {
  switch (owner.kind) {
    case 'container':
      return containerReturns(owner);
    case 'unit':
      return unitReturns(owner, reading);
    case 'process':
      return processReturns(main, reading);
    default:
      return [];
  }
}

function containerReturns(owner: Extract<Owner, { kind: 'container' }>): readonly Return[] {
  const { runtime, name, restartPolicy, composeProject } = owner;
  const policy = restartPolicy.known ? restartPolicy.value : 'no';
  return [
    ...(policy === 'no' || policy === ''
      ? []
      : [
          {
            by: 'restart-policy' as const,
            what: `its restart policy ${policy}`,
            keepAway: `${runtime} update --restart=no ${name}`,
            // podman 4 has no `update --restart`; there it stays away until podman's own service starts it.
            handled: runtime === 'docker',
          },
        ]),
    ...(composeProject === undefined
      ? []
      : [
          {
            by: 'compose' as const,
            what: `the next \`compose up\` of project ${composeProject}`,
            keepAway: `${runtime} compose -p ${composeProject} stop`,
            handled: false,
          },
        ]),
  ];
}

function unitReturns(owner: Extract<Owner, { kind: 'unit' }>, reading: ProcessReading): readonly Return[] {
  const { unit, userUnitUid, restart } = owner;
  const manager = userUnitUid === undefined ? 'sudo systemctl' : 'systemctl --user';
  const state = unitState(
    { kind: 'unit', unit, ...(userUnitUid === undefined ? {} : { uid: userUnitUid }) },
    reading,
  );
  const triggers = (state?.triggeredBy ?? []).map((trigger): Return => {
    const by = trigger.endsWith('.socket') ? 'socket' : trigger.endsWith('.timer') ? 'timer' : 'path';
    const when = {
      socket: 'at the next connection',
      timer: 'when its time comes',
      path: 'when its file changes',
    };
    return { by, what: `${trigger}, ${when[by]}`, keepAway: `${manager} stop ${trigger}`, handled: true };
  });
  if (!restart.known || restart.value === 'no' || restart.value === '') return triggers;
  const word = `Restart=${restart.value} of ${unit}`;
  return [{ by: 'unit', what: word, keepAway: `${manager} stop ${unit}`, handled: true }, ...triggers];
}

function processReturns(main: Member, reading: ProcessReading): readonly Return[] {
  const above = ancestors(main.row, reading);
  const found = above.flatMap((row) => fromAncestor(row, reading));
  if (found.length > 0) return found.slice(0, 2);
  const { whose } = main;
  if (whose.kind === 'unit' && /^(cron|crond|atd|anacron)\.service$/.test(whose.unit))
    return [cron(main.row, reading)];
  const [parent] = above;
  const args = parent === undefined ? undefined : argumentsOf(parent, reading);
  if (parent === undefined || args === undefined || QUIET.test(parent.name)) return [];
  // A login shell runs what is typed; with a script it may well go round.
  if (SHELL.test(parent.name) && !args.slice(1).some((word) => word !== '' && !/^-[il]*$/.test(word)))
    return [];
  return [
    {
      by: 'parent',
      what: `${shortName(args, parent)}, pid ${parent.pid}, which started it and may do so again`,
      keepAway: `end that first: kill ${parent.pid}`,
      handled: false,
    },
  ];
}

function fromAncestor(row: ProcessRow, reading: ProcessReading): readonly Return[] {
  if (CRON.test(row.name)) return [cron(row, reading)];
  const text = maskSecrets(argumentsOf(row, reading) ?? []).join(' ');
  if (row.name === 'watch' || (SHELL.test(row.name) && /\b(while|until|for)\b[\s\S]*\bdo\b/.test(text))) {
    const what = `a shell loop of ${userOf(row, reading)}, pid ${row.pid}: ${text.slice(0, 120)}`;
    return [{ by: 'loop', what, keepAway: `end the loop first: kill ${row.pid}`, handled: false }];
  }
  if (!SUPERVISOR.test(row.name)) return [];
  const what = `${row.name}, pid ${row.pid}, which keeps it running`;
  return [{ by: 'supervisor', what, keepAway: `stop it in ${row.name}`, handled: false }];
}

function cron(row: ProcessRow, reading: ProcessReading): Return {
  return {
    by: 'cron',
    what: 'cron, at its next time',
    keepAway: `take its line out: crontab -e as ${userOf(row, reading)}, or look in /etc/cron.d`,
    handled: false,
  };
}

/** From the parent upwards, without the first process of the host. */
function ancestors(row: ProcessRow, reading: ProcessReading): readonly ProcessRow[] {
  const found: ProcessRow[] = [];
  let at = reading.rows.get(row.parent);
  for (let depth = 0; depth < 3 && at !== undefined && at.pid > 1; depth++) {
    found.push(at);
    at = reading.rows.get(at.parent);
  }
  return found;
}

function argumentsOf(row: ProcessRow, reading: ProcessReading): readonly string[] | undefined {
  return reading.parents.get(row.pid) ?? reading.details.get(row.pid)?.args;
}

function userOf(row: ProcessRow, reading: ProcessReading): string {
  return reading.users.get(row.uid) ?? String(row.uid);
}
