import { describe, expect, it } from 'vitest';
import { misreadAnswer } from '../../src/operations/bring-up/misread-answer.ts';
import { evidenceOf } from '../diagnosis/cases.ts';

const HEAD = [
  "(APIServer pid=1) INFO 05-05 10:00:00 [api_utils.py:272] non-default args: {'model_tag': '/m', 'tool_call_parser': 'hermes'}",
  '(APIServer pid=1) INFO:     Application startup complete.',
];

/** What the answers of a model that serves show. */
function shown(message: object, finish = 'stop') {
  const evidence = evidenceOf({ engine: 'vllm', logs: { head: HEAD, worker: [] }, silence: 1000 });
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }];
  const proof = { kind: 'failed', step: 'answer', why: '', text: '' } as const;
  return misreadAnswer(evidence, { ...proof, said: [JSON.stringify({ choices })] });
}

describe('an answer to our own question', () => {
  it('shows a tool parser that left the call in the text, and quotes it', () => {
    const call = '<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>';
    const found = shown({ content: call, tool_calls: null });
    expect(found?.finding).toMatchObject({
      cause: 'tool-parser-mismatch',
      node: 'spark-a',
      stage: 'serving',
      final: true,
    });
    expect(found?.finding.quotes).toMatchObject([{ log: 'answers to the check', line: 1 }]);
    expect(found?.evidence.side).toMatchObject([{ kind: 'client', node: 'spark-a' }]);
  });

  it('shows a reasoning parser that took the whole answer for thoughts', () => {
    expect(shown({ content: null, reasoning: 'It is 204.' })?.finding.cause).toBe(
      'reasoning-parser-mismatch',
    );
  });

  it('shows nothing of parsers where the call was taken, where tokens ran out, or where it is plainly wrong', () => {
    const call = { type: 'function', function: { name: 'get_weather', arguments: '{"city": "Oslo"}' } };
    expect(shown({ content: null, tool_calls: [call] }, 'tool_calls')).toBeUndefined();
    expect(shown({ content: null, reasoning: 'Let me see' }, 'length')).toBeUndefined();
    expect(shown({ content: 'It is sunny in Oslo.', tool_calls: null })).toBeUndefined();
  });
});
