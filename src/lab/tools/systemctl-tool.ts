import type { Unit } from '../systemd.ts';
import { all, given, last, type Options, readOptions } from './options.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

const OPTIONS = {
  '-p': 'property',
  '--property': 'property',
  '-P': 'value-of',
  '--value': 'value',
  '--user': 'user',
  '--system': 'system',
  '-t': 'type',
  '--type': 'type',
  '--state': 'state',
  '--no-pager': 'quiet',
  '--no-legend': 'no-legend',
  '--legend': 'legend',
  '--plain': 'plain',
  '-a': 'all',
  '--all': 'all',
  '-l': 'full',
  '--full': 'full',
  '-q': 'quiet',
  '--quiet': 'quiet',
  '--no-ask-password': 'quiet',
  '--no-block': 'no-block',
  '--now': 'now',
  '-o': 'output',
  '--output': 'output',
  '-n': 'lines',
  '--lines': 'lines',
  '--version': 'version',
} as const;

const FLAGS = new Set([
  'value',
  'user',
  'system',
  'quiet',
  'no-legend',
  'plain',
  'all',
  'full',
  'no-block',
  'now',
  'version',
]);

/** systemctl over the lab host's units; changing a unit of the system takes root. */
export async function systemctl(call: ToolCall): Promise<ToolAnswer> {
  const options = readOptions(call.argv, OPTIONS, FLAGS);
  if (options.unknown !== undefined) return bad(`systemctl: unrecognized option '${options.unknown}'`);
  if (given(options, 'version')) return out('systemd 255 (255.4-1ubuntu8, firstlight lab stand-in)\n');
  const [verb = 'list-units', ...names] = options.rest;
  const user = given(options, 'user');
  if (user && call.env['XDG_RUNTIME_DIR'] === undefined) {
    return bad(
      'Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and $XDG_RUNTIME_DIR not defined (consider using --machine=<user>@.host --user to connect to bus of other user)',
    );
  }
  const find = (name: string): Unit | undefined => call.host.systemd.find(name, user);
  switch (verb) {
    case 'show':
      return out(names.map((name) => show(call, find(name), name, options)).join('\n'));
    case 'is-active':
    case 'is-enabled':
    case 'is-failed':
      return isState(verb, names.map(find), given(options, 'quiet'));
    case 'status':
      return status(names.map((name) => ({ name, unit: find(name) })));
    case 'list-units':
      return listUnits(call, options, user);
    case 'start':
    case 'stop':
    case 'restart':
    case 'kill':
      return await change(verb, call, names, find, user);
    case 'enable':
    case 'disable':
    case 'reset-failed':
    case 'daemon-reload':
      if (!user && call.uid !== 0) return bad('Interactive authentication required.');
      for (const name of names) {
        const unit = find(name);
        if (unit !== undefined && verb !== 'reset-failed') unit.enabled = verb === 'enable';
        if (unit !== undefined && verb === 'reset-failed' && unit.active === 'failed')
          unit.active = 'inactive';
      }
      return out('');
    case 'is-system-running':
      return out('running\n');
    case 'cat': {
      const unit = find(names[0] ?? '');
      return unit === undefined
        ? bad(`No files found for ${names[0] ?? ''}.`)
        : out(`# ${path(unit)}\n${unitFile(unit)}`);
    }
    default:
      return bad(`Unknown command verb ${verb}.`);
  }
}

async function change(
  verb: 'start' | 'stop' | 'restart' | 'kill',
  call: ToolCall,
  names: readonly string[],
  find: (name: string) => Unit | undefined,
  user: boolean,
): Promise<ToolAnswer> {
  let stderr = '';
  let code = 0;
  for (const name of names) {
    const unit = find(name);
    const whole = name.includes('.') ? name : `${name}.service`;
    if (unit === undefined) {
      stderr += `Failed to ${verb} ${whole}: Unit ${whole} not ${verb === 'stop' ? 'loaded' : 'found'}.\n`;
      code = 5;
    } else if (!user && call.uid !== 0) {
      stderr += `Failed to ${verb} ${whole}: Interactive authentication required.\nSee system logs and 'systemctl status ${whole}' for details.\n`;
      code = 1;
    } else if (verb === 'kill') {
      call.host.signalUnit(unit, 'SIGTERM');
    } else {
      if (verb !== 'start') await call.host.systemd.stop(unit);
      if (verb !== 'stop') call.host.systemd.start(unit);
    }
  }
  return { stdout: '', stderr, code };
}

function show(call: ToolCall, unit: Unit | undefined, name: string, options: Options): string {
  const values = properties(call, unit, name);
  const one = last(options, 'value-of');
  const wanted = [...all(options, 'property'), ...(one === undefined ? [] : [one])].flatMap((list) =>
    list.split(','),
  );
  const bare = given(options, 'value') || one !== undefined;
  return Object.entries(values)
    .filter(([key]) => wanted.length === 0 || wanted.includes(key))
    .map(([key, value]) => (bare ? `${value}\n` : `${key}=${value}\n`))
    .join('');
}

