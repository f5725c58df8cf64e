/**
 * The part of Go's templates that people use with docker: text, `{{.A.B}}`, `{{json .A}}`, `{{index .A "k"}}`,
 * and `{{if .A}}…{{else}}…{{end}}` and `{{range .A}}…{{end}}` without nesting. Throws an Error for the rest.
 */
export function goTemplate(template: string, value: unknown): string {
  const text = template.replaceAll('\\t', '\t').replaceAll('\\n', '\n');
  const blocks = text.replaceAll(
    /\{\{\s*(if|range)\s+([^}]+?)\s*\}\}(.*?)(?:\{\{\s*else\s*\}\}(.*?))?\{\{\s*end\s*\}\}/gs,
    (_all, kind: string, path: string, yes: string, no: string | undefined) => {
      const found = evaluate(path, value);
      if (kind === 'if') return goTemplate(isTrue(found) ? yes : (no ?? ''), value);
      return elementsOf(found)
        .map((element) => goTemplate(yes, element))
        .join('');
    },
  );
  return blocks.replaceAll(/\{\{-?\s*([^}]+?)\s*-?\}\}/g, (_all, expression: string) =>
    printed(evaluate(expression, value)),
  );
}

function evaluate(expression: string, value: unknown): unknown {
  const json = /^json\s+(.+)$/.exec(expression);
  if (json?.[1] !== undefined) return goJson(evaluate(json[1], value));
  const index = /^index\s+(\S+)\s+"?([^"]*)"?$/.exec(expression);
  if (index?.[1] !== undefined) return property(evaluate(index[1], value), index[2] ?? '') ?? '';
  const wrapped = /^\((.+)\)$/.exec(expression);
  if (wrapped?.[1] !== undefined) return evaluate(wrapped[1], value);
  if (!/^\.[\w.]*$/.test(expression)) {
    throw new Error(
      `template parsing error: template: :1: function "${expression.split(' ')[0]}" not defined`,
    );
  }
  return expression
    .split('.')
    .filter((part) => part !== '')
    .reduce<unknown>((inner, part) => {
      const found = property(inner, part);
      if (found === undefined) {
        throw new Error(
          `template parsing error: template: :1:2: executing "" at <${expression}>: map has no entry for key "${part}"`,
        );
      }
      return found;
    }, value);
}

/** Go escapes these in JSON. */
function goJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('<', '\\u003c')
    .replaceAll('>', '\\u003e')
    .replaceAll('&', '\\u0026');
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function elementsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

function printed(value: unknown): string {
  if (value === null || value === undefined) return '<no value>';
  if (Array.isArray(value)) return `[${value.map(printed).join(' ')}]`;
  if (typeof value === 'object') {
    return `map[${Object.entries(value)
      .map(([key, inner]) => `${key}:${printed(inner)}`)
      .join(' ')}]`;
  }
  return String(value);
}
