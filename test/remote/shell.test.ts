import { describe, expect, it } from 'vitest';
import { script } from '../../src/domain/command.ts';
import { Frame } from '../../src/remote/frame.ts';
import { limitTo, Shared } from '../../src/remote/limit.ts';
import { BOOT, boot, render, scriptOf } from '../../src/remote/shell.ts';
import { done } from '../pretend/far-side.ts';

const options = { marker: 'MARK', sudo: 'none', secret: () => 'hidden' } as const;

describe('a rendered command', () => {
  it('gives the login shell one short line without anything of the command in it', () => {
    const odd = ["it's", 'a\nb', '$(id)', '{"a": 1}'];
    const { remote, stdin } = render({ argv: ['tool', ...odd], env: { A: { secret: 'x' } } }, options);
    expect(remote).toMatch(/^[\x20-\x7e]{1,200}$/);
    expect(remote).not.toMatch(/id|it's|hidden|\\|!/);
    expect(stdin).toContain("'it'\\''s'");
  });

  it('runs nothing when the connection breaks before all of it has come', async () => {
    const whole = boot('echo one\necho two');
    expect((await done(['sh', '-c', BOOT], whole)).stdout).toBe('one\ntwo\n');
    for (const length of [0, 1, 5, 12, whole.length - 1]) {
      expect((await done(['sh', '-c', BOOT], whole.slice(0, length))).stdout).toBe('');
    }
    const { stdin } = render(script('echo one\necho two'), options);
    const cut = await done(['sh', '-c', BOOT], stdin.slice(0, stdin.indexOf('echo two')));
    expect(cut.stdout).not.toContain('one');
  });

  it('never puts the sudo password where a shell or a process list could see it', async () => {
    const { remote, stdin } = render(
      { argv: ['id'], sudo: true },
      { ...options, sudo: { password: 'p$(x)' } },
    );
    expect(remote).not.toContain('p$(x)');
    const [head = ''] = stdin.split('\n');
    const rest = Buffer.from(stdin)
      .subarray(head.length + 1 + Number(head))
      .toString();
    expect(rest).toBe('p$(x)\n');
  });

  it('can be kept as a script, but not with secrets', async () => {
    const kept = scriptOf({ ...script('printf "%s|" "$A" "$@"', ["it's", 'a\nb']), env: { A: '$x' } });
    expect((await done(['sh', '-c', kept])).stdout).toBe("$x|it's|a\nb|");
    expect(() => scriptOf({ argv: ['a'], env: { K: { secret: 's' } } })).toThrow('may not be written');
  });
});

describe('a frame', () => {
  it('finds its marker however the bytes are cut', () => {
    const text = 'noise ~MAR\n~MARK\nout ~MARx ~MA\n~MARK:7\nafter';
    for (let size = 1; size <= text.length; size += 1) {
      let seen = '';
      const frame = new Frame('~MARK', (bytes) => {
        seen += bytes.toString();
      });
      for (let at = 0; at < text.length; at += size) frame.feed(Buffer.from(text.slice(at, at + size)));
      expect([seen, frame.end]).toEqual(['out ~MARx ~MA\n', { kind: 'code', code: 7 }]);
    }
  });
});

describe('work that is limited and shared', () => {
  it('has so many at once and leaves the line on abort', async () => {
    const limit = limitTo(2);
    const open: (() => void)[] = [];
    const { signal } = new AbortController();
    const work = () => new Promise<void>((resolve) => open.push(resolve));
    const first = [limit(signal, work), limit(signal, work)];
    const leaving = new AbortController();
    const third = limit(leaving.signal, work);
    const fourth = limit(signal, work);
    leaving.abort(new Error('left'));
    await expect(third).rejects.toThrow('left');
    expect(open).toHaveLength(2);
    open[0]?.();
    await first[0];
    await Promise.resolve();
    expect(open).toHaveLength(3);
    open[1]?.();
    open[2]?.();
    await Promise.all([first[1], fourth]);
  });

  it('goes on while one of those who wait is left', async () => {
    let aborted = false;
    let finish = (_: number): void => undefined;
    const shared = new Shared<number>(
      (signal) =>
        new Promise((resolve, reject) => {
          finish = resolve;
          signal.addEventListener('abort', () => {
            aborted = true;
            reject(signal.reason);
          });
        }),
    );
    const one = new AbortController();
    const two = new AbortController();
    const first = shared.join(one.signal);
    const second = shared.join(two.signal);
    one.abort(new Error('gone'));
    await expect(first).rejects.toThrow('gone');
    expect(aborted).toBe(false);
    finish(5);
    expect(await second).toBe(5);
    const third = shared.join(two.signal);
    two.abort(new Error('gone too'));
    await expect(third).rejects.toThrow('gone too');
    expect(aborted).toBe(true);
  });
});
