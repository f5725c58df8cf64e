import { type Flag, type Parsed, parseArguments } from './argparse.ts';
import { SGLANG_FLAGS, SGLANG_REASONING_PARSERS } from './sglang-flags.ts';
import { VLLM_FLAGS, vllmWords } from './vllm-flags.ts';

export type Invocation =
  | {
      readonly kind: 'serve';
      readonly engine: 'sglang' | 'vllm';
      readonly program: string;
      readonly argv: readonly string[];
    }
  | { readonly kind: 'version'; readonly engine: 'sglang' | 'vllm' | 'ray' }
  /** `ray start …` */
  | { readonly kind: 'ray-node'; readonly argv: readonly string[] }
  /** What a node's script asks Python for, by what it calls. */
  | { readonly kind: 'ray-program'; readonly program: 'dial' | 'nodes'; readonly argv: readonly string[] }
  /** A worker that a node's Ray starts: rank, address, port, then vLLM's own arguments. */
  | { readonly kind: 'ray-worker'; readonly argv: readonly string[] }
  | { readonly kind: 'unknown'; readonly program: string };

/** The words after `main.js` → what is asked for. `python -m` forms are told by their module. */
export function readInvocation(words: readonly string[]): Invocation {
  const program = (words[0] ?? '').replace(/^.*\//, '');
  const rest = words.slice(1);
  if (/^python[\d.]*$/.test(program)) return readPython(rest, program);
  if (words[0] === 'ray::RayWorkerProc') return { kind: 'ray-worker', argv: rest };
  if (program === 'ray' && rest[0] === 'start') return { kind: 'ray-node', argv: rest.slice(1) };
  if (program !== 'sglang' && program !== 'vllm' && program !== 'ray') return { kind: 'unknown', program };
  if (['--version', '-v', 'version'].includes(rest[0] ?? '')) return { kind: 'version', engine: program };
  if (rest[0] !== 'serve' || program === 'ray') return { kind: 'unknown', program };
  return { kind: 'serve', engine: program, program, argv: rest.slice(1) };
}

function readPython(words: readonly string[], program: string): Invocation {
  const at = words.indexOf('-m');
  const module = words[at + 1] ?? '';
  const argv = words.slice(at + 2);
  if (at !== -1 && module === 'sglang.launch_server')
    return { kind: 'serve', engine: 'sglang', program: 'launch_server.py', argv };
  if (at !== -1 && module === 'vllm.entrypoints.openai.api_server')
    return { kind: 'serve', engine: 'vllm', program: 'api_server.py', argv };
  if (at !== -1 && (module === 'sglang' || module.startsWith('vllm'))) {
    return readInvocation([module.startsWith('vllm') ? 'vllm' : 'sglang', ...argv]);
  }
  const code = words.join(' ');
  if (words[0] === '-c' && code.includes('ray.nodes()'))
    return { kind: 'ray-program', program: 'nodes', argv: words.slice(2) };
  if (words[0] === '-c' && code.includes('socket.create_connection'))
    return { kind: 'ray-program', program: 'dial', argv: words.slice(2) };
  if (/__version__|--version/.test(code) && /sglang|vllm/.test(code))
    return { kind: 'version', engine: code.includes('sglang') ? 'sglang' : 'vllm' };
  return { kind: 'unknown', program };
}

/** The text of an argparse error as the engine prints it, or what was parsed. */
export type Read =
  | { readonly ok: true; readonly options: Options }
  | { readonly ok: false; readonly text: string };

/** SGLang's `--config FILE`: what the file says comes first, so that the command line wins. `key: 'text'` lines only. */
export function configWords(argv: readonly string[], read: (path: string) => string): readonly string[] {
  const at = argv.indexOf('--config');
  const path = argv[at + 1];
  if (at === -1 || path === undefined) return argv;
  const words = read(path)
    .split('\n')
    .flatMap((line) => {
      const [, key, text = ''] = /^([\w-]+):\s*(.*?)\s*$/.exec(line) ?? [];
      const quoted = /^'(.*)'$/.exec(text)?.[1]?.replaceAll("''", "'");
      return key === undefined ? [] : [`--${key}=${quoted ?? text}`];
    });
  return [...words, ...argv.slice(0, at), ...argv.slice(at + 2)];
}

/** `lacks`: flags that this image's SGLang is too old for. */
export function readSglang(program: string, argv: readonly string[], lacks: readonly string[] = []): Read {
  const flags = SGLANG_FLAGS.filter(({ names }) => !names.some((name) => lacks.includes(name)));
  const parsed = parseArguments(flags, argv, { positionals: 0 });
  const usage = usageOf(program, flags.slice(1), '--model-path MODEL_PATH ');
  const bad = (message: string): Read => ({ ok: false, text: `${usage}\n${program}: error: ${message}\n` });
  if (!parsed.ok) return bad(parsed.message);
  if (parsed.values.has('h')) return { ok: false, text: `${usage}\n` };
  if (!parsed.values.has('model-path'))
    return bad('the following arguments are required: --model-path/--model');
  const parser = parsed.values.get('reasoning-parser')?.[0];
  if (parser !== undefined && !SGLANG_REASONING_PARSERS.includes(parser)) {
    const choices = SGLANG_REASONING_PARSERS.map((choice) => `'${choice}'`).join(', ');
    return bad(`argument --reasoning-parser: invalid choice: '${parser}' (choose from ${choices})`);
  }
  return { ok: true, options: new Options(parsed.values, parsed.positionals) };
}

/** `lacks`: flags that this image's vLLM is too old for. */
export function readVllm(program: string, argv: readonly string[], lacks: readonly string[] = []): Read {
  const flags = VLLM_FLAGS.filter(({ names }) => !names.some((name) => lacks.includes(name)));
  const parsed: Parsed = parseArguments(flags, vllmWords(argv), {
    positionals: program === 'vllm' ? 1 : 0,
  });
  const own = program === 'vllm';
  if (!parsed.ok) {
    // What no sub-parser took is reported by the top parser, under its own name and usage.
    const usage =
      own && parsed.unknown
        ? 'usage: vllm [-h] [-v] {chat,complete,serve,launch,bench,collect-env,run-batch} ...'
        : `usage: ${own ? 'vllm serve [model_tag] [options]' : `${program} [options]`}`;
    const name = own && !parsed.unknown ? 'vllm serve' : program;
    return { ok: false, text: `${usage}\n${name}: error: ${parsed.message}\n` };
  }
  if (parsed.values.has('h')) return { ok: false, text: 'usage: vllm serve [model_tag] [options]\n' };
  return { ok: true, options: new Options(parsed.values, parsed.positionals) };
}

function usageOf(program: string, flags: readonly Flag[], required: string): string {
  const some = flags
    .filter((flag) => !flag.names.includes('--model-path'))
    .slice(0, 40)
    .map((flag) => {
      const name = flag.names[0] ?? '';
      return flag.takes === 'nothing'
        ? `[${name}]`
        : `[${name} ${name.replace(/^-+/, '').replaceAll('-', '_').toUpperCase()}]`;
    });
  return `usage: ${program} [-h] ${required}${some.join(' ')}`;
}

/** Parsed options by key; a getter returns undefined for what was not given. */
export class Options {
  readonly positionals: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;
  constructor(values: ReadonlyMap<string, readonly string[]>, positionals: readonly string[]) {
    this.#values = values;
    this.positionals = positionals;
  }
  text(key: string): string | undefined {
    return this.#values.get(key)?.[0];
  }
  all(key: string): readonly string[] {
    return this.#values.get(key) ?? [];
  }
  number(key: string): number | undefined {
    const text = this.text(key);
    return text === undefined ? undefined : Number(text.replaceAll('_', ''));
  }
  has(key: string): boolean {
    return this.#values.has(key);
  }
  entries(): readonly (readonly [string, readonly string[]])[] {
    return [...this.#values];
  }
}
