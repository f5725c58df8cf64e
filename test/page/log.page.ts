import { resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventBody } from '../../src/domain/event.ts';
import { openRig, type Rig, started } from '../faces/http/rig.ts';
import { openBrowser, openPage, seriousFaults, shot } from './browser.ts';

const PAGE = resolve(process.env['FIRSTLIGHT_DIST'] ?? 'dist', 'faces', 'web');
const BEGAN = Date.parse('2026-11-29T10:00:00Z');

const rankStarted = (rank: number): EventBody => ({
  type: 'rank-started',
  attempt: 1,
  node: `spark-${rank}`,
  rank,
  role: rank === 0 ? 'head' : 'worker',
  engine: 'sglang',
  name: `r${rank}`,
  log: '',
  followed: true,
});

const stamp = '[2026-11-29 10:00:14 TP0] ';
const shards = (percent: number): string =>
  `Loading safetensors checkpoint shards: ${percent}% Completed | ${percent / 4}/25 [00:13<00:11, 2.87s/it]`;
const words = (of: number): string => [...String(of)].map((digit) => 'abcdefghij'[Number(digit)]).join('');

/** A log with a bar of 26 lines, a traceback, and so much around them that it scrolls. */
const LINES: readonly string[] = [
  ...Array.from({ length: 60 }, (_, of) => `${stamp}module ${words(of)} is ready`),
  ...Array.from({ length: 26 }, (_, of) => shards(of * 4)),
  `${stamp}WARNING: few pages are left, 12`,
  ...Array.from({ length: 60 }, (_, of) => `${stamp}layer ${words(of)} is ready`),
  'Traceback (most recent call last):',
  '  File "/opt/app/run.py", line 6, in <module>',
  '    begin(model)',
  '  File "/opt/app/begin.py", line 17, in begin',
  '    raise ValueError(model)',
  'ValueError: no such model',
];

