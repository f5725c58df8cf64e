/** Where a server answers, and the tokens that it made. */
export type Addresses = {
  /** Such as http://127.0.0.1:7070 */
  readonly base: string;
  /** Absent where it only shows. */
  readonly write: string | undefined;
  readonly read: string;
  readonly agent: string;
  readonly listen: string;
  /** Whether the network can reach it. */
  readonly open: boolean;
  readonly tls: boolean;
  /** Whether somebody sits there whose browser is to show it. */
  readonly browse: boolean;
};

/** The address that a person opens. */
export function firstAddress({ base, write, read }: Addresses): string {
  return `${base}/?token=${write ?? read}`;
}

/** Says the addresses with their tokens, once, on stdout; as one line of JSON where that was asked for. */
export function announce(addresses: Addresses, asJson: boolean): void {
  const { base, write, read, agent, listen, open, tls } = addresses;
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ base, tokens: { write, read, agent } })}\n`);
    return;
  }
  const plain = tls ? '' : ', and what is sent can be read on the way: give --tls-cert and --tls-key';
  const lines = [
    ...(open
      ? [
          `! ${listen} can be reached from the network${plain}.`,
          '  Whoever has an address below can do what it says.',
        ]
      : []),
    ...(write === undefined ? [] : [`open       ${base}/?token=${write}`]),
    `show only  ${base}/?token=${read}`,
    `agents     ${base}/mcp  with  Authorization: Bearer ${agent}`,
    'These are told once and hold until Ctrl-C.',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
