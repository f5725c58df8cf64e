import { z } from 'zod';
import { clusterSchema } from '../domain/cluster.ts';
import { policySchema } from '../domain/policy.ts';
import { recipeSchema } from '../domain/recipe.ts';
import type { Path } from './yaml-file.ts';

const SCHEMAS = { cluster: clusterSchema, recipe: recipeSchema, policy: policySchema } as const;
export type FileKind = keyof typeof SCHEMAS;

/** JSON Schema (draft 2020-12) of what a person may write into that file; defaults are named in it. */
export function jsonSchema(kind: FileKind): Readonly<Record<string, unknown>> {
  return { ...z.toJSONSchema(SCHEMAS[kind], { io: 'input' }) };
}

/** The schema as a file for editors, for `# yaml-language-server: $schema=…` at the top of a file. */
export function schemaText(kind: FileKind): string {
  const title = {
    cluster: 'firstlight: the cluster file',
    recipe: 'firstlight: a recipe',
    policy: 'firstlight: what may be stopped without asking',
  }[kind];
  return `${JSON.stringify({ ...jsonSchema(kind), title }, null, 2)}\n`;
}

/**
 * Keys that the schema knows at that place of the value: `here` for what stands there (`in: docker`), `elsewhere`
 * for its other variants.
 */
export function keysAt(
  kind: FileKind,
  path: Path,
  value: unknown,
): { readonly here: readonly string[]; readonly elsewhere: readonly string[] } {
  let schemas: readonly unknown[] = [jsonSchema(kind)];
  let part = value;
  for (const segment of path) {
    schemas = schemas.flatMap(variants).flatMap((schema) => {
      const next =
        typeof segment === 'number'
          ? get(schema, 'items')
          : (get(get(schema, 'properties'), segment) ?? get(schema, 'additionalProperties'));
      return next === undefined ? [] : [next];
    });
    part = get(part, segment);
  }
  const all = schemas.flatMap(variants);
  const fitting = all.filter((schema) => fits(schema, part));
  const here = fitting.flatMap(keys);
  return { here, elsewhere: all.flatMap(keys).filter((key) => !here.includes(key)) };
}

/** Dotted places where a key of that name stands in the schema, its own level left out. */
export function placesOf(kind: FileKind, key: string): readonly string[] {
  const found: string[] = [];
  const walk = (schema: unknown, path: string): void => {
    for (const variant of variants(schema)) {
      for (const [name, child] of entries(get(variant, 'properties'))) {
        if (name === key && path !== '') found.push(path);
        walk(child, path === '' ? name : `${path}.${name}`);
      }
      if (get(variant, 'items') !== undefined) walk(get(variant, 'items'), `${path}[]`);
    }
  };
  walk(jsonSchema(kind), '');
  return [...new Set(found)];
}

function variants(schema: unknown): readonly unknown[] {
  const several = get(schema, 'anyOf') ?? get(schema, 'oneOf');
  return Array.isArray(several) ? several.flatMap(variants) : [schema];
}

function fits(schema: unknown, value: unknown): boolean {
  return entries(get(schema, 'properties')).every(([name, child]) => {
    const constant = get(child, 'const');
    return constant === undefined || constant === get(value, name);
  });
}

function keys(schema: unknown): readonly string[] {
  const names = get(get(schema, 'propertyNames'), 'enum');
  if (Array.isArray(names)) return names.filter((name) => typeof name === 'string');
  return entries(get(schema, 'properties')).map(([name]) => name);
}

function entries(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** Own property of whatever it is, or undefined. */
export function get(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}
