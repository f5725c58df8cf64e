import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { rate } from '../../../domain/units.ts';
import { Refused } from '../data/api.ts';
import { ask, type ChatPart } from '../data/chat.ts';

type Turn = {
  readonly question: string;
  readonly answer: string;
  readonly reasoning: string;
  readonly speed: string;
  readonly trouble: string;
};

/** One question at a time to the model that serves; nothing is stored. */
export function Chat({ model }: { readonly model: string }): JSX.Element {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    const question = text.trim();
    if (question === '' || busy) return;
    setText('');
    setBusy(true);
    const turn = { question, answer: '', reasoning: '', speed: '', trouble: '' };
    const before = turns;
    const show = (part: Partial<Turn>): void =>
      setTurns([...before, Object.assign(turn, part)].map((one) => ({ ...one })));
    show({});
    try {
      await ask(question, (part) => show(onto(turn, part)));
    } catch (error) {
      show({
        trouble:
          error instanceof Refused
            ? `${error.message} ${error.hint}`
            : 'the connection to the server broke; the model was not changed',
      });
    }
    setBusy(false);
  };
  return (
    <section class="panel" id="chat" aria-labelledby="chat-head">
      <div class="head">
        <h2 id="chat-head" tabIndex={-1}>
          Chat
        </h2>
        <span class="spacer" />
        <span class="small quiet">not stored</span>
      </div>
      <div class="body chat">
        <div class="turns" aria-live="polite">
          {turns.map((turn, index) => (
            <div key={index} class="turn">
              <p class="small quiet">You</p>
              <p>{turn.question}</p>
              {turn.reasoning !== '' && (
                <details class="reasoning">
                  <summary class="small quiet">Reasoning</summary>
                  <p class="quiet">{turn.reasoning}</p>
                </details>
              )}
              <p class="small quiet">Answer</p>
              <p class="answer">{turn.answer}</p>
              {turn.speed !== '' && <p class="small quiet">{turn.speed}</p>}
              {turn.trouble !== '' && <p class="small bad">✕ {turn.trouble}</p>}
            </div>
          ))}
        </div>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void send();
          }}
        >
          <input
            type="text"
            aria-label={`Ask ${model}`}
            placeholder={`Ask ${model}`}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <button type="submit" class="main" disabled={busy}>
            Send
          </button>
        </form>
      </div>
    </section>
  );
}

function onto(turn: Turn, part: ChatPart): Partial<Turn> {
  if (part.part !== 'end')
    return part.part === 'answer'
      ? { answer: turn.answer + part.text }
      : { reasoning: turn.reasoning + part.text };
  const { firstTokenSeconds, tokensPerSecond, outputTokens, answer, reasoning } = part.report;
  const first = firstTokenSeconds === undefined ? '' : `first token ${firstTokenSeconds.toFixed(2)} s · `;
  const speed = tokensPerSecond === undefined ? '' : `${rate(tokensPerSecond)} tok/s · `;
  const tokens = outputTokens === undefined ? '' : `${outputTokens} tokens by the server's usage`;
  return { answer, reasoning, speed: `${first}${speed}${tokens}` };
}
