import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { askPassword, type PasswordWhy } from '../../src/faces/cli/secret.ts';
import { Terminal } from './run-cli.ts';

function ask(
  stdin: Terminal | PassThrough,
  why: PasswordWhy = { purpose: undefined, again: false },
): {
  readonly answer: Promise<string | undefined>;
  readonly shown: () => string;
  readonly interrupts: () => number;
} {
  let shown = '';
  let interrupts = 0;
  const answer = askPassword('spark-b', why, {
    input: stdin,
    write: (text) => {
      shown += text;
    },
    interrupt: () => {
      interrupts += 1;
    },
    signal: new AbortController().signal,
  });
  return { answer, shown: () => shown, interrupts: () => interrupts };
}

test('what is typed is not shown, backspace and Ctrl-U work, and the terminal is put back', async () => {
  const stdin = new Terminal();
  const asked = ask(stdin);
  stdin.write('wrong\x15secrex\x7ft pä\r');
  expect(await asked.answer).toBe('secret pä');
  expect(asked.shown()).not.toContain('secr');
  expect(stdin.rawModes).toEqual([true, false]);
});

test('Ctrl-C puts the terminal back before it interrupts', async () => {
  const stdin = new Terminal();
  const asked = ask(stdin);
  stdin.write('sec\x03');
  expect(await asked.answer).toBeUndefined();
  expect(asked.interrupts()).toBe(1);
  expect(stdin.rawModes).toEqual([true, false]);
});

test('an empty line and the end of input give no password', async () => {
  const empty = new Terminal();
  const first = ask(empty);
  empty.write('\r');
  expect(await first.answer).toBeUndefined();
  const ended = new Terminal();
  const second = ask(ended);
  ended.end();
  expect(await second.answer).toBeUndefined();
});

test('where the input is no terminal nobody is asked', async () => {
  const asked = ask(new PassThrough());
  expect(await asked.answer).toBeUndefined();
  expect(asked.shown()).toBe('');
});

test('it is said what a password is for, and that the one before was not taken', async () => {
  const stdin = new Terminal();
  const asked = ask(stdin, { purpose: 'Stop ollama.service\x1b[2J', again: true });
  stdin.write('x\r');
  expect(await asked.answer).toBe('x');
  expect(asked.shown()).toContain('sudo on spark-b did not take that password.');
  expect(asked.shown()).toContain('It is for: Stop ollama.service');
  expect(asked.shown()).not.toContain('\x1b');
});
