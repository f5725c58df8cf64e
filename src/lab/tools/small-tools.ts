import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { last, readOptions } from './options.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

/** loginctl: lingering of the login user, and that there is one session. */
export function loginctl(call: ToolCall): ToolAnswer {
  const options = readOptions(
    call.argv,
    {
      '-p': 'property',
      '--property': 'property',
      '--value': 'value',
      '-P': 'property',
      '--no-pager': 'quiet',
    },
    new Set(['value', 'quiet']),
  );
  const [verb = '', name] = options.rest;
  const user = name ?? call.host.user;
  const file = join(call.host.root, 'var/lib/systemd/linger', user);
  switch (verb) {
    case 'show-user': {
      const values = { UID: '1000', Name: user, State: 'active', Linger: existsSync(file) ? 'yes' : 'no' };
      const wanted = last(options, 'property')?.split(',');
      return out(
        Object.entries(values)
          .filter(([key]) => wanted === undefined || wanted.includes(key))
          .map(([key, value]) =>
            options.values.has('value') || call.argv.includes('-P') ? `${value}\n` : `${key}=${value}\n`,
          )
          .join(''),
      );
    }
    case 'enable-linger':
    case 'disable-linger':
      if (call.uid !== 0 && user !== call.host.user) {
        return bad('Could not enable linger: Interactive authentication required.');
      }
      if (verb === 'enable-linger') writeFileSync(file, '');
      else rmSync(file, { force: true });
      return out('');
    case 'list-sessions':
      return out(`SESSION  UID USER   SEAT TTY\n      1 1000 ${call.host.user}\n`);
    default:
      return bad(`Unknown command verb ${verb}.`);
  }
}

/** The journal is root's; nothing stands in it. */
export function journalctl(call: ToolCall): ToolAnswer {
  if (call.uid !== 0) {
    return {
      stdout: '-- No entries --\n',
      stderr:
        "Hint: You are currently not seeing messages from other users and the system.\n      Users in groups 'adm', 'systemd-journal' can see all messages.\n      Pass -q to turn off this notice.\n",
      code: 0,
    };
  }
  return out('-- No entries --\n');
}

export function dmesg(call: ToolCall): ToolAnswer {
  return call.uid === 0
    ? out(call.host.kernel.log.map((line) => `${line}\n`).join(''))
    : bad('dmesg: read kernel buffer failed: Operation not permitted');
}
