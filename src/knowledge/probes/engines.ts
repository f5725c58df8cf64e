import { type EngineFacts, type Fact, known, unknown } from '../../domain/facts.ts';
import type { LookRequest, Probe, ProbeOutput } from '../../domain/probe.ts';
import { refusal } from './containers.ts';
import { headAndRest, linesOf, printable, wholeNumber } from './output.ts';

/**
 * Engines that could be started: wanted images, and wanted programs. A program's version is read off the name of
 * its package's metadata folder: asking it would import torch, which takes seconds and touches the GPU.
 */
export const enginesProbe: Probe = {
  name: 'engines',
  timeoutSeconds: 8,
  script: String.raw`
i=0
printf '%s\n' "$FL_IMAGES" | while read -r image; do
  [ -n "$image" ] || continue
  out=$("${'$'}{FL_RUNTIME:-docker}" image inspect --format '{{.Id}} {{.Architecture}}' "$image" 2>&1); rc=$?
  printf '%s\n' "$out" | sed "s/^/image $i $rc /"
  i=$((i + 1))
done
version() {
  head -c 300 "$2" 2>/dev/null | sed -n '1s/^#! *\([^ ]*\).*/\1/p' | tr -d '\000' | {
    read -r python
    for bin in "${'$'}{2%/*}" "${'$'}{python%/*}"; do
      for d in "$bin"/../lib/python3*/site-packages/"$1"-*.dist-info "$bin"/../lib/python3*/dist-packages/"$1"-*.dist-info; do
        [ -d "$d" ] || continue
        d=${'$'}{d##*/}; d=${'$'}{d%.dist-info}; echo "${'$'}{d#*-}"; return
      done
    done
  }
}
printf '%s\n' "$FL_PROGRAMS" | while read -r engine program; do
  [ -n "$program" ] || continue
  at=
  case $program in
    /*) if [ -x "$R$program" ]; then at=$R$program; elif [ -x "$program" ]; then at=$program; fi ;;
    *) at=$(command -v "$program" 2>/dev/null) ;;
  esac
  if [ -n "$at" ]; then printf 'program here %s\n' "$(version "$engine" "$at")"; else echo 'program absent'; fi
done
`,
};

/** What is asked for, a line each, as the script reads it: those that a line cannot carry are not asked. */
export function askedPrograms(request: LookRequest): LookRequest['programs'] {
  return request.programs.filter(({ program }) => program !== '' && !/[\r\n]/.test(program));
}
/** The images that can be asked for: a name that looks like an option is none. */
export function askedImages(request: LookRequest): LookRequest['images'] {
  return request.images.filter(({ image }) => /^[^-\s][^\s]*$/.test(image));
}

/** "image 0 0 sha256:… arm64" and "program here 0.11.0" per line, in the order asked → the engines that are there. */
export function parseEngines(
  output: ProbeOutput | undefined,
  request: LookRequest,
): Fact<readonly EngineFacts[]> {
  const lines = output ? linesOf(output.stdout) : [];
  if (output === undefined) return unknown('this part of the look brought nothing back');
  const { runtime = 'docker' } = request;
  const found: EngineFacts[] = [];
  for (const [at, { engine, image }] of askedImages(request).entries()) {
    const said = lines.flatMap((line) =>
      line.startsWith(`image ${at} `) ? [line.slice(`image ${at} `.length)] : [],
    );
    const code = wholeNumber(headAndRest(said[0] ?? '')[0]);
    const text = said.map((line) => headAndRest(line)[1]).join('\n');
    const match = /^(sha256:[0-9a-f]{64}|[0-9a-f]{64}|sha256:\S+) (\S+)$/m.exec(text);
    if (code === undefined) return unknown(`${runtime} gave no answer in time`);
    if (match?.[1] !== undefined && match[2] !== undefined) {
      found.push({
        engine,
        where: { in: runtime, image, imageId: match[1], arch: match[2] },
        version: unknown('what an image holds is known once it runs'),
      });
    } else if (code === 127) {
      return unknown(`${runtime} is not installed`);
    } else if (!/no such (image|object)|image not known/i.test(text)) {
      return unknown(refusal(runtime, text, text));
    }
  }
  const programs = lines.filter((line) => line.startsWith('program '));
  for (const [at, { engine, program }] of askedPrograms(request).entries()) {
    const [state, version] = headAndRest(programs[at]?.slice('program '.length) ?? '');
    if (state === '') return unknown('looking for the engine took too long');
    if (state !== 'here') continue;
    found.push({
      engine,
      where: { in: 'process', program },
      version: version === '' ? unknown('its package tells no version') : known(printable(version)),
    });
  }
  return known(found);
}
