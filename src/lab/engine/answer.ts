/** What the lab's model says to a prompt: sums are really worked out, anything else is echoed. Pure. */
export type Answer = { readonly reasoning: string; readonly content: string };

const OPERATORS: Readonly<Record<string, '*' | '+' | '-' | '/'>> = {
  times: '*',
  'multiplied by': '*',
  '*': '*',
  x: '*',
  '×': '*',
  plus: '+',
  '+': '+',
  minus: '-',
  '-': '-',
  '−': '-',
  'divided by': '/',
  '/': '/',
};

const SUM =
  /(-?\d+(?:\.\d+)?)\s*(times|multiplied by|plus|minus|divided by|[x×*+−/]|(?<=[\d\s])-(?=[\d\s]))\s*(-?\d+(?:\.\d+)?)/i;

export function answer(prompt: string): Answer {
  const match = SUM.exec(prompt);
  const operator = OPERATORS[(match?.[2] ?? '').toLowerCase()];
  if (match !== null && operator !== undefined) {
    const left = match[1] ?? '0';
    const right = match[3] ?? '0';
    const result = compute(left, operator, right);
    const brief = /\b(only|just|with) the (number|result)\b/i.test(prompt);
    return {
      reasoning: `The user wants ${left} ${match[2]} ${right}. Working it out gives ${result}.`,
      content: brief ? result : `${left} ${match[2]} ${right} is ${result}.`,
    };
  }
  const count = /count (?:from )?(?:1 |one )?(?:up )?to (\d{1,4})/i.exec(prompt);
  if (count !== null) {
    const numbers = Array.from({ length: Number(count[1]) }, (_, index) => String(index + 1));
    return { reasoning: `The user wants the numbers up to ${count[1]}.`, content: numbers.join(' ') };
  }
  const words = prompt.trim().split(/\s+/).slice(0, 24).join(' ');
  return {
    reasoning: 'The user sent a short text. I will say it back.',
    content: words === '' ? 'I was asked nothing.' : `You wrote: ${words}`,
  };
}

function compute(left: string, operator: '*' | '+' | '-' | '/', right: string): string {
  if (operator !== '/' && /^-?\d+$/.test(left) && /^-?\d+$/.test(right)) {
    const a = BigInt(left);
    const b = BigInt(right);
    return String(operator === '*' ? a * b : operator === '+' ? a + b : a - b);
  }
  const a = Number(left);
  const b = Number(right);
  const value = operator === '*' ? a * b : operator === '+' ? a + b : operator === '-' ? a - b : a / b;
  return String(Number(value.toPrecision(12)));
}

/** Text → pieces of at most six characters, blanks kept in front: the lab's tokens. Joined they are the text again. */
export function tokens(text: string): readonly string[] {
  return text.match(/\s*\S{1,5}|\s+$/g) ?? [];
}
