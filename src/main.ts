#!/usr/bin/env node
import { commands } from './commands.ts';
import { runCli } from './faces/cli/run.ts';
import { makeWorld, version } from './world.ts';

process.exitCode = await runCli(process.argv.slice(2), {
  operations: commands,
  makeWorld,
  version: version(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  exit: (code) => process.exit(code),
});