describe('the log of the dashboard', () => {
  let browser: Browser;
  let rig: Rig;
  let run: string;
  beforeAll(async () => {
    browser = await openBrowser();
    rig = await openRig({ page: PAGE });
    run = rig.journal.newRun();
    rig.journal.append(run, started);
    for (const rank of [0, 1]) rig.journal.append(run, rankStarted(rank));
    append(0, LINES);
  });
  afterAll(async () => {
    await browser.close();
    await rig.close();
  });

  let told = 0;
  const append = (rank: number, lines: readonly string[]): void =>
    rig.journal.appendLog(
      run,
      1,
      rank,
      lines.map((text) => ({ at: BEGAN + told++, text })),
    );
  const open = async (query = '', of = run): Promise<Page> => {
    const token = rig.addresses.write ?? rig.addresses.read;
    const { page } = await openPage(browser, new URL(`/?token=${token}`, rig.addresses.base).href);
    await page.goto(new URL(`/run/${of}${query}`, rig.addresses.base).href);
    await page.locator('.row').first().waitFor();
    return page;
  };
  const texts = (page: Page): Promise<readonly string[]> =>
    page.locator('.row:not([hidden]) .x').allTextContents();

  it('folds bars and tracebacks, opens them by a click and by Enter, and closes them again', async () => {
    const page = await open();
    const frames = page.getByRole('button', { name: '▸ 2 frames' });
    await frames.waitFor();
    await page.getByText(`${LINES.length} lines`).waitFor();
    expect(await texts(page)).toContain('ValueError: no such model');
    await shot(page, '20-log-traceback');
    await frames.click();
    await page.getByText('raise ValueError(model)').first().waitFor();
    await page.getByRole('button', { name: '▾ 2 frames' }).click();
    await frames.waitFor();

    await page.locator('.log-box').evaluate((box) => {
      box.scrollTop = 50 * 19;
    });
    const bar = page.getByRole('button', { name: '▸ 25 earlier of this bar' });
    await bar.waitFor();
    expect(await texts(page)).toContain(shards(100));
    await shot(page, '21-log-bar');
    await page.getByText('module fj is ready').click();
    await page.locator('.row.selected').waitFor();
    await page.locator('.log-box').press('ArrowDown');
    await page.getByText(/25 earlier of this bar, Enter opens it/).waitFor();
    await page.locator('.log-box').press('Enter');
    await page.getByText(shards(4)).first().waitFor();
    expect(await texts(page)).toContain(shards(0));
    await page.locator('.log-box').press('Enter');
    await expect.poll(async () => (await texts(page)).includes(shards(4))).toBe(false);
    expect(await seriousFaults(page)).toEqual([]);
    await page.close();
  });

  it('keeps the folds that lie open in its address, so that a copied one shows them again', async () => {
    const page = await open();
    const opened = (): string | null => new URL(page.url()).searchParams.get('open');
    await page.getByRole('button', { name: '▸ 2 frames' }).click();
    await page.getByText('raise ValueError(model)').first().waitFor();
    await expect.poll(opened).toBe('1-0-149');
    const copied = new URL(page.url());
    await page.getByRole('button', { name: '▾ 2 frames' }).click();
    await page.getByRole('button', { name: '▸ 2 frames' }).waitFor();
    await expect.poll(opened).toBe(null);
    await page.close();

    const again = await open(`${copied.search},1-0-61`);
    // The last one is gone to; the other lies open as well.
    await again.locator('.row.shown').waitFor();
    expect(await again.locator('.row.shown .x').textContent()).toBe(shards(0));
    await again.getByText(shards(4)).first().waitFor();
    await again.locator('.log-box').evaluate((box) => {
      box.scrollTop = box.scrollHeight;
    });
    await again.getByText('raise ValueError(model)').first().waitFor();
    expect(new URL(again.url()).search).toBe(`${copied.search},1-0-61`);
    await again.close();

    const none = await open('?open=1-0-99999');
    await none.getByText('ValueError: no such model').waitFor();
    await none.close();
  });

  it('has the mark of the stage over its lines while they scroll by', async () => {
    const other = rig.journal.newRun();
    rig.journal.append(other, started);
    const [began] = [0, 1].map((rank) => rig.journal.append(other, rankStarted(rank))).slice(-1);
    const from = Date.parse(began?.at ?? '');
    while (Date.now() <= from); // within one millisecond nothing is before anything
    const weights = { type: 'rank-stage', attempt: 1, node: 'spark-0', rank: 0, stage: 'weights' } as const;
    const moved = rig.journal.append(other, { ...weights, percent: undefined, line: 60 });
    const lines = (at: number, word: string) =>
      Array.from({ length: 60 }, (_, of) => ({ at, text: `${stamp}${word} ${words(of)} is ready` }));
    rig.journal.appendLog(other, 1, 0, [...lines(from, 'module'), ...lines(Date.parse(moved.at), 'layer')]);
    const page = await open('', other);
    const mark = page.locator('.log-mark');
    await page.getByText('layer fj is ready').waitFor();
    await expect.poll(() => mark.textContent()).toBe('rank 0 weights · rank 1 start');
    await page.locator('.log-box').evaluate((box) => {
      box.scrollTop = 19 * 5;
    });
    await page.getByText('module f is ready').waitFor();
    await expect.poll(() => mark.textContent()).toBe('start');
    const [box, bar] = [await page.locator('.log-box').boundingBox(), await mark.boundingBox()];
    expect((bar?.y ?? 0) + (bar?.height ?? 0)).toBeLessThanOrEqual((box?.y ?? 0) + 1);
    expect(await seriousFaults(page)).toEqual([]);
    await shot(page, '25-log-mark');
    await page.close();
  });

  it('a line that is gone to is opened to, and what is searched for is in no fold', async () => {
    const page = await open('?q=shards');
    await expect.poll(() => texts(page)).toContain(shards(96));
    await page.getByText('26 lines').waitFor();
    await page.goto(new URL(`/run/${run}`, rig.addresses.base).href);
    await page.locator('.row').first().waitFor();
    await page.evaluate(() =>
      dispatchEvent(new CustomEvent('show-line', { detail: { attempt: 1, rank: 0, line: 63 } })),
    );
    await page.locator('.row.shown').waitFor();
    expect(await page.locator('.row.shown .x').textContent()).toBe(shards(8));
    await page.getByRole('button', { name: '▾ 25 earlier of this bar' }).waitFor({ state: 'attached' });
    await page.close();
  });

  it('has a strip beside it whose press goes there, also after a theme was changed', async () => {
    const page = await open();
    await page.getByText('ValueError: no such model').waitFor();
    const strip = page.locator('.log-strip');
    const shades = (): Promise<number> =>
      strip.evaluate((canvas: HTMLCanvasElement) => {
        const bytes = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        const words = new Uint32Array(Uint8ClampedArray.from(bytes).buffer);
        return new Set(words).size;
      });
    await expect.poll(shades).toBeGreaterThan(3);
    await strip.click({ position: { x: 5, y: 2 } });
    await page.getByText('module a is ready').waitFor();
    await strip.click({ position: { x: 5, y: 318 } });
    await page.getByText('ValueError: no such model').waitFor();
    await page.keyboard.press('d');
    await expect.poll(shades).toBeGreaterThan(3);
    await shot(page, '22-log-strip-dark');
    await page.close();
  });

  it('single keys can be switched off by keys, stay off on the next visit, and come back', async () => {
    const page = await open();
    const theme = (): Promise<string | undefined> =>
      page.evaluate(() => document.documentElement.dataset['theme']);
    await page.locator('h1').click();
    await page.keyboard.press('d');
    const first = await theme();
    await page.keyboard.press('?');
    const box = page.getByRole('checkbox', { name: /^Single keys/ });
    await box.waitFor();
    await page.keyboard.press('Tab');
    await box.focus();
    await page.keyboard.press('Space');
    expect(await box.isChecked()).toBe(false);
    expect(await seriousFaults(page)).toEqual([]);
    await shot(page, '23-keys-off');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    for (const visit of ['this', 'next']) {
      for (const key of ['d', '?', 't', '/']) await page.keyboard.press(key);
      expect([visit, await theme(), await page.getByRole('dialog').isVisible()]).toEqual([
        visit,
        first,
        false,
      ]);
      expect(await page.getByRole('button', { name: 'raw', pressed: true }).count()).toBe(0);
      await page.reload();
      await page.locator('.row').first().waitFor();
    }
    // Without the keys their buttons do the same.
    await page.getByRole('button', { name: 'keys' }).focus();
    await page.keyboard.press('Enter');
    await box.focus();
    await page.keyboard.press('Space');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.keyboard.press('d');
    expect(await theme()).not.toBe(first);
    await page.close();
  });

  it('asks nothing of the nodes, and no log, while nobody sees it', async () => {
    const page = await open();
    const streams: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/events?'))
        streams.push(new URL(request.url()).searchParams.get('with') ?? 'events');
    });
    const turn = (hidden: boolean): Promise<void> =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { value, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await turn(true);
    await expect.poll(() => streams).toEqual(['events']);
    rig.journal.append(run, {
      type: 'note',
      level: 'info',
      node: undefined,
      text: 'told while nobody looked',
    });
    await page.getByText('told while nobody looked').waitFor();
    await turn(false);
    await expect.poll(() => streams).toEqual(['events', 'ledger,log']);
    await page.getByText('live', { exact: true }).waitFor();
    await page.close();
  });

  it("shows lines without the engine's stamp until somebody wants it, and copies them as they are", async () => {
    const page = await open();
    await page.getByText('layer fj is ready').waitFor();
    expect((await texts(page)).some((text) => text.startsWith(stamp))).toBe(false);
    const copied = await page.evaluate(() => {
      const row = [...document.querySelectorAll('.row')].find((one) => one.textContent?.includes('layer fj'));
      if (row === undefined) return '';
      getSelection()?.selectAllChildren(row);
      const data = new DataTransfer();
      row.dispatchEvent(new ClipboardEvent('copy', { clipboardData: data, bubbles: true, cancelable: true }));
      return data.getData('text/plain');
    });
    expect(copied).toBe(`${stamp}layer fj is ready`);
    await page.locator('h1').click();
    await page.keyboard.press('t');
    await page.getByText(`${stamp}layer fj is ready`).waitFor();
    await page.getByRole('button', { name: 'raw', pressed: true }).click();
    await expect.poll(() => texts(page)).toContain('layer fj is ready');
    await page.close();
  });

  it('keys go through what was found, to it among the other lines, and to the first error', async () => {
    const page = await open('?q=shards');
    await page.getByText('26 lines').waitFor();
    await page.locator('h1').click();
    await page.keyboard.press('e');
    await page.keyboard.press('0');
    for (const key of ['N', 'N', 'n']) await page.keyboard.press(key);
    await page.getByText(/^\d+ of 26 lines$/).waitFor();
    await page.locator('.log-box').press('Enter');
    await page.getByText(`${LINES.length} lines`).waitFor();
    await page.locator('.row.shown').waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe(null);
    await page.locator('h1').click();
    await page.keyboard.press('e');
    await page.locator('.row.shown', { hasText: 'Traceback (most recent' }).waitFor();
    await page.close();
  });

  it('a line that a finding quotes comes out of its fold, and keys go to it', async () => {
    const page = await open();
    await page.getByText('ValueError: no such model').waitFor();
    rig.journal.append(run, {
      type: 'finding',
      attempt: 1,
      cause: 'unknown',
      node: 'spark-0',
      rank: 0,
      role: 'head',
      stage: 'weights',
      final: true,
      confidence: 0.5,
      title: 'Rank 0 stopped',
      why: 'It said so.',
      quotes: [{ rank: 0, node: 'spark-0', line: 63, text: shards(8) }],
      consequences: [],
      advice: [],
      values: {},
    });
    await page.getByText('Rank 0 stopped').first().waitFor();
    await page.locator('h1').click();
    // The strip tells where the quoted lines are, as soon as it has heard of them.
    await expect
      .poll(async () => {
        await page.keyboard.press('[');
        return page.locator('.row.quoted.shown').count();
      })
      .toBe(1);
    expect(await page.locator('.row.quoted .x').textContent()).toBe(shards(8));
    await page.getByRole('button', { name: '▸ 24 earlier of this bar' }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await shot(page, '24-log-quoted');
    await page.close();
  });

  it('tells a screen reader of new lines where a person wants that', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'keys' }).click();
    await page.getByRole('checkbox', { name: /^Read new lines/ }).check();
    await page.keyboard.press('Escape');
    await page.getByText(`${LINES.length} lines`).waitFor();
    append(1, ['one more line', 'ERROR: and one that is bad']);
    await page.getByRole('status').getByText('2 new lines, 1 error', { exact: true }).waitFor();
    await page.close();
  });
});
