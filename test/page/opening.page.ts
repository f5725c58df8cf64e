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

  it('says that there is no such run, and the list of runs does not take that away', async () => {
    const page = await signedIn();
    // What is asked for later takes it away.
    await page.route('**/api/look', () => {});
    let asked = 0;
    await page.route('**/api/runs', (route) => (asked++ === 0 ? route.continue() : undefined));
    await goTo(page, '/run/999');
    await page.locator('#runs').waitFor();
    await page.getByText('there is no run 999').waitFor();
    await page.close();
  });
});
