// How late events reach 200 event streams of one server, 20 of which take nothing, while another process writes the
// run: from the event's own time to the reader. `npm run bench:streams [-- STREAMS SECONDS]`.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const DIST = resolve(process.env.FIRSTLIGHT_DIST ?? 'dist');
const [streams = 200, seconds = 10] = process.argv.slice(2).map(Number);
const STUCK = Math.round(streams / 10);
const PER_SECOND = 20;

const { openJournal } = await import(join(DIST, 'journal/sqlite-journal.js'));
const folder = mkdtempSync(join(tmpdir(), 'fl-streams-'));
writeFileSync(
  join(folder, 'cluster.yaml'),
  'cluster: sparks\nnodes:\n  - {name: spark-a, ssh: 127.0.0.1, port: 1}\n',
);
const home = join(folder, 'home');
const server = spawn(process.execPath, [join(DIST, 'main.js'), 'serve', '--port', '0', '--no-open'], {
  cwd: folder,
  env: { PATH: process.env.PATH, HOME: folder, FIRSTLIGHT_HOME: home },
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const address = await new Promise((settle) => {
    let said = '';
    server.stdout.on('data', (text) => {
      said += text;
      const found = /show only\s+(http:\/\/[\d.]+:\d+)\/\?token=(\S+)/.exec(said);
      if (found) settle({ base: found[1], token: found[2] });
    });
  });
  const journal = openJournal(home);
  const run = journal.newRun();
  journal.append(run, {
    type: 'run-started',
    operation: 'up',
    cluster: 'sparks',
    recipe: 'tiny',
    nodes: ['spark-a'],
    controller: { host: 'laptop', user: 'aurora', pid: 1 },
    version: '0',
  });
  const delays = [];
  const seen = [];
  const path = `/api/runs/${run}/events`;
  await Promise.all(Array.from({ length: streams }, (_, at) => open(at)));
  console.log(
    `${streams} streams open, ${STUCK} of them take nothing; ${PER_SECOND} events a second for ${seconds} s`,
  );
  const text = 'x'.repeat(2000);
  let slowest = 0;
  const events = PER_SECOND * seconds;
  for (let at = 0; at < events; at += 1) {
    const began = performance.now();
    journal.append(run, { type: 'note', level: 'info', text });
    slowest = Math.max(slowest, performance.now() - began);
    await wait(1000 / PER_SECOND);
  }
  await wait(2000);
  delays.sort((a, b) => a - b);
  const part = (share) => `${delays[Math.min(delays.length - 1, Math.floor(delays.length * share))]} ms`;
  const readers = streams - STUCK;
  console.log(`received   ${delays.length} of ${readers * events} (${readers} readers)`);
  console.log(`delay      median ${part(0.5)}, 95 % ${part(0.95)}, largest ${part(1)}`);
  console.log(`writing    slowest append ${slowest.toFixed(1)} ms`);
  console.log(`server     ${memoryOf(server.pid)} resident`);
  journal.close();

  function open(at) {
    return new Promise((settle, reject) => {
      const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${address.token}` };
      const request = http.get(`${address.base}${path}`, { headers, agent: false }, (response) => {
        response.setEncoding('utf8');
        let rest = '';
        response.on('data', (chunk) => {
          const now = Date.now();
          const parts = (rest + chunk).split('\n\n');
          rest = parts.pop();
          for (const one of parts) {
            const data = /^data: (.*)$/m.exec(one)?.[1];
            if (data === undefined) continue;
            const event = JSON.parse(data);
            if (event.type === 'note') delays.push(now - Date.parse(event.at));
            else if (at < STUCK) response.pause();
            seen[at] = event.seq;
          }
        });
        response.on('error', () => {});
        settle();
      });
      request.on('error', reject);
    });
  }
} finally {
  server.kill('SIGINT');
  await new Promise((settle) => server.once('exit', settle));
  rmSync(folder, { recursive: true, force: true });
  process.exit();
}

function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return `${Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)} MiB`;
}
