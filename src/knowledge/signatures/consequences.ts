import { type Pattern, pattern } from './signature.ts';

/** A line that tells of somebody else's failure; `tell` gets the node that printed it. */
export type Consequence = { readonly form: Pattern; readonly tell: (node: string) => string };

/**
 * What the other ranks print when one of them fails. None of these is ever a cause. Sources: torch TCPStore.cpp,
 * ProcessGroupNCCL.cpp and gloo pair.cc; SGLang utils/common.py; vLLM v1/engine, engines.md §1.6 and §2.1.
 */
export const consequences: readonly Consequence[] = [
  {
    form: pattern(
      'seconds waiting for clients',
      /Timed out after \d+ seconds waiting for clients\. \d+\/\d+ clients joined/,
    ),
    tell: (node) => `${node} waited in vain for the other ranks to join.`,
  },
  {
    form: pattern('TCP client failed to connect/validate to host', /TCP client failed to connect\/validate/),
    tell: (node) => `${node} kept dialling the head.`,
  },
  {
    form: pattern(
      'while trying to connect to (',
      /client socket has timed out .* while trying to connect to/,
    ),
    tell: (node) => `${node} gave up dialling the head.`,
  },
  {
    form: pattern(
      ['recvValue failed on', 'Failed to check the "should dump" flag', 'sendBytes failed on'],
      /recvValue failed on|Failed to check the "should dump" flag|sendBytes failed on/,
    ),
    tell: (node) => `${node} lost the connection to the head's store.`,
  },
  {
    form: pattern('Connection closed by peer', /Connection closed by peer/),
    tell: (node) => `${node} saw the other rank's connection close.`,
  },
  {
    form: pattern(
      ['ncclRemoteError', 'remote process exited or there was a network error'],
      /ncclRemoteError|remote process exited or there was a network error/,
    ),
    tell: (node) => `${node} reports through NCCL that another rank is gone.`,
  },
  {
    form: pattern(
      'Watchdog caught collective operation timeout',
      /Watchdog caught collective operation timeout/,
    ),
    tell: (node) => `${node} waited in a collective operation until the watchdog ended it.`,
  },
  {
    form: pattern(
      ['Received sigquit from a child process', 'SIGQUIT received'],
      /Received sigquit from a child process|SIGQUIT received/,
    ),
    tell: (node) => `${node}'s main process ended because its scheduler did.`,
  },
  {
    form: pattern('scheduler died during initialization', /scheduler died during initialization/),
    tell: (node) => `${node}'s scheduler ended during its start.`,
  },
  {
    form: pattern(
      ['Engine core initialization failed', 'EngineDeadError', 'died unexpectedly, shutting down executor'],
      /Engine core initialization failed|EngineDeadError|died unexpectedly, shutting down executor/,
    ),
    tell: (node) => `${node}'s server ended because its engine did.`,
  },
  {
    form: pattern(' timed out', /RPC call to \w+ timed out/),
    tell: (node) => `${node} got no answer from a worker.`,
  },
];
