import type { JSX } from 'preact';
import { stopwatch, when } from '../../../domain/units.ts';
import { HERE_NOW } from '../data/address.ts';
import type { Page, PageStore } from '../data/page.ts';

/** All runs of this journal, newest first. */
export function Runs({ page, store }: { readonly page: Page; readonly store: PageStore }): JSX.Element {
  const { runs } = page;
  return (
    <section class="panel" id="all-runs" aria-labelledby="runs-head">
      <div class="head">
        <h1 id="runs-head" class="small strong">
          Runs
        </h1>
        <span class="small quiet">{runs?.length}</span>
      </div>
      {runs === undefined && <p class="body quiet">Reading …</p>}
      {runs?.length === 0 && (
        <p class="body quiet">
          No run yet. Bring a model up with <code>firstlight up RECIPE</code>
        </p>
      )}
      <div class="scroll">
        <table class="plan">
          <tbody>
            {runs?.map((run) => (
              <tr key={run.run}>
                <td>
                  <a
                    href={`/run/${run.run}`}
                    onClick={(event) => {
                      event.preventDefault();
                      store.go({ ...HERE_NOW, run: run.run });
                    }}
                  >
                    run {run.run}
                  </a>
                </td>
                <td>{run.operation}</td>
                <td>{run.recipe ?? ''}</td>
                <td>{run.outcome}</td>
                <td class="quiet">{when(run.startedAt, page.now)}</td>
                <td class="quiet">{run.seconds === undefined ? '' : stopwatch(run.seconds * 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
