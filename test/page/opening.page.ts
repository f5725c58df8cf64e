/// <reference lib="dom" />
import { resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRig, type Rig, started } from '../faces/http/rig.ts';
import { openBrowser, openPage } from './browser.ts';

const PAGE = resolve(process.env['FIRSTLIGHT_DIST'] ?? 'dist', 'faces', 'web');

describe('the dashboard as it opens', () => {
  let browser: Browser;
  let rig: Rig;
  let run: string;
  beforeAll(async () => {
    browser = await openBrowser();
    rig = await openRig({ page: PAGE });
    run = rig.journal.newRun();
    rig.journal.append(run, started);
  });
  afterAll(async () => {
    await browser.close();
    await rig.close();
  });

  /** A page that has the cookie and asks for nothing more. */
  const signedIn = async (): Promise<Page> => {
    const token = rig.addresses.write ?? rig.addresses.read;
    const { page } = await openPage(browser, new URL(`/?token=${token}`, rig.addresses.base).href);
    await page.goto('about:blank');
    return page;
  };
  const goTo = (page: Page, path: string): Promise<unknown> =>
    page.goto(new URL(path, rig.addresses.base).href);

  for (const path of ['/', '/run/']) {
    it(`${path} shows its run while the list of runs is not read yet`, async () => {
      const page = await signedIn();
      let asked = 0;
      // Never answered.
      await page.route('**/api/runs', () => {
        asked++;
      });
      await goTo(page, path === '/' ? path : `${path}${run}`);
      await page.getByRole('heading', { level: 1, name: /^Looking at / }).waitFor();
      await expect.poll(() => asked).toBeGreaterThan(0);
      expect(await page.locator('#runs').count()).toBe(0);
      await page.close();
    });
  }

  it('says that there is no such run, and nothing that the page asks by itself takes that away', async () => {
    const page = await signedIn();
    let looked = 0;
    let listed = 0;
    page.on('response', (response) => {
      if (response.ok() && response.url().endsWith('/api/look')) looked++;
      if (response.ok() && response.url().endsWith('/api/runs')) listed++;
    });
    await goTo(page, '/run/999');
    await page.getByText('there is no run 999').waitFor();
    // The first list, and one of those read again and again.
    await expect.poll(() => looked > 0 && listed > 1, { timeout: 30_000 }).toBe(true);
    await page.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    expect(await page.getByText('there is no run 999').count()).toBe(1);
    expect(await page.locator('h1').textContent()).toBe('Run 999 cannot be shown');
    expect(await page.locator('.pill').textContent()).toBe('not shown');
    expect(await page.getByText('No run yet.').count()).toBe(0);

    await page.locator('#runs').selectOption(run);
    await page.getByRole('heading', { level: 1, name: /^Looking at / }).waitFor();
    expect(await page.getByText('there is no run 999').count()).toBe(0);
    await page.locator('.pill', { hasText: /^live/ }).waitFor();
    await page.close();
  });

  it('does not say that there is no run while neither the cluster nor the runs were read', async () => {
    const page = await signedIn();
    const broken = { status: 422, json: { detail: 'cluster.yaml cannot be read', hint: 'mend it' } };
    await page.route('**/api/cluster', (route) => route.fulfill(broken));
    let answer = (): void => {};
    const listed = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/api/runs', async (route) => {
      await listed;
      await route.continue();
    });
    await goTo(page, '/');
    await page.getByText('cluster.yaml cannot be read').waitFor();
    await page.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    expect(await page.locator('h1').textContent()).toBe('Reading …');
    expect(await page.getByText('No run yet.').count()).toBe(0);
    expect(await page.locator('.pill').textContent()).toBe('connecting');
    answer();
    await page.getByRole('heading', { level: 1, name: /^Looking at / }).waitFor();
    await page.close();
  });
});
