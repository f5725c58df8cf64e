import { Channel, ChannelClosed } from './channel.ts';
import { type EngineWorld, WorldError } from './engine-world.ts';
import { listOf } from './json.ts';
import { write } from './output.ts';
import type { Pace } from './pace.ts';

/**
 * What a node of vLLM over Ray runs by `python3 -c`. The lab has no Python, so these two programs are known by what
 * they call; they see what the lab's network lets them see.
 */
export async function runRayProgram(
  hands: { readonly world: EngineWorld; readonly pace: Pace },
  program: 'dial' | 'nodes',
  args: readonly string[],
): Promise<number> {
  if (program === 'nodes') return awaitNodes(hands, args);
  const [address = '', port = '0'] = args;
  try {
    const socket = await hands.world.dial(address, Number(port));
    socket.destroy();
    return 0;
  } catch (error) {
    if (!(error instanceof WorldError)) throw error;
    return 1;
  }
}

async function awaitNodes(
  { world, pace }: { readonly world: EngineWorld; readonly pace: Pace },
  [at = '', wanted = '1', seconds = '60']: readonly string[],
): Promise<number> {
  const until = Date.now() + (Number(seconds) * 1000) / pace.speed;
  const channel = new Channel(await world.dial(at.replace(/:\d+$/, ''), Number(/\d+$/.exec(at)?.[0])));
  let told = '';
  try {
    for (;;) {
      channel.send({ op: 'nodes' });
      const there = listOf((await channel.receive()).nodes)
        .map(String)
        .toSorted();
      const text = `${there.length} of ${wanted} nodes: ${there.join(', ')}`;
      if (text !== told) write(1, `Ray has ${text}\n`);
      told = text;
      if (there.length >= Number(wanted)) return 0;
      if (Date.now() > until) {
        write(2, `Ray has only ${text}\n`);
        return 1;
      }
      await pace.wait(500);
    }
  } catch (error) {
    if (!(error instanceof ChannelClosed)) throw error;
    write(2, 'ConnectionError: the connection to Ray is lost\n');
    return 1;
  } finally {
    channel.close();
  }
}
