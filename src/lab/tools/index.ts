import { docker } from './docker-tool.ts';
import { ip, ss } from './net-tools.ts';
import { nvidiaSmi } from './nvidia-smi-tool.ts';
import { dmesg, journalctl, loginctl } from './small-tools.ts';
import { sudo } from './sudo-tool.ts';
import { systemctl } from './systemctl-tool.ts';
import type { Tool } from './tool.ts';

/** Stand-ins that ask the world, by the name they are called by. */
export const tools: Readonly<Record<string, Tool>> = {
  docker,
  'nvidia-smi': nvidiaSmi,
  systemctl,
  sudo,
  ip,
  ss,
  loginctl,
  journalctl,
  dmesg,
};
