import { type Fact, known, type ModelFile, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { gaveNothing, headAndRest, wholeLines, wholeNumber } from './output.ts';

/**
 * Tensors of the model by the headers of its safetensors shards: a few KB are read of each, and none of the weights.
 * The node itself adds up a layer's experts, so that a mixture's tens of thousands of tensors come back as some
 * hundreds of lines. A shard without a whole header is told, so that no partial copy passes for a small model; a second
 * copy in one file ("consolidated", which engines leave out) is not counted.
 */
export const modelHeadersProbe: Probe = {
  name: 'model-headers',
  timeoutSeconds: 20,
  script: String.raw`
m=$R$FL_MODEL
[ -e "$m" ] || m=$FL_MODEL
cd "$m" 2>/dev/null || { echo none; exit 0; }
parts=
for f in *.safetensors; do
  case $f in consolidated*) ;; *) [ -f "$f" ] && parts=1 ;; esac
done
for f in *.safetensors; do
  [ -f "$f" ] || { echo none; continue; }
  case $parts$f in 1consolidated*) continue ;; esac
  set -- $(od -An -tu1 -N8 "$f" 2>/dev/null)
  l=0
  [ $# -eq 8 ] && [ "$5$6$7$8" = 0000 ] && l=$(($1 + $2 * 256 + $3 * 65536 + $4 * 16777216))
  echo
  if [ "$l" -lt 2 ] || [ "$l" -gt 104857600 ]; then echo "X $f"; continue; fi
  echo "S $f"
  tail -c +9 "$f" 2>/dev/null | head -c "$l" | tr '}' '\n'
  echo
  echo E
done | awk '
/^X / { print; next }
/^none$/ { print; next }
/^S / { shard = substr($0, 3); seen = 0; next }
/^E$/ { if (!seen) print "X " shard; next }
{
  gsub(/[ \t\r]/, "")
  at = index($0, "\"data_offsets\":[")
  end = index($0, "\":{")
  if (!at || !end) next
  name = substr($0, 1, end - 1)
  sub(/^[^"]*"/, "", name)
  split(substr($0, at + 16), o, /[],]/)
  gsub(/experts\.[0-9]+\./, "experts.", name)
  if (o[1] !~ /^[0-9]+$/ || o[2] !~ /^[0-9]+$/) next
  sum[name] += o[2] - o[1]
  seen = 1
}
END { for (name in sum) printf "T %.0f %s\n", sum[name], name; print "whole" }'
`,
};

/** Lines of the probe → tensors with their bytes; unknown where a shard has no whole header. */
export function parseModelHeaders(output: ProbeOutput | undefined): Fact<readonly ModelFile[]> {
  const text = wholeLines(output);
  if (!/^whole$/m.test(text)) return gaveNothing(output, 'the headers of the model’s files');
  const cut = /^X (.*)$/m.exec(text)?.[1];
  if (cut !== undefined) return unknown(`${cut} has no whole safetensors header`);
  const tensors = text.split('\n').flatMap((line): readonly ModelFile[] => {
    const [tag, rest] = headAndRest(line);
    const [size, name] = headAndRest(rest);
    const bytes = wholeNumber(size);
    return tag === 'T' && bytes !== undefined && name !== '' ? [{ name, bytes }] : [];
  });
  return tensors.length === 0 ? unknown('there are no safetensors files') : known(tensors);
}
