import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Page } from '../data/page.ts';
import { pageLine } from './now.tsx';

const EVERY = 5000;

/** What a screen reader hears unasked: the Now line politely, at most once in 5 s; what needs a person at once. */
export function Spoken({ page }: { readonly page: Page }): JSX.Element {
  const [polite, setPolite] = useState('');
  const said = useRef(0);
  const { live } = page;
  const line = pageLine(page, live, page.now);
  const plain = line.sentence.replaceAll(
    /\d+ %/g,
    (percent) => `${Math.floor(Number.parseInt(percent, 10) / 25) * 25} %`,
  );
  useEffect(() => {
    if (page.now - said.current < EVERY) return;
    said.current = page.now;
    setPolite(plain);
  }, [plain]);
  const finding = live.finding?.final === true ? live.finding : undefined;
  const urgent = live.asked
    ? `${line.sentence}. Your answer is awaited.`
    : live.ended
      ? line.sentence
      : finding
        ? finding.title
        : '';
  return (
    <>
      <p class="unseen" role="status">
        {polite}
      </p>
      <p class="unseen" role="alert">
        {urgent}
      </p>
    </>
  );
}
