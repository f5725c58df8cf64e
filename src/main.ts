#!/usr/bin/env node
import { runCli } from './faces/cli/run.ts';
import { lab } from './lab-operation.ts';
import { operations } from './operations/index.ts';
import { serve } from './serve-operation.ts';
import { makeWorld, version } from './world.ts';

process.exitCode = await runCli(process.argv.slice(2), {
  operations: [...operations, serve, lab],
  makeWorld,
  version: version(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  exit: (code) => process.exit(code),
});
