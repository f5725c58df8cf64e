/** Colours by what they mean, from the 16 of every terminal. None is needed to read the text. */
export type Paint = {
  readonly ok: (text: string) => string;
  readonly working: (text: string) => string;
  readonly wait: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly quiet: (text: string) => string;
  readonly strong: (text: string) => string;
};

const PLAIN: Paint = {
  ok: same,
  working: same,
  wait: same,
  bad: same,
  quiet: same,
  strong: same,
};

const COLOURED: Paint = {
  ok: sgr(32, 39),
  working: sgr(34, 39),
  wait: sgr(33, 39),
  bad: sgr(31, 39),
  quiet: sgr(2, 22),
  strong: sgr(1, 22),
};

export function paint(color: boolean): Paint {
  return color ? COLOURED : PLAIN;
}

/** Whether to colour: NO_COLOR (not empty) off, else FORCE_COLOR on (0 off), else only on a terminal that can. */
export function drawsColor(env: Readonly<Record<string, string | undefined>>, terminal: boolean): boolean {
  if (env['NO_COLOR']) return false;
  const force = env['FORCE_COLOR'];
  if (force !== undefined) return force !== '0' && force !== 'false';
  return terminal && env['TERM'] !== 'dumb';
}

function same(text: string): string {
  return text;
}

function sgr(on: number, off: number): (text: string) => string {
  return (text) => (text === '' ? '' : `\x1b[${on}m${text}\x1b[${off}m`);
}
