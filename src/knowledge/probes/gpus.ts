import {
  type DriverFacts,
  type Fact,
  type Gpu,
  type GpuHeat,
  type GpuTrouble,
  known,
  type MigInstance,
  unknown,
} from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { cell, lostGpu, mebibytes, SMI_SH, smiTrouble, splitRow } from './nvidia-smi.ts';
import { firstLine, gaveNothing, linesOf, printable, wholeLines, wholeNumber } from './output.ts';

/**
 * GPUs. Few fields a call, since one that a driver does not know fails the whole call; addressing mode and MIG
 * instances are asked for only where they decide. The driver's own list in /proc tells when a GPU is left out.
 */
export const gpusProbe: Probe = {
  name: 'gpus',
  timeoutSeconds: 12,
  script: String.raw`${SMI_SH}
tagged() { printf '%s\n' "$2" | sed "s/^/$1 /"; }
n=0; for d in "$R/proc/driver/nvidia/gpus"/*; do [ -d "$d" ] && n=$((n + 1)); done
[ -d "$R/proc/driver/nvidia/gpus" ] && printf 'listed %s\n' "$n"
if [ -r "$R/proc/driver/nvidia/version" ]; then read -r v <"$R/proc/driver/nvidia/version"; printf 'version %s\n' "$v"; fi
q=index,uuid,pci.device_id,memory.total,memory.free,driver_version
out=$(smi --query-gpu=$q,mig.mode.current,name --format=csv,noheader,nounits); rc=$?
case $out in
  *'not a valid field'*) out=$(smi --query-gpu=$q,name --format=csv,noheader,nounits); rc=$? ;;
esac
printf 'code %s\n' "$rc"
tagged gpu "$out"
case $out in
  *GB10* | *Thor* | *Orin*) ;;
  *'[N/A], [N/A],'* | *'[Not Supported], [Not Supported],'*)
    tagged addressing "$(smi --query-gpu=index,addressing_mode --format=csv,noheader)" ;;
esac
[ "$rc" = 0 ] && tagged heat "$(smi --query-gpu=index,utilization.gpu,temperature.gpu,power.draw,clocks.sm --format=csv,noheader,nounits)"
case $out in *', Enabled, '*) tagged list "$(smi -L)" ;; esac
echo end
`,
};

/** Cells of a row whose driver knows no MIG mode; with it there is one more before the name. */
const COLUMNS = 7;
const MIG_MODE = /^(Enabled|Disabled|\[?N\/A\]?|\[Not Supported\])$/;

/** GB10's PCI device id begins so, whatever the name cell says. */
const GB10 = /^0x2E12/i;

/** The GPUs, and what the driver's own side says of them. */
export type GpuLook = { readonly gpus: Fact<readonly Gpu[]>; readonly driver: DriverFacts };

/**
 * "gpu 0, GPU-…, 0x2E1210DE, [N/A], [N/A], 580.159.03, [N/A], NVIDIA GB10" per line → one Gpu each; [N/A] is unknown,
 * not 0. A GPU that the driver lists and nvidia-smi leaves out makes the whole unknown: new CUDA work may then
 * fail on all of them. Those that were seen stand in `driver.trouble`.
 */
