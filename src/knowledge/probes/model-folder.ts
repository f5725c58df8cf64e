import { type Fact, known, type ModelFacts, type ModelFile, unknown } from '../../domain/facts.ts';
import { parseObject } from '../../domain/json.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, headAndRest, wholeNumber } from './output.ts';

const CONFIG_LIMIT = 256 * 1024;

/**
 * The model's folder: file sizes (links followed, as the hub's cache is made of them), what the index names,
 * git-lfs pointers, config.json. An index may be many MB, so it is read where it lies. config.json comes last,
 * since it is copied out as it is.
 */
export const modelFolderProbe: Probe = {
  name: 'model',
  timeoutSeconds: 8,
  script: String.raw`
m=$R$FL_MODEL
[ -e "$m" ] || m=$FL_MODEL
if [ ! -e "$m" ]; then
  p=$m
  while [ -n "$p" ] && [ ! -e "$p" ]; do case $p in */*) p=${'$'}{p%/*} ;; *) p= ;; esac; done
  if [ -x "${'$'}{p:-/}" ]; then echo absent; else echo closed; fi
  exit 0
fi
[ -d "$m" ] || { echo no-folder; exit 0; }
cd "$m" 2>/dev/null && [ -r . ] || { echo closed; exit 0; }
echo present
stat -L -c 'F %s %f %n' -- * 2>/dev/null | head -n 5000
find -L . -maxdepth 1 -type f -size -200c -exec grep -l '^version https://git-lfs' {} + 2>/dev/null | sed 's/^\.\//L /'
for i in model.safetensors.index.json *.safetensors.index.json; do
  [ -f "$i" ] || continue
  if [ ! -r "$i" ]; then echo 'I closed'; break; fi
  printf 'I %s\n' "$(grep -o '"total_size"[ ]*:[ ]*[0-9.eE+]*' "$i" | head -n 1 | sed 's/.*: *//')"
  grep -o '"[^"]*\.safetensors"' "$i" | awk '!seen[$0]++' | sed 's/^"\(.*\)"$/W \1/'
  break
done
if [ ! -f config.json ]; then echo 'K absent'
elif [ ! -r config.json ]; then echo 'K closed'
elif [ "$(wc -c <config.json)" -gt ${String(CONFIG_LIMIT)} ]; then echo 'K large'
else echo 'K here'; cat config.json; fi
`,
};

/** Lines of the model probe → what lies in the folder; the text after "K here" is config.json. */
export function parseModelFolder(output: ProbeOutput | undefined, path: string): Fact<ModelFacts> {
  const text = output?.stdout ?? '';
  const first = text.split('\n', 1)[0] ?? '';
  if (first === 'absent') return known({ present: false, path });
  if (first === 'closed') return unknown('this user may not read that folder');
  if (first === 'no-folder') return unknown('there is a file of that name, and no folder');
  if (first !== 'present') return gaveNothing(output, 'the model’s folder');
  const split = /^K (\w+)$/m.exec(text);
  const lines = text.slice(0, split?.index).split('\n');
  const of = (tag: string) => lines.flatMap((line) => (line.startsWith(`${tag} `) ? [line.slice(2)] : []));
  const files = of('F').flatMap(toFile);
  const pointers = new Set(of('L'));
  const sizes = new Map(files.map((file) => [file.name, file.bytes]));
  const index = of('I')[0];
  const missingFiles = [
    ...of('W').filter((name) => (sizes.get(name) ?? 0) === 0 || pointers.has(name)),
    // Without an index the pointers themselves are what is named and not there.
    ...(index === undefined ? [...pointers].filter((name) => name.endsWith('.safetensors')) : []),
  ];
  const pointerFiles = missingFiles.filter((name) => pointers.has(name));
  return known({
    present: true,
    path,
    config: config(split?.[1], split ? text.slice(split.index + split[0].length) : ''),
    indexBytes: indexBytes(index),
    missingFiles,
    ...(pointerFiles.length > 0 ? { pointerFiles } : {}),
    files,
  });
}

/** "4999802720 81a4 model-00001-of-00041.safetensors": size, mode in hex (8… is a file), name. */
function toFile(line: string): readonly ModelFile[] {
  const [size, rest] = headAndRest(line);
  const [mode, name] = headAndRest(rest);
  const bytes = wholeNumber(size);
  return bytes === undefined || !/^8[0-9a-f]{3}$/.test(mode) ? [] : [{ name, bytes }];
}

function indexBytes(index: string | undefined): Fact<number> {
  if (index === undefined) return unknown('there is no model.safetensors.index.json');
  if (index === 'closed') return unknown('this user may not read the index');
  const bytes = Number(index);
  return index !== '' && Number.isFinite(bytes) && bytes > 0
    ? known(bytes)
    : unknown('the index names no total_size');
}

function config(state: string | undefined, text: string): Fact<Readonly<Record<string, unknown>>> {
  if (state === 'absent') return unknown('there is no config.json');
  if (state === 'closed') return unknown('this user may not read config.json');
  if (state === 'large') return unknown('config.json is larger than 256 KiB');
  if (state !== 'here') return unknown('reading the folder took too long');
  const parsed = parseObject(text);
  return parsed === undefined ? unknown('config.json is no JSON object') : known(parsed);
}