function properties(call: ToolCall, unit: Unit | undefined, name: string): Readonly<Record<string, string>> {
  if (unit === undefined) {
    const whole = name.includes('.') ? name : `${name}.service`;
    return {
      Restart: 'no',
      MainPID: '0',
      Id: whole,
      Names: whole,
      Description: whole,
      LoadState: 'not-found',
      ActiveState: 'inactive',
      SubState: 'dead',
      FragmentPath: '',
      UnitFileState: '',
    };
  }
  const { spec } = unit;
  return {
    Type: 'simple',
    Restart: spec.restart,
    RestartUSec: `${spec.restartSeconds}s`,
    MainPID: String(unit.pid),
    NRestarts: String(unit.restarts),
    ExecMainPID: String(unit.pid),
    ExecStart: `{ path=/usr/local/bin/${spec.argv[0] ?? ''} ; argv[]=${spec.argv.join(' ')} ; }`,
    ControlGroup: unit.active === 'active' ? call.host.unitCgroup(spec) : '',
    User: spec.user,
    Id: spec.name,
    Names: spec.name,
    WantedBy: 'multi-user.target',
    Description: spec.description,
    LoadState: 'loaded',
    ActiveState: unit.active,
    SubState: subState(unit),
    FragmentPath: path(unit),
    UnitFileState: unit.enabled ? 'enabled' : 'disabled',
    TriggeredBy: '',
  };
}

function subState(unit: Unit): string {
  switch (unit.active) {
    case 'active':
      return 'running';
    case 'activating':
      return 'auto-restart';
    case 'deactivating':
      return 'stop-sigterm';
    case 'failed':
      return 'failed';
    case 'inactive':
      return 'dead';
  }
}

function path({ spec }: Unit): string {
  return spec.userUnit
    ? `/home/${spec.user}/.config/systemd/user/${spec.name}`
    : `/etc/systemd/system/${spec.name}`;
}

function unitFile({ spec }: Unit): string {
  return `[Unit]\nDescription=${spec.description}\n\n[Service]\nExecStart=/usr/local/bin/${spec.argv.join(' ')}\nUser=${spec.user}\nRestart=${spec.restart}\nRestartSec=${spec.restartSeconds}\n\n[Install]\nWantedBy=default.target\n`;
}

function isState(verb: string, units: readonly (Unit | undefined)[], quiet: boolean): ToolAnswer {
  const words = units.map((unit) =>
    unit === undefined
      ? verb === 'is-enabled'
        ? 'not-found'
        : 'inactive'
      : verb === 'is-enabled'
        ? unit.enabled
          ? 'enabled'
          : 'disabled'
        : unit.active,
  );
  const wanted = { 'is-active': 'active', 'is-enabled': 'enabled', 'is-failed': 'failed' }[verb];
  const stdout = quiet ? '' : words.map((word) => `${word}\n`).join('');
  return {
    stdout,
    stderr: '',
    code: words.some((word) => word === wanted) ? 0 : verb === 'is-active' ? 3 : 1,
  };
}

function status(list: readonly { readonly name: string; readonly unit: Unit | undefined }[]): ToolAnswer {
  const missing = list.find(({ unit }) => unit === undefined);
  if (missing !== undefined) return bad(`Unit ${missing.name}.service could not be found.`, 4);
  const units = list.flatMap(({ unit }) => unit ?? []);
  const text = units.map(
    (unit) =>
      `${unit.active === 'active' ? '●' : '○'} ${unit.spec.name} - ${unit.spec.description}\n     Loaded: loaded (${path(unit)}; ${unit.enabled ? 'enabled' : 'disabled'})\n     Active: ${unit.active} (${subState(unit)})\n   Main PID: ${unit.pid}\n`,
  );
  return {
    stdout: text.join('\n'),
    stderr: '',
    code: units.every((unit) => unit.active === 'active') ? 0 : 3,
  };
}

function listUnits(call: ToolCall, options: Options, user: boolean): ToolAnswer {
  const states = all(options, 'state').flatMap((list) => list.split(','));
  const shown = call.host.systemd.list.filter(
    (unit) =>
      unit.spec.userUnit === user &&
      (given(options, 'all') || unit.active !== 'inactive') &&
      (states.length === 0 || states.includes(unit.active) || states.includes(subState(unit))),
  );
  const rows = shown.map((unit) => ({
    unit: unit.spec.name,
    load: 'loaded',
    active: unit.active,
    sub: subState(unit),
    description: unit.spec.description,
  }));
  if (last(options, 'output') === 'json') return out(`${JSON.stringify(rows)}\n`);
  const lines = rows.map((row) => `${row.unit} ${row.load} ${row.active} ${row.sub} ${row.description}\n`);
  const legend = given(options, 'no-legend') || last(options, 'legend') === 'false';
  return out(`${legend ? '' : 'UNIT LOAD ACTIVE SUB DESCRIPTION\n'}${lines.join('')}`);
}
