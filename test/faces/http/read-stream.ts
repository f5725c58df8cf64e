import http from 'node:http';

export type Message = { readonly id: string | undefined; readonly event: string; readonly data: string };

/** An event stream as a browser reads it; `pause` stops taking bytes, as a page in a sleeping laptop does. */
export type Stream = {
  readonly status: number;
  readonly messages: readonly Message[];
  /** Every byte that came. */
  readonly bytes: () => number;
  until(fits: (messages: readonly Message[]) => boolean, milliseconds?: number): Promise<void>;
  pause(): void;
  resume(): void;
  readonly ended: Promise<void>;
  close(): void;
};

export function openStream(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  onMessage: (message: Message) => void = () => {},
): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const request = http.get(
      { host: '127.0.0.1', port, path, agent: false, headers: { Accept: 'text/event-stream', ...headers } },
      (response) => {
        const messages: Message[] = [];
        const waiting = new Set<() => void>();
        let rest = '';
        let bytes = 0;
        response.setEncoding('utf8');
        response.on('data', (text: string) => {
          bytes += text.length;
          const parts = (rest + text).split('\n\n');
          rest = parts.pop() ?? '';
          for (const part of parts) {
            const message = readMessage(part);
            if (message === undefined) continue;
            messages.push(message);
            onMessage(message);
          }
          for (const look of [...waiting]) look();
        });
        // A stream that the test closes ends as "aborted".
        response.on('error', () => undefined);
        const ended = new Promise<void>((settle) => response.once('close', () => settle()));
        resolve({
          status: response.statusCode ?? 0,
          messages,
          bytes: () => bytes,
          until: (fits, milliseconds = 10_000) =>
            new Promise((settle, fail) => {
              const timer = setTimeout(() => {
                waiting.delete(look);
                fail(new Error(`not within ${milliseconds} ms; ${messages.length} messages came`));
              }, milliseconds);
              const look = (): void => {
                if (!fits(messages)) return;
                clearTimeout(timer);
                waiting.delete(look);
                settle();
              };
              waiting.add(look);
              look();
            }),
          pause: () => response.pause(),
          resume: () => response.resume(),
          ended,
          close: () => request.destroy(),
        });
      },
    );
    request.on('error', reject);
  });
}

function readMessage(text: string): Message | undefined {
  const field = (name: string): string | undefined =>
    text
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field('data');
  return data === undefined ? undefined : { id: field('id'), event: field('event') ?? 'message', data };
}
