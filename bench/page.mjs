// The dashboard in a real Chromium: its weight at first load, its first paint, a run of 100,000 events opened, and how
// smooth the log stays with a million lines and ten thousand more a second. `npm run bench:page [-- EVENTS]`.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const DIST = resolve(process.env.FIRSTLIGHT_DIST ?? join(import.meta.dirname, '..', 'dist'));
const { openJournal } = await import(join(DIST, 'journal/sqlite-journal.js'));

const EVENTS = Number(process.argv[2] ?? 100_000);
const LINES = 1_000_000;
const folder = mkdtempSync(join(tmpdir(), 'fl-page-'));
const home = join(folder, 'home');
const node = (name, ssh) => `  - name: ${name}\n    ssh: ${ssh}\n`;
writeFileSync(
  join(folder, 'cluster.yaml'),
  `cluster: bench\nnodes:\n${node('spark-a', '127.0.0.1')}${node('spark-b', '127.0.0.2')}`,
);
const started = {
  type: 'run-started',
  operation: 'up',
  cluster: 'bench',
  recipe: 'bench',
  nodes: ['spark-a', 'spark-b'],
  controller: { host: 'bench', user: 'bench', pid: 1 },
  version: '0',
};
const rows = [];
const print = (what, value, aim) => rows.push({ what, value, aim });

weigh();
const run = fill();
try {
  await served(measure);
  unread();
  await served(measureUnread);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const { what, value, aim } of rows) console.log(`${what.padEnd(52)} ${value.padStart(12)}   ${aim}`);

function weigh() {
  const assets = join(DIST, 'faces', 'web', 'assets');
  const bytes = (end) =>
    readdirSync(assets)
      .filter((name) => name.endsWith(end))
      .reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(assets, name))).length, 0);
  print(
    'JavaScript at first load, compressed',
    `${(bytes('.js') / 1000).toFixed(1)} KB`,
    'aim 90, limit 150',
  );
  print('styles, compressed', `${(bytes('.css') / 1000).toFixed(1)} KB`, 'limit 12');
}

/** One run with 100,000 events and a million lines of two ranks. */
function fill() {
  const journal = openJournal(home);
  const run = journal.newRun();
  journal.append(run, started);
  for (const rank of [0, 1])
    journal.append(run, {
      type: 'rank-started',
      attempt: 1,
      node: rank === 0 ? 'spark-a' : 'spark-b',
      rank,
      role: rank === 0 ? 'head' : 'worker',
      engine: 'sglang',
      name: `bench-r${rank}`,
      log: '',
      followed: false,
    });
  for (let at = 3; at < EVENTS; at++)
    journal.append(run, {
      type: 'rank-stage',
      attempt: 1,
      node: at % 2 === 0 ? 'spark-a' : 'spark-b',
      rank: at % 2,
      stage: 'weights',
      percent: (at / EVENTS) * 100,
      line: at,
    });
  const start = Date.now() - LINES;
  for (let from = 0; from < LINES; from += 10_000)
    journal.appendLog(run, 1, (from / 10_000) % 2, linesFrom(start, from, 10_000));
  journal.close();
  return run;
}

/** Every tenth line draws a bar further; the others each say something else, so that they are rows of their own. */
function linesFrom(start, from, count) {
  return Array.from({ length: count }, (_, index) => {
    const line = from + index;
    const word = [...String(line)].map((digit) => 'abcdefghij'[digit]).join('');
    const bar = `Loading safetensors checkpoint shards: ${Math.floor(line / 10) % 100}% Completed | 5/9 [00:13<00:11]`;
    const text = `[2026-01-01 10:00:00 TP0] line ${word} of a long log that says little, and goes on for a while`;
    return { at: start + line, text: line % 10 === 9 ? bar : text };
  });
}

/** A newer run: the server does not read the long one before somebody asks for it. */
function unread() {
  const journal = openJournal(home);
  journal.append(journal.newRun(), { ...started, nodes: [] });
  journal.close();
}

/** Does that with a browser and the address of a server of its own. */
async function served(work) {
  const serve = spawn(
    process.execPath,
    [join(DIST, 'main.js'), '--cluster', join(folder, 'cluster.yaml'), 'serve', '--port', '0', '--no-open'],
    { env: { ...process.env, FIRSTLIGHT_HOME: home }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise((resolve) => serve.once('exit', resolve));
  try {
    const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
    const browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--enable-precise-memory-info'],
    });
    try {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      await noteShown(page);
      await work(await addressOf(serve), page);
    } finally {
      await browser.close();
    }
  } finally {
    serve.kill('SIGINT');
    await ended;
  }
}

function addressOf(child) {
  return new Promise((resolve, reject) => {
    let told = '';
    child.stdout.on('data', (bytes) => {
      told += bytes;
      const url = /open +(\S+)/.exec(told)?.[1];
      if (url) resolve(url);
    });
    child.on('exit', () => reject(new Error(`serve ended: ${told}`)));
  });
}