export function parseGpuLook(output: ProbeOutput | undefined): GpuLook {
  const tagged = linesOf(wholeLines(output));
  const of = (tag: string) =>
    tagged.flatMap((line) => (line.startsWith(`${tag} `) ? [line.slice(tag.length + 1)] : []));
  const listed = wholeNumber(of('listed')[0]);
  const code = wholeNumber(of('code')[0]);
  const driver = driverFrom(of('version')[0], listed, code !== undefined);
  if (output === undefined || code === undefined) {
    const why = output?.timedOut ? unknown('nvidia-smi gave no answer in time') : gaveNothing(output, 'GPUs');
    const trouble = output?.timedOut
      ? { kind: 'hangs' as const, ...told(why.why, HANGS), seen: [] }
      : undefined;
    return { gpus: why, driver: { ...driver, ...(trouble === undefined ? {} : { trouble }) } };
  }
  if (!tagged.includes('end')) {
    const cut = unknown(
      output.timedOut ? 'nvidia-smi gave no answer in time' : 'what nvidia-smi said is cut off',
    );
    return { gpus: cut, driver };
  }
  const text = of('gpu').join('\n');
  const addressing = new Map(
    of('addressing').map((line) => {
      const [index, value] = splitRow(line, 2);
      return [index ?? '', cell(value)] as const;
    }),
  );
  const instances = instancesFrom(of('list'));
  const heats = heatFrom(of('heat'));
  const gpus = of('gpu').flatMap((line) => {
    const row = cellsOf(line);
    const index = wholeNumber(row?.cells[0]);
    if (row === undefined || index === undefined || !/^(GPU|MIG)-/.test(row.cells[1] ?? '')) return [];
    const migOn = row.mig === 'Enabled';
    return [
      {
        ...toGpu(row.cells, index, addressing.get(String(index)), migOn),
        ...(heats.has(index) ? { heat: heats.get(index) ?? {} } : {}),
        ...(migOn
          ? { mig: instances.get(row.cells[1] ?? '') ?? unknown('nvidia-smi -L did not list its instances') }
          : {}),
      },
    ];
  });
  const trouble = troubleOf(text, code, gpus, listed);
  if (trouble === undefined) return { gpus: known(gpus), driver };
  return { gpus: unknown(trouble.why), driver: { ...driver, trouble } };
}

/** The GPUs alone. */
export function parseGpus(output: ProbeOutput | undefined): Fact<readonly Gpu[]> {
  return parseGpuLook(output).gpus;
}

/** The name comes last and may hold commas; a row that is cut before it is none. */
function cellsOf(
  line: string,
): { readonly cells: readonly string[]; readonly mig: string | undefined } | undefined {
  const longer = splitRow(line, COLUMNS + 1);
  if (longer.length === COLUMNS + 1 && MIG_MODE.test(longer[COLUMNS - 1] ?? '')) {
    return { cells: longer.toSpliced(COLUMNS - 1, 1), mig: cell(longer[COLUMNS - 1]) };
  }
  const cells = splitRow(line, COLUMNS);
  return cells.length === COLUMNS && line.split(',').length >= COLUMNS
    ? { cells, mig: undefined }
    : undefined;
}

/** "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.03  Release Build …" */
function driverFrom(version: string | undefined, listed: number | undefined, whole: boolean): DriverFacts {
  // What is not there says something only where the look came past it.
  const absent = whole ? 'the NVIDIA module is not loaded' : 'the look was cut off before it';
  const why = listed === undefined ? absent : 'the module does not tell its version';
  const number = /\b(\d{3,4}\.\d{1,3}(?:\.\d{1,3})?)\b/.exec(version ?? '')?.[1];
  return {
    version:
      version === undefined
        ? unknown(why)
        : number === undefined
          ? unknown('its version line is not known')
          : known(number),
    flavour:
      version === undefined
        ? unknown(why)
        : known(/Open Kernel Module/i.test(version) ? 'open' : 'proprietary'),
    listed: listed === undefined ? unknown(why) : known(listed),
  };
}

/** "0, 94, 66, 91.20, 2418" → by index; a cell without a number is left out, a row without any is none. */
function heatFrom(lines: readonly string[]): ReadonlyMap<number, GpuHeat> {
  return new Map(
    lines.flatMap((line) => {
      const [index, ...cells] = splitRow(line, 5);
      const at = wholeNumber(index);
      const [usePercent, celsius, watts, megahertz] = cells.map((text) =>
        /^\d{1,6}(?:\.\d{1,3})?$/.test(text) ? Number(text) : undefined,
      );
      const seen = Object.entries({ usePercent, celsius, watts, megahertz }).filter(
        ([, value]) => value !== undefined,
      );
      return at === undefined || seen.length === 0 ? [] : [[at, Object.fromEntries(seen)] as const];
    }),
  );
}

