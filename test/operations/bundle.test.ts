import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createTar } from 'nanotar';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readBundle } from '../../src/files/bundle-file.ts';
import { bundle } from '../../src/operations/bundle.ts';
import { diagnoseRun } from '../../src/operations/diagnose.ts';
import { inputs } from '../../src/operations/inputs.ts';
import { scrubber } from '../../src/operations/scrub-text.ts';
import { makeWorld, type OpenWorld } from '../../src/world.ts';
import { readCorpus } from '../diagnosis/corpus.ts';
import { sparkFacts } from '../diagnosis/facts.ts';

let folder = '';
let world: OpenWorld;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fl-bundle-'));
  world = makeWorld({
    cluster: join(folder, 'cluster.yaml'),
    home: join(folder, 'home'),
    sudoPasswordFiles: [],
    live: () => undefined,
    onEvent: () => undefined,
    signal: new AbortController().signal,
    env: {},
  });
});

afterEach(() => {
  world.close();
  rmSync(folder, { recursive: true, force: true });
});

async function answerTo(run: string) {
  const { report } = await diagnoseRun.run(inputs.diagnose.parse({ run }), world);
  if (report.kind !== 'diagnose') throw new Error('no diagnosis');
  return report.answer;
}

/** A run whose journal has the logs of a case of the corpus. */
function recorded(): string {
  const { journal } = world;
  const one = readCorpus().find(({ name }) => name.startsWith('009'));
  if (one === undefined) throw new Error('no case');
  const run = journal.newRun();
  journal.append(run, {
    type: 'run-started',
    operation: 'up',
    cluster: 'c',
    recipe: 'm',
    recipeDigest: 'd',
    nodes: ['spark-a', 'spark-b'],
    controller: { host: 'desk', user: 'maria', pid: 1 },
    version: '0.1.0',
  });
  journal.append(run, {
    type: 'looked',
    attempt: 1,
    milliseconds: 1,
    facts: ['spark-a', 'spark-b'].map((node) => sparkFacts({ node })),
  });
  ['spark-a', 'spark-b'].forEach((node, rank) => {
    journal.append(run, {
      type: 'rank-started',
      attempt: 1,
      engine: 'sglang',
      node,
      rank,
      role: rank === 0 ? 'head' : 'worker',
      name: `m-r${rank}`,
      log: '',
      followed: false,
    });
    const text = (one.texts[rank === 0 ? 'head' : 'worker'] ?? Buffer.alloc(0)).toString('utf8').trimEnd();
    const more = ['HF_TOKEN=hf_abcdefghijklmnopqrstuv', 'reading /home/maria/models/m', 'max_tokens=4096'];
    journal.appendLog(
      run,
      1,
      rank,
      [...more, ...text.split('\n')].map((line, at) => ({ at, text: line })),
    );
  });
  return run;
}

describe('bundle', () => {
  it('packs a run so that diagnose says the same elsewhere, without secrets and names of people', async () => {
    const run = recorded();
    const output = join(folder, 'b.tar.gz');
    await bundle.run(inputs.bundle.parse({ run, output }), world);
    const files = readBundle(output);
    expect([...files.keys()].map((name) => name.replace(/^[^/]+\//, '')).sort()).toEqual(
      [
        'README.txt',
        'bundle.json',
        'facts.json',
        'journal.jsonl',
        'logs/spark-a.log',
        'logs/spark-b.log',
      ].sort(),
    );
    const all = [...files.values()].map((bytes) => Buffer.from(bytes).toString('utf8')).join('\n');
    expect(all).not.toMatch(/hf_abc|maria/);
    expect(all).toContain('max_tokens=4096');
    expect(await answerTo(output)).toMatchObject({
      cause: 'oom-killer-during-weight-load',
      atFault: 'spark-b',
    });
  });

  it('hides hosts and addresses where that is asked, and still tells the story', async () => {
    const run = recorded();
    const output = join(folder, 'b.tar.gz');
    await bundle.run(inputs.bundle.parse({ run, output, hideHosts: true }), world);
    const all = [...readBundle(output)].map(
      ([name, bytes]) => `${name}\n${Buffer.from(bytes).toString('utf8')}`,
    );
    expect(all.join('\n')).not.toMatch(/spark-[ab]|192\.168\.100\.2/);
    expect(await answerTo(output)).toMatchObject({
      cause: 'oom-killer-during-weight-load',
      atFault: 'host-2',
    });
  });

  it('is not written over a file', async () => {
    const run = recorded();
    const output = join(folder, 'there');
    writeFileSync(output, 'mine');
    await expect(bundle.run(inputs.bundle.parse({ run, output }), world)).rejects.toThrow('exists already');
    expect(readFileSync(output, 'utf8')).toBe('mine');
  });

  it('may be an archive that somebody made of log files, and nothing of it is written anywhere', async () => {
    const tar = createTar([
      { name: '../../etc/head.log', data: 'ssh: connect to host 10.0.0.9 port 22: Connection timed out\n' },
    ]);
    const path = join(folder, 'by-hand.tgz');
    writeFileSync(path, gzipSync(tar));
    expect((await answerTo(path)).family).toBe('J');
    writeFileSync(path, gzipSync(Buffer.from('a log that was only packed\n')));
    expect((await answerTo(path)).cause).toBe('unknown');
    writeFileSync(path, gzipSync(tar).subarray(0, 40));
    await expect(answerTo(path)).rejects.toThrow('cannot be unpacked');
  });
});

describe('what is taken out of a text', () => {
  const scrub = scrubber({ secrets: ['opensesame'], users: ['maria', 'root'], hosts: ['desk'] });

  it.each([
    ['Authorization: Bearer abc.def', 'abc.def'],
    ['https://x:pa55word@hub.example/y', 'pa55word'],
    ['api_key="qwertyuiop"', 'qwertyuiop'],
    ['--api-key hunter22 --port 8000', 'hunter22'],
    ['the word is opensesame', 'opensesame'],
    ['/home/joe/models', 'joe'],
    ['write to joe.doe@corp.example.com', 'joe.doe'],
    ['maria@desk:~$ ls', 'maria'],
    ['at 192.168.7.9 and fe80::1ff:fe23:4567:890a', '192.168.7'],
  ])('%s', (text, gone) => {
    expect(scrub(text)).not.toContain(gone);
  });

  it.each([
    'root@localhost',
    'prompt_tokens: 12345',
    'token usage: 0.12',
    '127.0.0.1:8000',
    '"max_new_tokens": 8192',
  ])('stays: %s', (text) => expect(scrub(text)).toBe(text));

  it('has one stand-in for one name, and keeps who is whose neighbour', () => {
    const [first, again, near, far] = ['10.1.2.3', '10.1.2.3', '10.1.2.4', '10.9.2.4'].map(scrub);
    expect(again).toBe(first);
    expect(near?.split('.').slice(0, 3)).toEqual(first?.split('.').slice(0, 3));
    expect(far?.split('.').slice(0, 3)).not.toEqual(first?.split('.').slice(0, 3));
  });
});
