import { Channel, ChannelClosed } from './channel.ts';
import { type EngineWorld, WorldError } from './engine-world.ts';
import { numberOf, textOf } from './json.ts';
import type { Pace } from './pace.ts';
import { PythonError } from './python-error.ts';
import type { Store } from './store.ts';

/**
 * The broadcast queue between nodes (ZeroMQ): rank 0 binds its own idea of its address, the others dial it until
 * they get through. There is no time limit, and neither side says a word: a wrong address is a silent hang.
 */
export async function openMessageQueue(
  { world, pace, store }: { readonly world: EngineWorld; readonly pace: Pace; readonly store: Store },
  { rank, size, address }: { readonly rank: number; readonly size: number; readonly address: string },
): Promise<void> {
  if (size === 1) return;
  if (rank === 0) {
    const readers = await bind(world, address, size - 1);
    await store.set('queue', { address, port: readers.port });
    await readers.all;
    return;
  }
  const told = await store.get('queue');
  const to = textOf(told.address) ?? '';
  const port = numberOf(told.port) ?? 0;
  for (;;) {
    try {
      const channel = new Channel(await world.dial(to, port));
      channel.send({ queue: rank });
      await channel.receive();
      return;
    } catch (error) {
      // ZeroMQ dials again for ever, whatever the reason.
      if (!(error instanceof WorldError || error instanceof ChannelClosed)) throw error;
      await pace.wait(1000);
    }
  }
}

async function bind(
  world: EngineWorld,
  address: string,
  readers: number,
): Promise<{ readonly port: number; readonly all: Promise<void> }> {
  try {
    const listener = await world.listen(address, 0);
    const ranks = new Set<number>();
    const all = new Promise<void>((resolve) => {
      listener.server.on('connection', (socket) => {
        const channel = new Channel(socket);
        channel.listen((hello) => {
          ranks.add(numberOf(hello.queue) ?? -1);
          channel.send({ queue: 'ready' });
          if (ranks.size === readers) resolve();
        });
      });
    });
    return { port: listener.port, all };
  } catch (error) {
    if (!(error instanceof WorldError)) throw error;
    throw new PythonError(
      'queue',
      'zmq.error.ZMQError',
      `Cannot assign requested address (addr='tcp://${address}:0')`,
    );
  }
}
