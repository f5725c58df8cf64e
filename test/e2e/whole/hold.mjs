// Holds 640 MiB, really touched, until it is ended. Its words are a name, and "listen PORT" where it serves.
import { createServer } from 'node:net';

const held = Array.from({ length: 10 }, () => Buffer.alloc(64 * 2 ** 20, 1));
const at = process.argv.indexOf('listen');
if (at > 0)
  createServer((socket) => socket.end('here\n')).listen({
    fd: process.argv[at + 1] === 'socket' ? 3 : undefined,
    port: process.argv[at + 1] === 'socket' ? undefined : Number(process.argv[at + 1]),
  });
setInterval(() => held[0], 1e6);
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
