import { startDaemon } from './daemon.ts';

/** `node daemon-main.js FOLDER STORY SEED`: the lab's background process, until it is told to end. */
async function main([folder = '', story = '', seed = '1']: readonly string[]): Promise<void> {
  const lab = await startDaemon(folder, story, Number(seed));
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    void lab.close().finally(() => process.exit(0));
  };
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, end);
}

await main(process.argv.slice(2));
