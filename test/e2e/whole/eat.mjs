// An engine that eats memory, really touched, until somebody ends it: MIB a second, after it has said what SGLang says
// when it begins to read weights. Its words: --mib-per-second N, --on-signal (not before SIGUSR2), whatever else an
// engine is given.
const at = process.argv.indexOf('--mib-per-second');
const step = Math.round((Number(process.argv[at + 1]) || 64) / 10);
const eaten = [];
const eat = () => setInterval(() => eaten.push(Buffer.alloc(step * 2 ** 20, 1)), 100);
if (process.argv.includes('--on-signal')) {
  process.once('SIGUSR2', eat);
  // A handler alone keeps no process.
  setInterval(() => undefined, 1000);
} else eat();
// Whoever reads the last of these lines may send the signal.
console.log('[2026-11-29 12:00:00] server_args=ServerArgs(model_path=...)');
console.log('[2026-11-29 12:00:01] Init torch distributed begin.');
console.log('[2026-11-29 12:00:01] Init torch distributed ends. elapsed=0.10 s, mem usage=0.10 GB');
console.log('[2026-11-29 12:00:01] Load weight begin. avail mem=1.00 GB');
