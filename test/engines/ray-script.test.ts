import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RAY_NODE_SH } from '../../src/knowledge/engines/ray-script.ts';

/** Programs of the environment, as files: each notes what it was called with, ready to be ended by then, and its end. */
const RAY = `trap 'echo "ray ended" >>"$NOTES"; exit 1' TERM
echo "ray $*" >>"$NOTES"
[ "$1" = --version ] && exit 0
[ -e "$TMP/ray-fails" ] && exit 3
: >"$TMP/up"
while :; do sleep 0.05; done
`;
/** Dials by a file, and counts nodes by another. */
const PYTHON = `case $2 in
  *create_connection*) [ -e "$TMP/up" ]; exit ;;
  *ray.nodes*) echo "asked $3 $4" >>"$NOTES"; [ -e "$TMP/joined" ]; exit ;;
esac
`;
const DRIVER = `trap 'echo "driver ended" >>"$NOTES"; exit 0' TERM
echo "driver $* NCCL=$NCCL_SOCKET_IFNAME GLOO=$GLOO_SOCKET_IFNAME RAY=$RAY_ADDRESS" >>"$NOTES"
[ -e "$TMP/crash" ] && exit 7
while :; do sleep 0.05; done
`;

let folder: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ray-sh-'));
  mkdirSync(join(folder, 'venv', 'bin'), { recursive: true });
  for (const [name, text] of Object.entries({ ray: RAY, python3: PYTHON, vllm: DRIVER })) {
    writeFileSync(join(folder, 'venv', 'bin', name), `#!/bin/sh\n${text}`);
    chmodSync(join(folder, 'venv', 'bin', name), 0o755);
  }
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const touch = (name: string): void => writeFileSync(join(folder, name), '');
const notes = (): readonly string[] => {
  const file = join(folder, 'notes');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
};

async function until(text: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (notes().some((line) => line.includes(text))) return;
    await wait(25);
  }
  throw new Error(`${text} never came:\n${notes().join('\n')}`);
}

function node(
  own: string,
  driver: readonly string[],
): { readonly child: ChildProcess; readonly code: Promise<number | null> } {
  const words = [join(folder, 'venv'), '10.0.0.1', '20000', own, '2', '1', ...driver];
  const child = spawn('sh', ['-c', RAY_NODE_SH, 'sh', ...words], {
    env: {
      PATH: '/usr/bin:/bin',
      TMP: folder,
      NOTES: join(folder, 'notes'),
      NCCL_SOCKET_IFNAME: 'own0',
      GLOO_SOCKET_IFNAME: 'own0',
    },
    stdio: 'ignore',
  });
  started.push(child);
  return { child, code: new Promise((resolve) => child.on('close', (code) => resolve(code))) };
}

describe('one node of vLLM over Ray', () => {
  test('the head starts Ray, waits for the nodes, runs the driver, and ends both at TERM, the driver first', async () => {
    touch('joined');
    const { child, code } = node('10.0.0.1', ['vllm', 'serve', '/m']);
    await until('driver ');
    child.kill('SIGTERM');
    expect(await code).toBe(143);
    expect(notes()).toEqual([
      'ray start --block --node-ip-address=10.0.0.1 --num-gpus=1 --disable-usage-stats --head --port=20000',
      'asked 10.0.0.1:20000 2',
      // What belongs to one node must not get to the others by the driver.
      'driver serve /m NCCL= GLOO=own0 RAY=10.0.0.1:20000',
      'driver ended',
      'ray ended',
    ]);
  });

  test('the driver’s end is the rank’s end, with its code, and takes Ray along', async () => {
    touch('joined');
    touch('crash');
    expect(await node('10.0.0.1', ['vllm', 'serve', '/m']).code).toBe(7);
    expect(notes().at(-1)).toBe('ray ended');
  });

  test('without all nodes there is no driver', async () => {
    expect(await node('10.0.0.1', ['vllm', 'serve', '/m']).code).toBe(1);
    expect(notes().filter((line) => line.startsWith('driver'))).toEqual([]);
    expect(notes().at(-1)).toBe('ray ended');
  });

  test('a Ray that does not start is not waited for', async () => {
    touch('ray-fails');
    const began = Date.now();
    expect(await node('10.0.0.1', ['vllm', 'serve', '/m']).code).not.toBe(0);
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  test('a worker waits until the head answers, joins it, and ends its Ray at TERM', async () => {
    const { child, code } = node('10.0.0.2', []);
    await wait(300);
    expect(notes().filter((line) => line.includes('start'))).toEqual([]);
    touch('up');
    await until('--address=10.0.0.1:20000');
    child.kill('SIGTERM');
    await code;
    expect(notes()).toEqual([
      'ray start --block --node-ip-address=10.0.0.2 --num-gpus=1 --disable-usage-stats --address=10.0.0.1:20000',
      'ray ended',
    ]);
  });

  test('a worker whose Ray ends by itself ends too', async () => {
    touch('up');
    touch('ray-fails');
    expect(await node('10.0.0.2', []).code).toBe(3);
  });
});
