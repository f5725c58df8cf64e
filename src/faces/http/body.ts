import type { IncomingMessage } from 'node:http';
import { Refusal } from './problem.ts';

const MOST_BYTES = 2 ** 20;

/** The JSON body of a request; undefined where it has none. Throws a Refusal for another type, too much, or no JSON. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > MOST_BYTES) throw tooLarge();
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request) {
    const bytes: Buffer = Buffer.isBuffer(part) ? part : Buffer.from(String(part));
    length += bytes.length;
    if (length > MOST_BYTES) throw tooLarge();
    parts.push(bytes);
  }
  if (length === 0) return undefined;
  // A form of another site can send text and forms without being asked about it; never JSON.
  if (!/^application\/json\s*(;\s*charset=utf-8\s*)?$/i.test(request.headers['content-type'] ?? ''))
    throw new Refusal(
      415,
      'bad-type',
      'the body is not application/json',
      'send JSON, and say so in Content-Type',
    );
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    // No UTF-8, or no JSON; what stands in it is not quoted.
    if (error instanceof TypeError || error instanceof SyntaxError)
      throw new Refusal(400, 'bad-json', 'the body is no JSON in UTF-8', 'send one JSON object');
    throw error;
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, 'too-large', 'the body is larger than 1 MiB', 'send less', { Connection: 'close' });
}
