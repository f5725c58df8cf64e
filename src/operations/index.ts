import { adopt } from './adopt.ts';
import { consent } from './answer-consent.ts';
import { bundle } from './bundle.ts';
import { chat } from './chat.ts';
import { check } from './check.ts';
import { diagnoseRun } from './diagnose.ts';
import { down } from './down.ts';
import { fit } from './fit.ts';
import { init } from './init.ts';
import { logs } from './logs.ts';
import { memory } from './memory.ts';
import type { Operation } from './operation.ts';
import { planOperation } from './plan.ts';
import { restore } from './restore.ts';
import { runs, show } from './runs.ts';
import { status } from './status.ts';
import { up } from './up.ts';

/** Every verb a user has, in the order of its use; `lab` is joined by main. */
export const operations = [
  init,
  check,
  memory,
  fit,
  planOperation,
  up,
  consent,
  status,
  logs,
  runs,
  show,
  diagnoseRun,
  bundle,
  chat,
  adopt,
  down,
  restore,
] as const satisfies readonly Operation[];
