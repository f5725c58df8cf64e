/// <reference lib="dom" />
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Firstlight, Lab } from '../stories/lab.ts';

/** Where the pictures for people go; cleared by nobody, ignored by git. */
const SHOTS = resolve(process.env['FIRSTLIGHT_SHOTS'] ?? 'test/page/shots');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Debian's Chromium. A machine without one fails: a page that nobody looked at is not tested. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
    (path) => existsSync(path),
  );
  if (executablePath === undefined) throw new Error('no Chromium here: apt-get install chromium');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

export type Served = { readonly url: string; readonly readUrl: string; readonly process: Firstlight };

/** `firstlight serve` over a lab, on a free port. */
export async function serve(lab: Lab, words: readonly string[] = []): Promise<Served> {
  const process = lab.start(['serve', '--port', '0', '--no-open', ...words]);
  for (;;) {
    const told = process.told;
    const readUrl = /show only +(\S+)/.exec(told)?.[1];
    const url = /open +(\S+)/.exec(told)?.[1] ?? readUrl;
    if (url !== undefined && readUrl !== undefined) return { url, readUrl, process };
    if (!process.running) throw new Error(`serve ended: ${told}`);
    await wait(20);
  }
}

/** A page that fails its test for anything that its console calls an error. */
export async function openPage(
  browser: Browser,
  url: string,
  size = { width: 1440, height: 900 },
): Promise<Watched> {
  const page = await browser.newPage({ viewport: size });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error.stack)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(url);
  return { page, errors };
}

export type Watched = { readonly page: Page; readonly errors: readonly string[] };

/** Takes a picture for people. */
export async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

/** What axe finds that is serious or worse, each as one line, once no colour is on its way from one to another. */
export async function seriousFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(async () => {
    // A style that a press just changed begins its way in the next frame.
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const ending = document
      .getAnimations()
      .filter((one) => Number.isFinite(Number(one.effect?.getComputedTiming().endTime)));
    await Promise.allSettled(ending.map((one) => one.finished));
  });
  // As the developer tools would: the page's own policy lets no strange script in.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe: { run(options: object): Promise<{ violations: Violation[] }> } = Reflect.get(window, 'axe');
    type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations
      .filter((one) => one.impact === 'serious' || one.impact === 'critical')
      .flatMap((one) =>
        one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 160)} ${node.failureSummary}`),
      );
  });
}

/** What is wider than the window, where the page scrolls sideways: that is broken on a phone. */
export async function overflows(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const width = window.innerWidth + 1;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll('#page *')]
      .filter((element) => element.getBoundingClientRect().right > width)
      .map((element) => `${element.tagName} ${element.className} ${element.textContent?.slice(0, 60)}`)
      .slice(0, 8);
  });
}
