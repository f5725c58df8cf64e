/** Time for a stop to take hold before it is taken for one that the kernel did not grant, ms. */
const TAKES_HOLD = 30;

/** What a shell does to the process of a drawing: stopped, continued, ended. */
export type JobControl = {
  /** Stops this process and its group, as Ctrl-Z does where the terminal makes signals. */
  readonly suspend: () => void;
  /** Ends the group as Ctrl-\\ does. */
  readonly quit: () => void;
  readonly dispose: () => void;
};

/**
 * `leave` puts the terminal back before the process is stopped, ends by SIGQUIT or exits, a crash included; `back`
 * comes when it goes on. SIGHUP is left alone: who is started with nohup outlives the terminal.
 */
export function controlJob(on: { readonly leave: () => void; readonly back: () => void }): JobControl {
  let timer: NodeJS.Timeout | undefined;
  let continued = false;
  const goOn = (): void => {
    continued = true;
    on.back();
  };
  // The default action alone leaves a group alone that no shell could continue.
  const stop = (): void => {
    on.leave();
    continued = false;
    process.removeListener('SIGTSTP', stop);
    process.kill(process.pid, 'SIGTSTP');
    timer = setTimeout(() => {
      process.on('SIGTSTP', stop);
      if (!continued) on.back();
    }, TAKES_HOLD);
  };
  const quit = (): void => {
    on.leave();
    process.removeListener('SIGQUIT', quit);
    process.kill(process.pid, 'SIGQUIT');
  };
  process.on('SIGTSTP', stop);
  process.on('SIGCONT', goOn);
  process.on('SIGQUIT', quit);
  process.on('exit', on.leave);
  return {
    suspend: () => void process.kill(0, 'SIGTSTP'),
    quit: () => void process.kill(0, 'SIGQUIT'),
    dispose: () => {
      if (timer !== undefined) clearTimeout(timer);
      process.removeListener('SIGTSTP', stop);
      process.removeListener('SIGCONT', goOn);
      process.removeListener('SIGQUIT', quit);
      process.removeListener('exit', on.leave);
    },
  };
}