/** "GPU 0: NVIDIA H100 (UUID: GPU-…)", then "  MIG 1g.12gb Device 0: (UUID: MIG-…)" → instances by GPU. */
function instancesFrom(lines: readonly string[]): ReadonlyMap<string, Fact<readonly MigInstance[]>> {
  const found = new Map<string, MigInstance[]>();
  let gpu: MigInstance[] | undefined;
  for (const line of lines) {
    const uuid = /\(UUID: ((?:GPU|MIG)-[^)]+)\)\s*$/.exec(line)?.[1];
    if (uuid === undefined) continue;
    if (/^GPU \d+:/.test(line)) {
      gpu = [];
      found.set(uuid, gpu);
      continue;
    }
    const profile = /^\s+MIG (\S+)\s+Device/.exec(line)?.[1];
    if (profile !== undefined) gpu?.push({ profile, uuid });
  }
  return new Map([...found].map(([uuid, list]) => [uuid, known(list)]));
}

function toGpu(row: readonly string[], index: number, addressing: string | undefined, migOn: boolean): Gpu {
  const [, uuid = '', deviceId = '', total, free, driver, nameCell] = row;
  const name = printable(cell(nameCell)) || 'a GPU without a name';
  const totalBytes = mebibytes(total);
  const soldered = GB10.test(deviceId) || /\b(GB10|Thor|Orin)\b/.test(name);
  // A MIG parent shows no memory either, and GH200 is ATS with memory of its own: all three must hold.
  const unified = soldered || (totalBytes === undefined && !migOn && addressing === 'ATS');
  // One GB10 printed a total that was not its memory: for such a GPU /proc/meminfo alone counts.
  const bytes = (value: number | undefined, text: string | undefined): Fact<number> => {
    if (unified) return unknown('this GPU uses the memory of the host');
    return value === undefined
      ? unknown(`nvidia-smi says ${printable(text ?? '') || 'nothing'}`)
      : known(value);
  };
  return {
    index,
    name,
    uuid,
    unified,
    totalBytes: bytes(totalBytes, total),
    freeBytes: bytes(mebibytes(free), free),
    driver: cell(driver) || 'unknown',
    ...(unified && totalBytes !== undefined
      ? { printed: { totalBytes, freeBytes: asFact(mebibytes(free)) } }
      : {}),
  };
}

function asFact(bytes: number | undefined): Fact<number> {
  return bytes === undefined ? unknown('nvidia-smi prints no number') : known(bytes);
}

function troubleOf(
  text: string,
  code: number,
  seen: readonly Gpu[],
  listed: number | undefined,
): GpuTrouble | undefined {
  const said = smiTrouble(text, code);
  if (said !== undefined && seen.length === 0) return { ...said, seen };
  const fewer = listed !== undefined && seen.length < listed;
  const shown = fewer ? `nvidia-smi shows ${seen.length} of ${listed} GPUs` : '';
  const lost = lostGpu(text);
  if (lost !== undefined) {
    const why = [shown, printable(lost)].filter((part) => part !== '').join(': ');
    return { kind: 'lost-gpu', ...told(why, LOST), seen };
  }
  if (fewer) return { kind: 'left-out', ...told(shown, LOST), seen };
  if (seen.length > 0) return undefined;
  const first = firstLine(text);
  const why = `nvidia-smi printed no GPU (exit ${code})${first === '' ? '' : `: ${first}`}`;
  return { kind: 'unreadable', ...told(why, 'run it there and see: nvidia-smi'), seen };
}

function told(why: string, remedy: string): { readonly why: string; readonly remedy: string } {
  return { why, remedy };
}

const HANGS =
  "see what the driver says: sudo dmesg | grep -iE 'nvrm|xid'; a hung driver ends only with a restart";
const LOST = "restart the host; what the driver says of it: sudo dmesg | grep -iE 'nvrm|xid'";
