import { expect, test } from 'vitest';
import { clean, safeJson } from '../../src/faces/cli/clean.ts';
import { drawsColor } from '../../src/faces/cli/color.ts';
import { drawsUnicode } from '../../src/faces/cli/glyphs.ts';
import { mayDraw } from '../../src/faces/cli/may-draw.ts';
import { styleOf } from '../../src/faces/cli/style.ts';
import { fill, truncate, width, wrap, wrapAdvice } from '../../src/faces/cli/width.ts';
import { Terminal } from './run-cli.ts';

test('width counts columns: wide letters and emoji two, marks and colours none', () => {
  expect(width('spark-a')).toBe(7);
  expect(width('机器')).toBe(4);
  expect(width('🚀')).toBe(2);
  expect(width('👩‍👩‍👧')).toBe(2);
  expect(width('e\u0301')).toBe(1);
  expect(width('\x1b[31mred\x1b[39m')).toBe(3);
  expect(width('✓ ◔ █ ░ │')).toBe(9);
});

test('truncate never exceeds the columns and closes the colours that it cut', () => {
  expect(truncate('机器二号', 5)).toBe('机器…');
  expect(truncate('\x1b[31mred and more\x1b[39m', 5)).toBe('\x1b[31mred …\x1b[0m');
  expect(truncate('abc', 0)).toBe('');
  expect(truncate('abcdef', 2, '...')).toBe('ab');
  expect(fill('机', 4)).toBe('机  ');
});

test('words are wrapped, a line that fits keeps its spaces, a command stays whole', () => {
  expect(wrap('a  b', 10)).toEqual(['a  b']);
  expect(wrap('one two three', 8)).toEqual(['one two', 'three']);
  expect(wrap('1a46  Start it again', 12)).toEqual(['1a46  Start', 'it again']);
  const command = 'rsync -a spark-a:/home/aurora/models/Qwen3.5/ /home/aurora/models/Qwen3.5/';
  expect(wrapAdvice(`copy it there: ${command}`, 40)).toEqual(['copy it there:', command]);
  expect(wrapAdvice(command, 40)).toEqual([command]);
});

test('a sentence that begins with a command is wrapped like any other', () => {
  const sentence = 'firstlight up --replace stops it first; firstlight down stops it for good.';
  expect(wrapAdvice(`do: ${sentence}`, 60)).toEqual(wrap(`do: ${sentence}`, 60));
});

test('escape sequences, control characters and turned text are taken out', () => {
  expect(clean('\x1b]0;title\x07a\x1b[2Jb\x1b[31;1mc\x1bMd\x9b1me\u202ef\tg\x00')).toBe('abcdef g');
  expect(clean('two\r\nlines')).toBe('two\nlines');
  expect(safeJson({ a: '\x9b\x7f' })).toBe('{"a":"\\u009b\\u007f"}');
});

test('colour is off in pipes, with NO_COLOR and on dumb terminals, on with FORCE_COLOR', () => {
  expect(drawsColor({}, true)).toBe(true);
  expect(drawsColor({}, false)).toBe(false);
  expect(drawsColor({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false);
  expect(drawsColor({ TERM: 'dumb' }, true)).toBe(false);
  expect(drawsColor({ FORCE_COLOR: '1' }, false)).toBe(true);
});

test('Unicode is drawn only in UTF-8 locales that are not East Asian, and never when refused', () => {
  expect(drawsUnicode({ LANG: 'de_DE.UTF-8' })).toBe(true);
  expect(drawsUnicode({})).toBe(true);
  expect(drawsUnicode({ LANG: 'C' })).toBe(false);
  expect(drawsUnicode({ LANG: 'ja_JP.UTF-8' })).toBe(false);
  expect(drawsUnicode({ LANG: 'en_US.UTF-8', FIRSTLIGHT_ASCII: '1' })).toBe(false);
});

test('the live view wants a terminal of at least 60 by 16, and no CI, dumb or plain', () => {
  expect(mayDraw(new Terminal(60, 16), {}, false)).toBe(true);
  expect(mayDraw(new Terminal(59, 16), {}, false)).toBe(false);
  expect(mayDraw(new Terminal(60, 15), {}, false)).toBe(false);
  expect(mayDraw(new Terminal(80, 24), { CI: 'true' }, false)).toBe(false);
  expect(mayDraw(new Terminal(80, 24), { TERM: 'dumb' }, false)).toBe(false);
  expect(mayDraw(new Terminal(80, 24), {}, true)).toBe(false);
});

test('a terminal that does not know its width, as in script(1), is taken for 80 columns', () => {
  expect(styleOf({ isTTY: true, columns: 0 }, {}, 0, false).columns).toBe(80);
  expect(styleOf({ isTTY: true, columns: 20 }, {}, 0, false).columns).toBe(40);
});
