import { describe, expect, it } from 'vitest';
import { newRecorder } from '../../src/operations/recorder.ts';
import { pretendWorld } from '../pretend/pretend-world.ts';

function recorder(...secrets: string[]) {
  const world = pretendWorld({
    signal: new AbortController().signal,
    live: () => undefined,
    onEvent: () => undefined,
  });
  return newRecorder({ ...world, secrets: { ...world.secrets, all: () => secrets } });
}

const note = (text: string) => ({ type: 'note', level: 'info', node: undefined, text }) as const;

describe('what is written of a run', () => {
  it('holds no known secret value, in events and in log lines', () => {
    const { emit, clean } = recorder('hunter2"x', 'sk-12345');
    expect(emit(note('the key sk-12345 and the word hunter2"x'))).toMatchObject({
      text: 'the key ••• and the word •••',
    });
    expect(clean("server_args=ServerArgs(api_key='sk-12345')")).toBe("server_args=ServerArgs(api_key='•••')");
  });

  it('is whole whatever the secret is: a word of ours, a quote, a part of its JSON', () => {
    const { emit } = recorder('note', '","', 'null');
    expect(emit(note('a "note","null"'))).toMatchObject({ type: 'note', level: 'info' });
  });

  it('is left alone where a secret is too short to be told from ordinary words', () => {
    expect(recorder('abc').clean('abc')).toBe('abc');
  });
});
