import { connect } from 'node:net';

/** `PROTOCOL.mux` of OpenSSH, version 4 (since 5.4): what a client of a master says and hears. */
const HELLO = 0x00000001;
const VERSION = 4;
const ALIVE_CHECK = 0x10000004;
const ALIVE = 0x80000005;

const PATIENCE_MS = 2000;

/**
 * Whether a master listens on that control socket and answers, asked as `ssh -O check` asks, without starting an ssh
 * for it. `unclear`: somebody listens and says something else.
 */
export function masterAlive(socket: string): Promise<'alive' | 'gone' | 'unclear'> {
  return new Promise((resolve) => {
    const link = connect(socket);
    let heard = Buffer.alloc(0);
    const end = (told: 'alive' | 'gone' | 'unclear'): void => {
      clearTimeout(timer);
      link.removeAllListeners();
      link.on('error', () => undefined); // it was closed by us
      link.destroy();
      resolve(told);
    };
    const timer = setTimeout(() => end('unclear'), PATIENCE_MS);
    // No such socket, or one that a master left behind when it ended.
    link.on('error', () => end(heard.length === 0 ? 'gone' : 'unclear'));
    link.on('close', () => end('unclear'));
    link.on('connect', () => link.write(Buffer.concat([message(HELLO, VERSION), message(ALIVE_CHECK, 0)])));
    link.on('data', (chunk) => {
      heard = Buffer.concat([heard, chunk]);
      while (heard.length >= 4 && heard.length >= 4 + heard.readUInt32BE(0)) {
        const body = heard.subarray(4, 4 + heard.readUInt32BE(0));
        heard = heard.subarray(4 + body.length);
        const type = body.length >= 4 ? body.readUInt32BE(0) : undefined;
        if (type === ALIVE) return end('alive');
        if (type !== HELLO) return end('unclear');
      }
    });
  });
}

/** One message of whole numbers: its length, then each in four bytes. */
function message(...words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + 4 * words.length);
  [4 * words.length, ...words].forEach((word, at) => {
    bytes.writeUInt32BE(word, 4 * at);
  });
  return bytes;
}
