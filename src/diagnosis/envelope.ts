import { parseObject, textAt } from '../domain/json.ts';

/** `2026-11-29T15:00:32.123456789Z `, as `docker logs --timestamps` writes before each line. */
const DOCKER_STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ?/;
/** After that stamp in a Kubernetes node's own files: the stream, and whether the line is whole. */
const STREAM = /^(?:stdout|stderr) [FP] /;
/** `vllm-head-1  | `, as compose writes it; `[pod/vllm-0/engine] `, as kubectl does. */
const SERVICE = /^(?:[A-Za-z][\w.-]*\s+\| |\[pod\/[^\]\s]+\] )/;
/** journald's and syslog's prefix where the program is only what runs the engine; others' names mean something. */
const JOURNAL =
  /^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) \S+ (?:docker|podman|conmon|python\d?[\d.]*|vllm|sglang|uv|bash|sh|torchrun|ray|start[\w.-]*|run[\w.-]*|serve[\w.-]*|launch[\w.-]*|firstlight\S*)(?:\[\d+\])?: /;

/** Whether a line may be wrapped at all: asked of every line, so it looks at its first letters alone. */
export const MAY_BE_WRAPPED =
  /^(?:\d{4}-\d\d-\d\dT\d|\{"log":"|\[pod\/|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |[A-Za-z][\w.-]*\s+\| )/;

/** Where a line's time stands: docker's own files name it last, and one clock must order them all. */
export function stampOf(text: string): string {
  return text.startsWith('{"log":"') ? textAt(parseObject(text) ?? {}, 'time') || text : text;
}

/** What a line says without what a log's keeper put around it: docker, compose, kubectl, journald. */
export function unwrapped(text: string): string {
  if (text.startsWith('{"log":"')) {
    const log = textAt(parseObject(text) ?? {}, 'log');
    return log === '' ? text : log.replace(/\r?\n$/, '');
  }
  // A journal's line begins with a stamp too, and its host and program go with it.
  const rest = text.replace(JOURNAL, '');
  return rest.replace(DOCKER_STAMP, '').replace(STREAM, '').replace(SERVICE, '');
}
