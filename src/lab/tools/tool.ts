import type { LabHost } from '../lab-host.ts';

/** One call of a stand-in: what was typed, by whom, and where its output goes while it runs. */
export type ToolCall = {
  readonly host: LabHost;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** 0 below sudo, else the login user's. */
  readonly uid: number;
  /** Process that called the stand-in. */
  readonly ppid: number;
  readonly pid: number;
  readonly cwd: string;
  /** Lines that the stand-in has read from its standard input so far, and whether that has ended. */
  readonly input: string;
  readonly inputEnded: boolean;
  readonly print: (stream: 'stdout' | 'stderr', text: string) => void;
  /** Called with each signal that the stand-in gets. */
  readonly onSignal: (listener: (name: NodeJS.Signals) => void) => void;
  /** Aborted when the stand-in is gone. */
  readonly gone: AbortSignal;
};

export type ToolAnswer =
  | { readonly stdout: string; readonly stderr: string; readonly code: number }
  /** The stand-in prints this, reads one line, and asks again with it. */
  | { readonly readLine: true; readonly stderr: string }
  /** The stand-in runs this itself, with its own standard streams, and ends as it ends. */
  | {
      readonly run: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    };

export type Tool = (call: ToolCall) => ToolAnswer | Promise<ToolAnswer>;

export function out(stdout: string): ToolAnswer {
  return { stdout, stderr: '', code: 0 };
}

export function bad(stderr: string, code = 1, stdout = ''): ToolAnswer {
  return { stdout, stderr: stderr.endsWith('\n') || stderr === '' ? stderr : `${stderr}\n`, code };
}
