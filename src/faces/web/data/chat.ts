import { Refused } from './api.ts';

/** A piece of an answer as it streams, or its end with the figures. */
export type ChatPart =
  | { readonly part: 'answer' | 'reasoning'; readonly text: string }
  | {
      readonly part: 'end';
      readonly firstTokenSeconds?: number;
      readonly tokensPerSecond?: number;
      readonly outputTokens?: number;
    };

/** Asks the model; the server streams server-sent events. Throws Refused where it may not. */
export async function ask(prompt: string, on: (part: ChatPart) => void): Promise<void> {
  const response = await fetch('/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ prompt }),
    credentials: 'same-origin',
  });
  if (!response.ok || response.body === null) {
    const problem: { readonly detail?: string; readonly hint?: string } = await response
      .json()
      .catch(() => ({}));
    throw new Refused(
      response.status,
      problem.detail ?? `the server answered ${response.status}`,
      problem.hint ?? '',
    );
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = `${rest}${value}`.split('\n\n');
    rest = parts.pop() ?? '';
    for (const one of parts) {
      const data = one
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trim())
        .join('\n');
      if (data !== '') on(JSON.parse(data));
    }
  }
}
