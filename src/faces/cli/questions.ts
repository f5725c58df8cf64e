import type { RunState } from '../../domain/run-state.ts';
import type { UserError } from '../../domain/user-error.ts';
import { giveConsent } from '../../operations/consent.ts';
import type { World } from '../../operations/world.ts';
import { clean } from './clean.ts';
import { type Asked, askConsent } from './consent.ts';
import { discardTyped, readLine } from './read-line.ts';
import { askPassword, type PasswordWhy, type SecretInput } from './secret.ts';
import type { Style } from './style.ts';
import { wrap } from './width.ts';

/** Everything a person at the terminal can be asked. Only one question stands at a time. */
export type Questions = {
  readonly password: (node: string, why: PasswordWhy) => Promise<string | undefined>;
  /** Puts the consent question, and writes the answer into the run; a question that is withdrawn leaves nothing. */
  readonly consent: (asked: Asked, state: RunState | undefined, world: World) => Promise<void>;
  /** The run went on: its question was answered elsewhere. */
  readonly withdraw: (run: string) => void;
  /** NAME=DESTINATION values for `init`. */
  readonly nodes: () => Promise<readonly string[]>;
  /** Whether to trust a host key that was shown; only the word yes does. */
  readonly hostKey: (key: UnknownKey, error: UserError) => Promise<boolean>;
  /** Whether to adopt what was found and shown; only the word yes does. */
  readonly adopt: () => Promise<boolean>;
};

export type UnknownKey = { readonly node: string; readonly fingerprint: string };

export function newQuestions(parts: {
  readonly input: SecretInput;
  readonly write: (text: string) => void;
  readonly style: () => Style;
  readonly signal: AbortSignal;
  readonly interrupt: () => void;
  /** Takes the drawing away while a question stands; the result brings it back. */
  readonly pause: () => () => void;
}): Questions {
  const open = new Map<string, AbortController>();
  let turn: Promise<unknown> = Promise.resolve();

  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(async () => {
      const resume = parts.pause();
      try {
        return await work();
      } finally {
        resume();
      }
    });
    turn = mine.catch(() => undefined); // whoever asked gets the failure; the next question still has its turn
    return mine;
  };
  /** A question breaks at spaces, and what follows its last word (the space before the cursor) stays. */
  const put = (text: string): void => {
    const [end = ''] = /\s*$/.exec(text) ?? [];
    const room = parts.style().columns - end.replaceAll('\n', '').length;
    parts.write(`${wrap(text.slice(0, text.length - end.length), room).join('\n')}${end}`);
  };
  const line = async (prompt: string): Promise<string | undefined> => {
    put(prompt);
    const typed = await readLine(parts.input, parts.signal);
    if (typed === undefined) parts.write('\n'); // Ctrl-D leaves the cursor behind the question
    return typed;
  };

  return {
    password: (node, why) =>
      alone(() =>
        askPassword(node, why, {
          input: parts.input,
          write: put,
          interrupt: parts.interrupt,
          signal: parts.signal,
        }),
      ),
    withdraw: (run) => {
      open.get(run)?.abort();
      open.delete(run);
    },
    async consent(asked, state, world) {
      const mine = new AbortController();
      open.set(asked.run, mine);
      const signal = AbortSignal.any([mine.signal, parts.signal]);
      const answer = await alone(async () => {
        // What may stop somebody's work is answered by who has read the question.
        await discardTyped(parts.input, parts.interrupt);
        return askConsent(
          { asked, plan: state?.plan, facts: state?.facts ?? [], consented: state?.consented ?? [] },
          { write: parts.write, readLine: (stop) => readLine(parts.input, stop) },
          parts.style(),
          signal,
        );
      }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        parts.write('\n'); // answered elsewhere, or interrupted: the question is off the table
        return undefined;
      });
      if (answer === undefined) return;
      open.delete(asked.run);
      const { user, host } = world.controller;
      giveConsent(world, asked.run, { ...answer, by: `${user} in the terminal on ${host}` });
    },
    nodes: () =>
      alone(async () => {
        const nodes: string[] = [];
        put('Which hosts? The head first; an empty name ends the list.\n');
        for (;;) {
          const name = (await line(`Node ${nodes.length + 1}, its name > `))?.trim() ?? '';
          if (name === '') return nodes;
          const ssh = (await line(`  ${name}, as ssh takes it (user@host or an alias) > `))?.trim() ?? '';
          if (ssh === '') continue;
          const jump = (await line('  through (a node above, user@host; empty: directly) > '))?.trim() ?? '';
          nodes.push(`${name}=${ssh}${jump === '' ? '' : `,jump=${jump}`}`);
        }
      }),
    adopt: () =>
      alone(async () => {
        const answer = await line('Adopt them? yes, or anything else for no > ');
        return answer?.trim().toLowerCase() === 'yes';
      }),
    hostKey: (key, error) =>
      alone(async () => {
        put(`\n${clean(error.message)}\n${clean(error.hint)}\n`);
        const answer = await line(
          `Trust ${key.fingerprint} for ${key.node}? yes, or anything else for no > `,
        );
        return answer?.trim().toLowerCase() === 'yes';
      }),
  };
}

/** The node and fingerprint of an error about an unknown host key; undefined where the error names none. */
export function unknownKey(error: UserError, nodes: readonly string[]): UnknownKey | undefined {
  if (error.code !== 'host-key-unknown') return undefined;
  const fingerprint = /SHA256:[A-Za-z0-9+/=]+/.exec(error.message)?.[0];
  const words = error.message.split(/[^\w.-]+/).map((word) => word.replace(/\.$/, ''));
  const node = nodes.find((name) => words.includes(name));
  return fingerprint === undefined || node === undefined ? undefined : { node, fingerprint };
}
