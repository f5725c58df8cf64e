import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { downAfterEach, openLab } from '../stories/lab.ts';
import { openBrowser, openPage, overflows, seriousFaults, serve, shot } from './browser.ts';

describe('the dashboard', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());
  downAfterEach();

  it('shows the two-sparks story from an empty page to serving, with consent by click and a reload in the middle', async () => {
    // The engines at their own pace: a person would see each stage, and a slow browser draws each.
    const lab = await openLab('two-sparks', { env: { FIRSTLIGHT_LAB_SPEED: '1' } });
    const served = await serve(lab);
    const { page, errors } = await openPage(browser, served.url);

    await page.getByRole('heading', { level: 1, name: /No run yet/ }).waitFor();
    await page.getByText('spark-b', { exact: true }).first().waitFor();
    await page.locator('.segment.other').first().waitFor();
    expect(page.url()).not.toContain('token');
    await shot(page, '01-empty');
    expect(await seriousFaults(page)).toEqual([]);

    const up = lab.start(['up', 'recipe.yaml', '--wait', '--json']);
    await page.getByRole('heading', { level: 1, name: /Waiting for you: 3 things on spark-b/ }).waitFor();
    const allow = page.getByRole('button', { name: 'Allow 0 of 3' });
    expect(await allow.isDisabled()).toBe(true);
    await shot(page, '02-consent');
    await page.getByRole('checkbox').first().check();
    await page.getByText('✕ not enough').waitFor();
    for (const box of await page.getByRole('checkbox').all()) await box.check();
    await page.getByText('✓ enough').waitFor();
    expect(await page.locator('.segment.going').count()).toBe(3);
    await shot(page, '03-chosen');
    expect(await seriousFaults(page)).toEqual([]);
    // The weights come once only, and last some seconds: they are looked for from now on, whatever else is shown.
    const loading = page.getByRole('progressbar').first().waitFor({ timeout: 180_000 });
    loading.catch(() => undefined); // where the test ends before it is waited for
    await page.getByRole('button', { name: 'Allow 3 of 3' }).click();

    const given = await up.until('consent-given');
    expect(given.by).toContain('in the dashboard');
    await page
      .getByText(/cause found/)
      .first()
      .waitFor({ timeout: 120_000 });
    await page
      .getByText(/127\.0\.1\.1/)
      .first()
      .waitFor();
    await shot(page, '04-finding');
    await page.getByRole('button', { name: 'show in log' }).first().click();
    await page.locator('.row.quoted.shown').waitFor();
    await shot(page, '05-quote-in-log');

    await loading;
    await shot(page, '06-weights');
    const before = await page.getByRole('heading', { name: /^Run / }).textContent();
    await page.reload();
    await page
      .getByRole('heading', { level: 1, name: /^Serving qwen3.5-122b/ })
      .waitFor({ timeout: 180_000 });
    expect(await page.getByRole('heading', { name: /^Run / }).textContent()).toBe(before);
    await page.getByText('cause cured').first().waitFor();
    expect((await up.ended).code).toBe(0);

    await page.getByPlaceholder(/^Ask /).fill('Say hello');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/by the server's usage/).waitFor();
    expect((await page.locator('.turn .answer').last().textContent())?.length).toBeGreaterThan(0);
    await page.locator('.chart').first().waitFor();
    await shot(page, '07-serving');
    expect(await seriousFaults(page)).toEqual([]);

    await page.keyboard.press('Escape');
    await page.locator('h1').click();
    await page.keyboard.press('d');
    expect(await seriousFaults(page)).toEqual([]);
    await shot(page, '08-dark');

    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('button', { name: 'Runs' }).waitFor();
    // Bars are laid out in the frame after.
    await expect.poll(() => overflows(page)).toEqual([]);
    await shot(page, '09-phone');
    expect(await seriousFaults(page)).toEqual([]);
    await page.setViewportSize({ width: 1440, height: 900 });

    // An old run, back in time: what changes something is gone, and a copied address shows the same picture.
    await page.getByRole('button', { name: /replay/ }).click();
    const slider = page.getByRole('slider', { name: 'Moment of the run' });
    await slider.waitFor();
    await slider.fill('3');
    await page
      .getByRole('heading', { level: 1, name: /Waiting for you|Fits|Looking|Does not fit|May boot/ })
      .waitFor();
    expect(await page.getByRole('button', { name: /^Allow/ }).count()).toBe(0);
    expect(await page.getByPlaceholder(/^Ask /).count()).toBe(0);
    await shot(page, '10-replay');
    const sentence = await page.locator('h1').textContent();
    const address = page.url();
    expect(address).toMatch(/\/run\/\d+\?at=\d+/);
    await page.goto(address);
    await expect.poll(() => page.locator('h1').textContent()).toBe(sentence);

    await page.getByRole('button', { name: 'Back to live' }).first().click();
    await page.getByRole('button', { name: /^Stop and give back/ }).click();
    await page.getByRole('button', { name: 'Give back 3 things' }).click();
    await page.getByRole('heading', { level: 1, name: /Stopped|given back/ }).waitFor({ timeout: 120_000 });
    await shot(page, '11-given-back');
    expect(errors).toEqual([]);
    await page.close();
    served.process.signal('SIGINT');
    await served.process.ended;
  });

  it('is worked by keys alone, and read-only shows and changes nothing', async () => {
    const lab = await openLab('two-sparks', { env: { FIRSTLIGHT_LAB_SPEED: '8' } });
    const served = await serve(lab);
    const up = lab.start(['up', 'recipe.yaml', '--wait', '--json']);
    await up.until('consent-asked');
    const { page, errors } = await openPage(browser, served.url);
    await page.getByRole('heading', { level: 1, name: /Waiting for you/ }).waitFor();
    const reader = await openPage(browser, served.readUrl);
    await reader.page.getByRole('heading', { level: 1, name: /Waiting for you/ }).waitFor();
    expect(await reader.page.getByRole('button', { name: /^Allow/ }).isDisabled()).toBe(true);

    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('c');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('card-head');
    for (let box = 0; box < 3; box++) {
      await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
    }
    await page.getByRole('button', { name: 'Allow 3 of 3' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Allow 3 of 3');
    await page.keyboard.press('Enter');
    expect((await up.ended).code).toBe(0);
    await page.getByRole('heading', { level: 1, name: /^Serving/ }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('loopback');
    await expect.poll(() => page.locator('.count').textContent()).toMatch(/^\d+ lines$/);
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('loopback');
    await page.keyboard.press('Escape');
    expect([...errors, ...reader.errors]).toEqual([]);
    await page.close();
    await reader.page.close();
    served.process.signal('SIGINT');
    await served.process.ended;
  });
});
