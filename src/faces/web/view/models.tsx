import type { JSX } from 'preact';
import { valueIf } from '../../../domain/facts.ts';
import { gib } from '../../../domain/units.ts';
import type { Page } from '../data/page.ts';

/** The model's files on each node: whole, partial or absent, by the last look. */
export function Models({ page }: { readonly page: Page }): JSX.Element | null {
  const facts = page.shown.facts;
  const rows = facts.flatMap((node) => {
    if (!node.reached || node.model === undefined) return [];
    const model = valueIf(node.model);
    const name = page.shown.plan?.recipe.model ?? '';
    if (model === undefined)
      return [{ node: node.node, name, size: '', state: `? ${node.model.known ? '' : node.model.why}` }];
    if (!model.present) return [{ node: node.node, name, size: '', state: `✕ absent from ${model.path}` }];
    const bytes = model.files.reduce((sum, file) => sum + file.bytes, 0);
    const missing = model.missingFiles.length;
    return [
      {
        node: node.node,
        name,
        size: gib(bytes),
        state: missing === 0 ? '✓ whole' : `! partial: ${missing} files are missing`,
      },
    ];
  });
  if (rows.length === 0) return null;
  return (
    <details class="panel" id="models">
      <summary class="head">
        <h2>Models</h2>
      </summary>
      <div class="scroll">
        <table class="plan">
          <thead>
            <tr class="small quiet">
              <th scope="col">node</th>
              <th scope="col">model</th>
              <th scope="col">size</th>
              <th scope="col">state</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.node}>
                <td>{row.node}</td>
                <td>{row.name}</td>
                <td>{row.size}</td>
                <td>{row.state}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
