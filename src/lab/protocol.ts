/**
 * How a process of the embedded lab asks its world. Every stand-in and every engine process opens one TCP
 * connection to 127.0.0.1:`port` from `FIRSTLIGHT_LAB=<port>:<token>:<host name>`, and sends one JSON object a
 * line; each gets one JSON object back, in order. The world takes the connection's end for the process's end:
 * a killed engine gives its memory back because the kernel closes its socket, not because it said so.
 *
 * What a lab process finds in its environment: `FIRSTLIGHT_ROOT` (its host's folder), `FIRSTLIGHT_LAB`, in a
 * container `FIRSTLIGHT_LAB_MOUNTS` (`container path=real path` per line: it sees nothing else) and
 * `FIRSTLIGHT_LAB_DEVICES` (what `--device` gave it, one a line), and below sudo `FIRSTLIGHT_LAB_UID=0`.
 *
 * Memory, chosen from what is known of GB10: the first `hold` with `gpu` of a process is its context, and must fit
 * into MemFree alone (the driver needs pages that are free now); whatever it grows to later may push clean page
 * cache out, up to MemAvailable. What a dead process held is back after one to two seconds, not before.
 */
export type LabRequest =
  | {
      readonly op: 'hello';
      readonly token: string;
      readonly host: string;
      readonly pid: number;
      readonly ppid: number;
      readonly uid: string;
      readonly argv: readonly string[];
    }
  /** A stand-in tool: the world answers with what it prints. */
  | {
      readonly op: 'tool';
      readonly tool: string;
      readonly argv: readonly string[];
      readonly stdin: string;
      readonly env: Readonly<Record<string, string>>;
      readonly cwd?: string;
      readonly stdinEnded?: boolean;
    }
  /** The stand-in got this signal; it stays until the world answers. */
  | { readonly op: 'signal'; readonly signal: string }
  /** This process is a program that somebody started by hand and that the story knows: it is one of its holders. */
  | { readonly op: 'holder' }
  /** This process now holds that many bytes in all; refused when the host has not got them free (`MemFree`-like, cache not counted). */
  | { readonly op: 'hold'; readonly bytes: number; readonly gpu: boolean }
  /**
   * For a moment that many bytes of the host's memory are needed, by this process or by programs that it runs; where
   * they are not to be had, the kernel ends the program, or else this process.
   */
  | { readonly op: 'stage'; readonly bytes: number; readonly program?: string }
  | { readonly op: 'memory' }
  /** Reading model files warms the page cache by that many bytes; the answer says how many times longer than usual it takes. */
  | { readonly op: 'read-files'; readonly bytes: number }
  /** getaddrinfo on this host: its own etc/hosts file, then the lab's names. */
  | { readonly op: 'resolve'; readonly name: string }
  /** A request to the model hub. */
  | { readonly op: 'ask-hub' }
  /** This process serves the API and got its first question. */
  | { readonly op: 'asked' }
  | { readonly op: 'interface'; readonly name: string }
  /** Source address this host would use towards an address that is on none of its networks: the default route's. */
  | { readonly op: 'route' }
  /** A real loopback port that stands for address:port on this host. `0` as port asks for a free one. */
  | { readonly op: 'listen'; readonly address: string; readonly port: number; readonly realPort: number }
  | { readonly op: 'dial'; readonly address: string; readonly port: number };

export type LabReply =
  | { readonly ok: true }
  /** More of a tool's output; its last reply is still to come. */
  | { readonly ok: true; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  /** The stand-in prints `stderr`, reads one line, and asks again. */
  | { readonly ok: true; readonly readLine: true; readonly stderr: string }
  /** The stand-in runs this in its place (sudo). */
  | { readonly ok: true; readonly run: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly ok: true; readonly stdout: string; readonly stderr: string; readonly code: number }
  | {
      readonly ok: true;
      readonly totalBytes: number;
      readonly freeBytes: number;
      readonly availableBytes: number;
      readonly unified: boolean;
    }
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: true; readonly slowed: number }
  /** HTTP's. */
  | { readonly ok: true; readonly status: number }
  | { readonly ok: true; readonly port: number; readonly realPort: number }
  | {
      readonly ok: false;
      readonly error:
        | 'out-of-memory'
        | 'EADDRINUSE'
        /** The address to listen on is none of this host's. */
        | 'EADDRNOTAVAIL'
        | 'ECONNREFUSED'
        | 'ETIMEDOUT'
        | 'EHOSTUNREACH'
        | 'ENOENT'
        | 'EPERM'
        /** The container had a GPU and lost it. */
        | 'gpu-lost';
      readonly text: string;
    };
