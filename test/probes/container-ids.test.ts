import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { containersProbe, parseContainers } from '../../src/knowledge/probes/containers.ts';

const bin = mkdtempSync(join(tmpdir(), 'firstlight-ids-'));
afterAll(() => rmSync(bin, { recursive: true }));

it('asks docker and podman for a container by the name that each has for its id', () => {
  const tool = (knows: string, id: string) => `#!/bin/sh
case "$*" in
  ps*) echo ${id.repeat(64)} ;;
  *'json .${knows}}'*) echo '["${id.repeat(64)}","/of-${knows}","i","running",7,{"Name":"no"},false,null,{}]' ;;
  *) echo "can't evaluate field in type interface {}" >&2; exit 125 ;;
esac
`;
  writeFileSync(join(bin, 'docker'), tool('Id', 'a'), { mode: 0o755 });
  writeFileSync(join(bin, 'podman'), tool('ID', 'b'), { mode: 0o755 });
  const { stdout, stderr } = spawnSync('sh', ['-c', containersProbe.script], {
    encoding: 'utf8',
    env: { PATH: `${bin}:${process.env['PATH']}` },
  });
  const seen = parseContainers({ code: 0, stdout, stderr, timedOut: false });
  expect(seen.known && seen.value.map(({ runtime, name }) => [runtime, name])).toEqual([
    ['docker', 'of-Id'],
    ['podman', 'of-ID'],
  ]);
});
