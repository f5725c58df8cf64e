import { chmodSync, existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { script } from '../../src/domain/command.ts';
import type { Host } from '../../src/remote/host.ts';
import { openHosts } from '../../src/remote/open-hosts.ts';
import {
  clusterOf,
  endMasters,
  type FarHost,
  type FarSide,
  farSide,
  never,
  secretsOf,
} from '../pretend/far-side.ts';

const shells = ['/bin/sh', '/bin/bash', '/bin/zsh', '/usr/bin/fish', '/bin/csh'].filter((path) =>
  existsSync(path),
);

describe('commands on a host', () => {
  let far: FarSide;
  let sockets: string;
  const farHosts: FarHost[] = [];
  const hosts: Host[] = [];
  const secrets = secretsOf({ TOKEN: "s3cret'$x" });

  beforeAll(async () => {
    far = farSide();
    sockets = join(far.folder, 'so ck');
    const key = far.key('client');
    for (const shell of shells) {
      farHosts.push(await far.host(`h${farHosts.length}`, { shell, keys: [far.publicKey(key)] }));
    }
    const noisy = await far.host('noisy', {
      shell: '/bin/bash',
      keys: [far.publicKey(key)],
      env: { BASH_ENV: join(far.folder, 'rc') },
    });
    writeFileSync(
      join(far.folder, 'rc'),
      'echo Welcome to the machine; echo "you have mail" >&2; printf no-newline\n',
    );
    farHosts.push(noisy);
    const cluster = clusterOf(
      far,
      key,
      farHosts.map((host) => ({ name: host.name, host })),
    );
    hosts.push(...openHosts(cluster, { secrets, socketFolder: sockets }).all);
  });
  afterAll(async () => {
    await endMasters(sockets);
    await far.close();
  });

  const show = 'for a; do printf "%s\\0" "$a"; done';
  const odd = [
    "it's",
    '"$(id)" `id` $HOME \\ \\n',
    'two\nlines\n',
    '{"a": [1, "b c"], "d": "e\\"f"}',
    '--flag',
    '',
    '-n',
    '!! ! ~ * ? [a] {b,c} # % ^ & | ; < > ( )',
    'żółć 漢字 🚀',
    '\t\r\u0001\u007f',
  ];

  it('give their arguments to the program as they are, whatever the login shell', async () => {
    for (const host of hosts) {
      const ran = await host.run({ argv: ['sh', '-c', show, 'sh', ...odd] }, { signal: never });
      expect(ran).toMatchObject({
        kind: 'ran',
        code: 0,
        stdout: odd.map((word) => `${word}\0`).join(''),
        stderr: '',
      });
    }
  });

  it('do so for any words', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc
            .string({
              unit: fc.oneof(
                fc.constantFrom(...'\'"\\$`!\n -~*#\t%{}'),
                fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
              ),
            })
            .map((text) => text.replaceAll('\0', '')),
          { maxLength: 12 },
        ),
        fc.nat(hosts.length - 1),
        async (texts, at) => {
          const words = texts.map((text) => Buffer.from(text).toString());
          const ran = await hosts[at]?.run({ argv: ['sh', '-c', show, 'sh', ...words] }, { signal: never });
          expect(ran).toMatchObject({
            kind: 'ran',
            code: 0,
            stdout: words.map((word) => `${word}\0`).join(''),
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  it('get their stdin whole, and nothing of ours with it', async () => {
    const text = `${'line of text\n'.repeat(20_000)}no newline at the end: $(x) '`;
    for (const host of hosts) {
      const ran = await host.run({ argv: ['cat'], stdin: text }, { signal: never });
      expect(ran.kind === 'ran' && ran.stdout === text).toBe(true);
      const none = await host.run({ argv: ['cat'] }, { signal: never });
      expect(none).toMatchObject({ kind: 'ran', stdout: '' });
    }
  });

  it('tell exit codes, 255 included, and keep stdout and stderr apart from what shells print', async () => {
    for (const host of hosts) {
      const ran = await host.run(script('echo out; printf err >&2; exit 255'), { signal: never });
      expect(ran).toMatchObject({ kind: 'ran', code: 255, stdout: 'out\n', stderr: 'err' });
    }
  });

  it('end by their timeout on the node', async () => {
    const ran = await hosts[0]?.run(
      { ...script('echo first; sleep 30.271; echo late > late'), timeoutSeconds: 1 },
      { signal: never },
    );
    expect(ran).toMatchObject({ kind: 'timeout', seconds: 1, stdout: 'first\n' });
    const left = await hosts[0]?.run(
      { argv: ['sh', '-c', 'ps -A -o args | grep "[s]leep 30.271"'] },
      { signal: never },
    );
    expect(left).toMatchObject({ stdout: '' });
  });

  it('are over when their frame is, though a background process keeps the channel', async () => {
    const started = performance.now();
    const ran = await hosts[0]?.run(script('sleep 20 & echo there'), { signal: never });
    expect(ran).toMatchObject({ kind: 'ran', stdout: 'there\n' });
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it('end here when they are aborted', async () => {
    const controller = new AbortController();
    const pending = hosts[0]?.run(
      { argv: ['sleep', '20'], timeoutSeconds: 2 },
      { signal: controller.signal },
    );
    controller.abort(new Error('enough'));
    await expect(pending).rejects.toThrow('enough');
  });

  it('get secrets by their environment only', async () => {
    const ran = await hosts[0]?.run(
      {
        ...script('printf "%s" "$KEY"; cat /proc/$$/cmdline /proc/$PPID/cmdline | tr "\\0" " "'),
        env: { KEY: { secret: 'TOKEN' }, B: "b'" },
      },
      { signal: never },
    );
    expect(ran?.kind === 'ran' && ran.stdout.startsWith("s3cret'$x")).toBe(true);
    expect(ran?.kind === 'ran' && ran.stdout.slice(9)).not.toContain('s3cret');
    await expect(hosts[0]?.run({ argv: ['echo', { secret: 'TOKEN' }] }, { signal: never })).rejects.toThrow(
      'may not be an argument',
    );
  });

  it('hand on their output while they run', async () => {
    const seen: string[] = [];
    const lines: string[] = [];
    const ran = await hosts[0]?.stream(
      script('echo a; echo x >&2; while ! [ -e go ]; do sleep 0.05; done; echo b; printf y >&2'),
      {
        signal: never,
        stdout: (chunk) => {
          seen.push(chunk.toString());
          writeFileSync(join(farHosts[0]?.home ?? '', 'go'), '');
        },
        stderrLine: (line) => lines.push(line),
      },
    );
    expect(ran).toMatchObject({ kind: 'ran', code: 0 });
    expect(seen.join('')).toBe('a\nb\n');
    expect(seen.length).toBeGreaterThan(1);
    expect(lines).toEqual(['x', 'y']);
  });

  it('log in once for twenty whose background processes keep their channels', async () => {
    const all = Array.from({ length: 20 }, () =>
      hosts[0]?.run(script('sleep 20 & echo there'), { signal: never }),
    );
    expect((await Promise.all(all)).map((one) => one?.kind)).toEqual(Array.from({ length: 20 }, () => 'ran'));
    expect(farHosts[0]?.ssh.connections).toBe(1);
  });

  it('run twenty at once over one connection', async () => {
    const host = hosts[0];
    const ran = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        host?.run({ argv: ['echo', String(index)] }, { signal: never }),
      ),
    );
    expect(ran.map((one) => (one?.kind === 'ran' ? one.stdout.trim() : one))).toEqual(
      Array.from({ length: 20 }, (_, index) => String(index)),
    );
    expect(farHosts[0]?.ssh.connections).toBe(1);
  });

  describe('as root', () => {
    /** Acts as sudo does: ticket per parent process, password on stdin, three tries. */
    const sudo = (password: string) => `#!/bin/sh
t="$HOME/ticket-$PPID"; n= s= v=
while [ $# -gt 0 ]; do case $1 in -n) n=1;; -S) s=1;; -v) v=1;; -p) shift;; *) break;; esac; shift; done
if [ "$1" = free ]; then echo free; exit; fi
if ! [ -e "$t" ]; then
  if [ -n "$n" ]; then echo "sudo: a password is required" >&2; exit 1; fi
  echo "We trust you have received the usual lecture" >&2
  i=0
  while IFS= read -r line; do
    [ "$line" = '${password}' ] && { : > "$t"; break; }
    echo "Sorry, try again." >&2; i=$((i+1)); [ $i = 3 ] && break
  done
  [ -e "$t" ] || { echo "sudo: no password was provided" >&2; exit 1; }
fi
[ -n "$v" ] && exit 0
unset FIRSTLIGHT_ROOT; PATH=/usr/bin:/bin
exec "$@"
`;
    let host: Host;
    let farHost: FarHost;
    let cluster: ReturnType<typeof clusterOf>;
    const open = (password?: string) => {
      const withPassword = secretsOf({ TOKEN: 'tok' }, password);
      const [first] = openHosts(cluster, { secrets: withPassword, socketFolder: sockets }).all;
      if (first === undefined) throw new Error('no host');
      return { host: first, secrets: withPassword };
    };
    beforeAll(async () => {
      const key = far.key('root-client');
      farHost = await far.host('root', { keys: [far.publicKey(key)] });
      writeFileSync(join(farHost.bin, 'sudo'), sudo('p w"$x'));
      chmodSync(join(farHost.bin, 'sudo'), 0o755);
      writeFileSync(join(farHost.bin, 'id'), '#!/bin/sh\necho 1000\n');
      chmodSync(join(farHost.bin, 'id'), 0o755);
      cluster = clusterOf(far, key, [{ name: 'root', host: farHost }]);
      host = open('p w"$x').host;
    });

    it('say that a password is needed where none is to be had', async () => {
      const ran = await open().host.run({ argv: ['true'], sudo: true }, { signal: never });
      expect(ran).toMatchObject({ kind: 'refused', why: 'sudo-needs-password' });
    });

    it('say that the password is wrong, and run nothing', async () => {
      const ran = await open('nonsense').host.run({ ...script('touch ran'), sudo: true }, { signal: never });
      expect(ran).toMatchObject({ kind: 'refused', why: 'sudo-password-wrong' });
      expect(existsSync(join(farHost.home, 'ran'))).toBe(false);
    });

    it('take the password from stdin alone, and give the command its own stdin, root prefix and path', async () => {
      for (const stdin of ['text\n', 'no newline', '']) {
        const ran = await host.run({ argv: ['cat'], stdin, sudo: true }, { signal: never });
        expect(ran).toMatchObject({ kind: 'ran', code: 0, stdout: stdin, stderr: '' });
      }
      const ran = await host.run(
        {
          ...script('echo "$FIRSTLIGHT_ROOT|$PATH|$A|$KEY|$1"', ["it's"]),
          env: { A: 'a b', KEY: { secret: 'TOKEN' } },
          sudo: true,
          timeoutSeconds: 5,
        },
        { signal: never },
      );
      expect(ran).toMatchObject({
        kind: 'ran',
        stdout: `${farHost.folder}|${farHost.bin}:/usr/local/bin:/usr/bin:/bin|a b|tok|it's\n`,
      });
    });

    it('ask for the password once', async () => {
      const { host: fresh, secrets: asked } = open('p w"$x');
      for (let times = 0; times < 3; times += 1) {
        expect(await fresh.run({ argv: ['true'], sudo: true }, { signal: never })).toMatchObject({ code: 0 });
      }
      expect(asked.asked).toBe(1);
    });

    it('ask for another password where one is not taken, until one is or none comes', async () => {
      const typed = ['mistyped too', 'p w"$x'];
      const refused: string[] = [];
      const secrets = {
        ...secretsOf({}, 'mistyped'),
        otherSudoPassword: async (_node: string, before: string) => {
          refused.push(before);
          return typed.shift();
        },
      };
      const open = () => openHosts(cluster, { secrets, socketFolder: sockets }).all[0];
      const ran = await open()?.run({ ...script('echo as root'), sudo: true }, { signal: never });
      expect(ran).toMatchObject({ kind: 'ran', stdout: 'as root\n' });
      expect(refused).toEqual(['mistyped', 'mistyped too']);
      const again = await open()?.run({ argv: ['true'], sudo: true }, { signal: never });
      expect(again).toMatchObject({ kind: 'refused', why: 'sudo-password-wrong' });
    });

    it('say that a host has no sudo', async () => {
      const key = far.key('bare-client');
      const bare = await far.host('bare', {
        keys: [far.publicKey(key)],
        env: { PATH: join(far.folder, 'bare/bin') },
      });
      for (const tool of ['sh', 'dd']) symlinkSync(`/bin/${tool}`, join(bare.bin, tool));
      writeFileSync(join(bare.bin, 'id'), '#!/bin/sh\necho 1000\n', { mode: 0o755 });
      const [plain] = openHosts(clusterOf(far, key, [{ name: 'bare', host: bare }]), {
        secrets: secretsOf(),
        socketFolder: sockets,
      }).all;
      const ran = await plain?.run({ argv: ['true'], sudo: true }, { signal: never });
      expect(ran).toMatchObject({ kind: 'refused', why: 'sudo-missing' });
    });
  });
});
