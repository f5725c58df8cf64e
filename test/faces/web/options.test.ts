import { expect, it } from 'vitest';
import { optionParts } from '../../../src/faces/web/data/options.ts';

const options = (text: string) => optionParts(text).flatMap((part) => (part.option ? [part.text] : []));

it('an option of a command is one part, with what stands close to it', () => {
  expect(options('with down --restore: start ollama.service')).toEqual(['--restore:']);
  expect(options('then firstlight up RECIPE --consent 7f3a,c21e --sudo-password-file FILE')).toEqual([
    '--consent',
    '--sudo-password-file',
  ]);
  expect(options('sudo dmesg -T | tail -50; (-fgraphs) `--json`')).toEqual(['-T', '(-fgraphs)', '`--json`']);
});

it('dashes in words, numbers and ranges are none', () => {
  expect(options('spark-b — 3-4 things, -5 °C, a -> b, - and --, qwen3.5-122b')).toEqual([]);
});

it('what no narrow screen has a line for may be broken', () => {
  expect(options(`--nccl-socket-ifname=${'enp1s0f0np0,'.repeat(3)}`)).toEqual([]);
});

it('all parts together are the text, as it is copied', () => {
  for (const text of ['', ' ', '--a', ' --a  b\n--c ', 'no option at all', 'one --two three --four'])
    expect(
      optionParts(text)
        .map((part) => part.text)
        .join(''),
    ).toBe(text);
});
