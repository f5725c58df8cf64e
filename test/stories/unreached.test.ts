import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { downAfterEach, endOf, type Lab, of, openLab } from './lab.ts';
import { looks } from './processes.ts';

const MINUTES = 120_000;

/** A port of this machine on which nothing listens. */
function deadPort(): Promise<number> {
  return new Promise((settle) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => settle(address !== null && typeof address === 'object' ? address.port : 1));
    });
  });
}

function edit(lab: Lab, file: string, change: (text: string) => string): void {
  writeFileSync(lab.file(file), change(readFileSync(lab.file(file), 'utf8')));
}

describe('a cluster file that is right', () => {
  downAfterEach();

  it(
    'whose head does not answer: check and up end with 1 and name the node',
    async () => {
      const lab = await openLab('clean-start');
      const port = await deadPort();
      edit(lab, 'ssh_config', (text) => text.replace(/Port \d+/, `Port ${port}`));
      const check = await lab.run(['check', 'recipe.yaml', '--json']);
      expect(check.code).toBe(1);
      const { items } = JSON.parse(check.stdout);
      expect(items).toContainEqual(
        expect.objectContaining({ node: 'spark-a', level: 'blocks', topic: 'ssh' }),
      );
      const up = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(up.code).toBe(1);
      expect(of(up.events, 'finding')).toMatchObject([{ node: 'spark-a', final: true, role: 'head' }]);
      expect(endOf(up.events)).toMatchObject({ outcome: 'not-serving', exit: 1 });
      expect(endOf(up.events).why).toContain('spark-a');
      expect(of(up.events, 'step-started')).toEqual([]);
      // What else asks does not look surer than it is, and ends with 1 too.
      for (const argv of [['status'], ['chat', 'hi'], ['down'], ['restore']]) {
        const asked = await lab.run(argv);
        expect(asked.code, argv.join(' ')).toBe(1);
        expect(`${asked.stdout}${asked.stderr}`).toContain('spark-a was not reached');
        expect(asked.stdout).not.toMatch(/Nothing (serves|is owed)|Everything is given back/);
      }
    },
    MINUTES,
  );

  it(
    'whose worker does not answer: the worker is named, not the head',
    async () => {
      const lab = await openLab('clean-start');
      edit(lab, 'cluster.yaml', (text) => text.replace('ssh: 192.168.200.13', 'ssh: 192.168.200.77'));
      edit(lab, 'ssh_config', (text) => text.replaceAll('192.168.200.13', '192.168.200.77'));
      const up = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(up.code).toBe(1);
      expect(of(up.events, 'finding')).toMatchObject([{ node: 'spark-b', final: true, role: 'worker' }]);
      expect(looks(lab.folder).flatMap((host) => host.engines)).toEqual([]);
    },
    MINUTES,
  );

  it(
    'whose hosts are not known yet: 2, with the fingerprint and the command that accepts it, which then works',
    async () => {
      const lab = await openLab('clean-start');
      const known = readFileSync(lab.file('known_hosts'), 'utf8');
      edit(lab, 'known_hosts', () => '');
      const accept: string[] = [];
      for (const node of ['spark-a', 'spark-b']) {
        const up = await lab.run(['up', 'recipe.yaml', '--json', ...accept]);
        expect(up.code).toBe(2);
        const { why } = endOf(up.events);
        expect(of(up.events, 'finding')).toMatchObject([{ cause: 'ssh-host-key-unknown', node }]);
        const word = new RegExp(`--accept-host-key (${node}=SHA256:[A-Za-z0-9+/]+)`).exec(why)?.[1];
        expect(word).toBeDefined();
        // The fingerprint is shown, and the command that accepts that very one.
        expect(why.split(word?.slice(node.length + 1) ?? '-')).toHaveLength(3);
        accept.splice(0, accept.length, '--accept-host-key', word ?? '');
      }
      const check = await lab.run(['check', 'recipe.yaml', '--json', ...accept]);
      expect(check.code).toBe(0);
      const now = readFileSync(lab.file('known_hosts'), 'utf8');
      const keys = (text: string) => [...text.matchAll(/ssh-ed25519 \S+/g)].map(([key]) => key).sort();
      expect(keys(now)).toEqual(keys(known));
      expect((await lab.run(['check', 'recipe.yaml', '--json'])).code).toBe(0);
    },
    MINUTES,
  );

  it(
    'whose host shows another key than the one that is known: 2, and it is not talked to',
    async () => {
      const lab = await openLab('clean-start');
      edit(lab, 'known_hosts', (text) => {
        const [a = '', b = ''] = text.split('\n');
        const keyOf = (line: string) => line.split(' ').slice(1).join(' ');
        return `lab-spark-a ${keyOf(b)}\nlab-spark-b ${keyOf(a)}\n`;
      });
      const up = await lab.run(['up', 'recipe.yaml', '--json']);
      expect(up.code).toBe(2);
      expect(up.stdout).toContain('host-key-changed');
      expect(up.stdout).toContain('spark-a');
    },
    MINUTES,
  );
});