async function measure(url, page) {
  await page.goto(url);
  // It may come after the load.
  const paint = await page.evaluate(
    () =>
      new Promise((resolve) => {
        new PerformanceObserver((list) => {
          const found = list.getEntriesByName('first-contentful-paint')[0];
          if (found) resolve(found.startTime);
        }).observe({ type: 'paint', buffered: true });
      }),
  );
  print('first paint', `${Math.round(paint)} ms`, 'aim 1000');
  // The page before began to have the run's log read: that goes on meanwhile.
  print(`a run of ${EVENTS} events, Now line`, `${await opened(page, url)} ms`, 'aim 1000, Now line 300');
  print('the same, opened again', `${await opened(page, url)} ms`, '');
  const replayed = Date.now();
  await page.goto(new URL(`/run/${run}?at=${Math.floor(EVENTS / 2)}`, url).href);
  await page.waitForFunction(() => document.querySelector('.slider input') !== null);
  print('its events read and folded for replay', `${Date.now() - replayed} ms`, '');
  await page.goto(new URL(`/run/${run}`, url).href);
  await page.evaluate(() => {
    window.benchTasks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.benchTasks.push(duration);
    }).observe({ type: 'longtask' });
  });
  await page.waitForFunction(
    () => /1,000,000/.test(document.querySelector('.count')?.textContent ?? ''),
    undefined,
    {
      timeout: 60_000,
    },
  );
  // The page has been asking for the end meanwhile: what is timed here is read already.
  const of = async (path) => {
    const began = Date.now();
    const rows = await page.evaluate(async (at) => (await (await fetch(at)).json()).total, path);
    return [Date.now() - began, rows];
  };
  const [window, folded] = await of(`/api/runs/${run}/logs?from=400000&count=500&fold=yes`);
  print('500 rows from the middle of a million lines, folded', `${window} ms`, `${folded} rows`);
  const [strip] = await of(`/api/runs/${run}/logs/strip?pieces=160&fold=yes`);
  print('the strip of a million lines', `${strip} ms`, '');
  const [search] = await of(`/api/runs/${run}/logs?count=500&fold=yes&q=line%20defg`);
  print('a search through a million lines', `${search} ms`, '');
  const scroll = await frames(page, async () => {
    await page.evaluate(async () => {
      const box = document.querySelector('.log-box');
      for (let step = 0; step < 60; step++) {
        box.scrollTop = (box.scrollHeight / 60) * step;
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    });
  });
  print('frame while scrolling a million lines, median / p95', scroll, 'aim 8 / 16 of work');
  const journal = openJournal(home);
  const stream = await frames(page, async () => {
    for (let second = 0; second < 50; second++) {
      journal.appendLog(run, 1, 0, linesFrom(Date.now(), LINES + second * 1000, 1000));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });
  journal.close();
  print('frame at 10,000 lines a second, median / p95', stream, '');
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  const tasks = await page.evaluate(() => window.benchTasks ?? []);
  print(
    'tasks over 50 ms since the page was opened',
    `${tasks.length}`,
    `none; longest ${Math.round(Math.max(0, ...tasks))} ms`,
  );
  print('memory of the page afterwards (JavaScript heap)', `${(heap / 2 ** 20).toFixed(0)} MiB`, 'limit 150');
}

async function measureUnread(url, page) {
  // The cookie, without a page that asks for anything.
  await page.request.get(url);
  print('the same run where the server never read it', `${await opened(page, url)} ms`, 'aim 1000');
}

/**
 * Milliseconds until the run's Now line and cells are drawn, by the page's own clock. A locator's waitFor looks after 20,
 * 70, 170 and 270 ms and then each 500, and so tells of half a second more where it just missed them.
 */
async function opened(page, url) {
  const began = Date.now();
  await page.goto(new URL(`/run/${run}`, url).href);
  const shown = await page.waitForFunction(() => window.benchShown);
  return (await shown.jsonValue()) - began;
}

/** Has each document note when its Now line and cells stand there: a timer comes after the frame that they are drawn in. */
function noteShown(page) {
  return page.addInitScript(() => {
    const watch = new MutationObserver(() => {
      const said = document.querySelector('h1')?.textContent ?? '';
      if (document.querySelector('.cell') === null || said === '' || said.startsWith('Reading')) return;
      watch.disconnect();
      setTimeout(() => {
        window.benchShown = Date.now();
      });
    });
    watch.observe(document, { subtree: true, childList: true, characterData: true });
  });
}

/** Gaps between frames while something goes on, as the browser's own clock tells. */
async function frames(page, work) {
  await page.evaluate(() => {
    const gaps = [];
    let last = performance.now();
    const turn = () => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      window.benchFrame = requestAnimationFrame(turn);
    };
    window.benchGaps = gaps;
    window.benchFrame = requestAnimationFrame(turn);
  });
  await work();
  const gaps = await page.evaluate(() => {
    cancelAnimationFrame(window.benchFrame);
    return window.benchGaps;
  });
  const sorted = gaps.sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor(sorted.length * share)]?.toFixed(1) ?? '?';
  return `${at(0.5)} / ${at(0.95)} ms`;
}
