import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { nowLine } from '../../domain/now-line.ts';
import { foldAll } from '../../domain/run-state.ts';
import { sentences } from '../../domain/units.ts';
import { UserError } from '../../domain/user-error.ts';
import { knownRecipes, recipeAt } from '../../operations/recipes.ts';
import { runs } from '../../operations/runs.ts';
import { scrubber } from '../../operations/scrub.ts';
import type { World } from '../../operations/world.ts';

const MOST_RUNS = 20;
/** As the protocol has it (server/resources, "Error Handling"); the SDK does not name it. */
const RESOURCE_NOT_FOUND = -32002;

/** The cluster, its recipes and its runs, as JSON. */
export function addResources(server: McpServer, world: () => World): void {
  const json = (uri: URL, value: unknown) => ({
    contents: [
      {
        uri: uri.href,
        mimeType: 'application/json',
        text: scrubber(world())(JSON.stringify(value, null, 1)),
      },
    ],
  });
  server.registerResource(
    'cluster',
    'firstlight://cluster',
    { title: 'The cluster', description: 'Its nodes and how they are reached', mimeType: 'application/json' },
    async (uri) => {
      const { cluster } = world();
      const nodes = cluster.nodes.map(({ name, ssh, jump, fabric }) => ({ name, ssh, jump, fabric }));
      return json(uri, { cluster: cluster.name, nodes });
    },
  );
  server.registerResource(
    'recipes',
    'firstlight://recipes',
    { title: 'The recipes', description: 'Files beside the cluster file', mimeType: 'application/json' },
    async (uri) => json(uri, { recipes: knownRecipes(world()) }),
  );
  server.registerResource(
    'recipe',
    new ResourceTemplate('firstlight://recipe/{+file}', {
      list: async () => ({
        resources: knownRecipes(world()).map(({ file, recipe, model }) => ({
          uri: `firstlight://recipe/${file}`,
          name: recipe,
          description: model,
          mimeType: 'application/json',
        })),
      }),
    }),
    { title: 'A recipe', description: 'With every default folded in', mimeType: 'application/json' },
    async (uri, { file }) => {
      try {
        return json(uri, recipeAt(world(), decodeURIComponent(String(file))));
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        const said = scrubber(world())(sentences(error.message, `What to do: ${error.hint}`));
        throw new McpError(ErrorCode.InvalidParams, said, { uri: uri.href });
      }
    },
  );
  server.registerResource(
    'runs',
    'firstlight://runs',
    { title: 'The runs', description: `The newest ${MOST_RUNS}`, mimeType: 'application/json' },
    async (uri) => {
      const { report } = await runs.run({ remedies: false, limit: MOST_RUNS }, world());
      return json(uri, report);
    },
  );
  server.registerResource(
    'run',
    new ResourceTemplate('firstlight://run/{run}', { list: undefined }),
    { title: 'A run', description: 'How it stands, by attempt', mimeType: 'application/json' },
    async (uri, { run }) => {
      const here = world();
      const id = String(run);
      const events = /^\d{1,15}$/.test(id) ? here.journal.read(id) : [];
      if (events.length === 0)
        throw new McpError(
          RESOURCE_NOT_FOUND,
          `There is no run ${id.slice(0, 64)}. What to do: read firstlight://runs, which lists them.`,
          { uri: uri.href },
        );
      const state = foldAll(events);
      const now = nowLine(state, here.clock.now());
      return json(uri, {
        run: state.run,
        operation: state.operation,
        recipe: state.recipe,
        now: `${now.glyph} ${now.sentence}`.trim(),
        ended: state.ended,
        attempts: state.attempts.map(({ attempt, engine, finding, remedy }) => ({
          attempt,
          engine,
          finding: finding?.title,
          remedy: remedy === undefined ? undefined : `${remedy.title}: ${remedy.state}`,
        })),
      });
    },
  );
}
