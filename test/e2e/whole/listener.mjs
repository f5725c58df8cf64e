// Listens where an engine wants to, until it is ended.
import { createServer } from 'node:net';

createServer(() => {}).listen(30000, '0.0.0.0');
