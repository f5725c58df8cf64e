import { setMaxListeners } from 'node:events';

/** Ctrl-C as a person means it: the first asks the work to stop where it is safe, the second leaves at once. */
export type Interrupt = {
  readonly signal: AbortSignal;
  /** The same as Ctrl-C: a raw-mode prompt, where the terminal makes no signal, calls it. */
  readonly press: () => void;
  /** Whether it was pressed at all. */
  readonly pressed: () => boolean;
  readonly dispose: () => void;
};

/** Listens to SIGINT and SIGTERM until `dispose`. `first` tells what happens now, `leave` must end the process. */
export function listenForInterrupt(on: {
  readonly first: () => void;
  readonly leave: () => void;
}): Interrupt {
  const controller = new AbortController();
  // Every command on every host listens to it; Node's warning would be written across the drawing.
  setMaxListeners(0, controller.signal);
  const press = (): void => {
    if (controller.signal.aborted) {
      on.leave();
      return;
    }
    on.first();
    controller.abort(new Error('interrupt'));
  };
  process.on('SIGINT', press);
  process.on('SIGTERM', press);
  return {
    signal: controller.signal,
    press,
    pressed: () => controller.signal.aborted,
    dispose: () => {
      process.removeListener('SIGINT', press);
      process.removeListener('SIGTERM', press);
    },
  };
}
