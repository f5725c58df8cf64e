import { createServer, type Server, type Socket } from 'node:net';
import { Connection } from './connection.ts';
import type { LabWorld } from './world.ts';

/** The port through which processes of the lab ask their world; `world` is called once it can be. */
export async function openControl(
  token: string,
  world: () => LabWorld,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    const connection = new Connection(socket, token, world);
    socket.on('close', () => {
      sockets.delete(socket);
      connection.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
