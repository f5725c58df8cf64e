// Holds 640 MiB, or as many as "mib N" says, really touched, until it is ended. Its words are a name, and
// "listen PORT" where it serves.
import { createServer } from 'node:net';

const size = process.argv.indexOf('mib');
const mib = size > 0 ? Number(process.argv[size + 1]) : 640;
const held = Array.from({ length: mib / 32 }, () => Buffer.alloc(32 * 2 ** 20, 1));
const at = process.argv.indexOf('listen');
if (at > 0)
  createServer((socket) => socket.end('here\n')).listen({
    fd: process.argv[at + 1] === 'socket' ? 3 : undefined,
    port: process.argv[at + 1] === 'socket' ? undefined : Number(process.argv[at + 1]),
  });
setInterval(() => held[0], 1e6);
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
