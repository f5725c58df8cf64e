import type { ChatReport } from '../../../domain/report.ts';
import { Refused } from './api.ts';

/** A piece of an answer as it streams, or its end with the figures. */
export type ChatPart =
  | { readonly part: 'answer' | 'reasoning'; readonly text: string }
  | { readonly part: 'end'; readonly report: ChatReport };

/** Asks the model; the server streams server-sent events. Throws Refused where it may not. */
export async function ask(prompt: string, on: (part: ChatPart) => void): Promise<void> {
  const response = await fetch('/api/operations/chat', {
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
      const event = /^event: (.*)$/m.exec(one)?.[1];
      const data: unknown = JSON.parse(/^data: (.*)$/m.exec(one)?.[1] ?? 'null');
      take(event, data, on);
    }
  }
}

/** The server's messages are its own types; what it does not know yet is passed over. */
function take(event: string | undefined, data: unknown, on: (part: ChatPart) => void): void {
  if (event === 'text') on(data as ChatPart);
  else if (event === 'answer') on({ part: 'end', report: (data as { readonly report: ChatReport }).report });
  else if (event === 'problem') {
    const { detail, hint } = data as { readonly detail?: string; readonly hint?: string };
    throw new Refused(502, detail ?? 'the answer broke off', hint ?? '');
  }
}
