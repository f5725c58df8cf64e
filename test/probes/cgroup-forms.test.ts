import { describe, expect, it } from 'vitest';
import { type Attribution, attribute } from '../../src/knowledge/probes/cgroup.ts';
import { sample } from './golden.ts';

/** The words of the table's last column. */
function said(whose: Attribution): string {
  switch (whose.kind) {
    case 'container':
      return whose.rootlessUid === undefined || whose.runtime === 'nerdctl'
        ? `${whose.runtime} ${whose.id}`
        : `${whose.runtime}(rootless uid ${whose.rootlessUid}) ${whose.id}`;
    case 'monitor':
      return 'podman monitor';
    case 'pod':
      return ['k8s pod', whose.pod, whose.runtime, whose.id].filter((part) => part !== '').join(' ');
    case 'unit':
      return whose.uid === undefined
        ? `system unit ${whose.unit}`
        : `user unit ${whose.unit} uid ${whose.uid}`;
    case 'scope':
      return `user scope uid ${whose.uid}`;
    case 'session':
      return `login session ${whose.session} uid ${whose.uid}`;
    case 'machine':
      return `machine ${whose.machine}`;
    case 'none':
      return 'unknown: ask from the host';
  }
}

const ID = '0123456789abcdef'.repeat(4);

describe('whose a process is, by its cgroup', () => {
  const rows = sample('sys/cgroup-forms.tsv').trimEnd().split('\n').slice(1);
  for (const row of rows) {
    const [name = '', content = '', expected = ''] = row.split('\t');
    it(`${name}: ${expected.replace(ID, 'ID')}`, () => {
      expect(said(attribute(content.split('\\n')))).toBe(
        expected.replace(/ \(use the non-empty line\)$/, ''),
      );
    });
  }

  it('knows the template, the nested and the delegated unit', () => {
    expect(attribute(['0::/system.slice/system-vllm.slice/vllm@1.service'])).toEqual({
      kind: 'unit',
      unit: 'vllm@1.service',
    });
    expect(attribute(['0::/ml.slice/vllm.service/workers/3'])).toEqual({
      kind: 'unit',
      unit: 'vllm.service',
    });
    expect(
      attribute(['0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service/sub']),
    ).toEqual({
      kind: 'unit',
      unit: 'llama.service',
      uid: 1000,
    });
  });

  it('asks the outermost container for what runs inside of it', () => {
    expect(attribute([`0::/system.slice/docker-${ID}.scope/system.slice/ollama.service`])).toEqual({
      kind: 'container',
      runtime: 'docker',
      id: ID,
    });
    expect(attribute(['0::/machine.slice/machine-h1.scope/payload/system.slice/ollama.service'])).toEqual({
      kind: 'machine',
      machine: 'h1',
    });
  });

  it('leaves out the container that we ourselves live in', () => {
    const own = [`12:pids:/docker/${ID}/system.slice/ssh.service`];
    expect(attribute([`12:pids:/docker/${ID}/system.slice/ollama.service`], own)).toEqual({
      kind: 'unit',
      unit: 'ollama.service',
    });
    expect(attribute([`12:pids:/docker/${ID}`], own)).toEqual({ kind: 'none' });
  });

  it('takes no service for a container, and no name that only looks like an id', () => {
    expect(
      attribute([
        `0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-docker\\x2ddesktop-${'a'.repeat(8)}.scope`,
      ]),
    ).toMatchObject({ kind: 'scope', uid: 1000 });
    expect(attribute([`0::/docker/${'a'.repeat(63)}`])).toEqual({ kind: 'none' });
    expect(attribute([`0::/podlike/${ID}`])).toEqual({ kind: 'container', runtime: 'container', id: ID });
  });

  it('says nothing of what is no cgroup file', () => {
    expect(attribute([])).toEqual({ kind: 'none' });
    expect(attribute(['garbage', '0:', '::', ''])).toEqual({ kind: 'none' });
  });
});
