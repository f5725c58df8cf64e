import { type Fact, type Gpu, known, unknown } from '../../domain/facts.ts';
import type { Probe, ProbeOutput } from '../../domain/probe.ts';
import { cell, lostGpu, mebibytes, SMI_SH, smiTrouble, splitRow } from './nvidia-smi.ts';
import { firstLine, gaveNothing, linesOf, printable, wholeNumber } from './output.ts';

/**
 * GPUs. Few fields a call, since one that a driver does not know fails the whole call; addressing mode and MIG
 * are asked for only where they decide. The driver's own list in /proc tells when a GPU is left out.
 */
export const gpusProbe: Probe = {
  name: 'gpus',
  timeoutSeconds: 12,
  script: String.raw`${SMI_SH}
tagged() { printf '%s\n' "$2" | sed "s/^/$1 /"; }
n=0; for d in "$R/proc/driver/nvidia/gpus"/*; do [ -d "$d" ] && n=$((n + 1)); done
[ -d "$R/proc/driver/nvidia/gpus" ] && printf 'listed %s\n' "$n"
out=$(smi --query-gpu=index,uuid,pci.device_id,memory.total,memory.free,driver_version,name --format=csv,noheader,nounits); rc=$?
printf 'code %s\n' "$rc"
tagged gpu "$out"
case $out in
  *GB10* | *Thor* | *Orin*) ;;
  *N/A* | *'Not Supported'*)
    tagged addressing "$(smi --query-gpu=index,addressing_mode --format=csv,noheader)"
    tagged mig "$(smi --query-gpu=index,mig.mode.current --format=csv,noheader)" ;;
esac
`,
};

const COLUMNS = 7;

/** GB10's PCI device id begins so, whatever the name cell says. */
const GB10 = /^0x2E12/i;

/**
 * "gpu 0, GPU-…, 0x2E1210DE, [N/A], [N/A], 580.159.03, NVIDIA GB10" per line → one Gpu each; [N/A] is unknown,
 * not 0. A GPU that the driver lists and nvidia-smi leaves out makes the whole unknown: new CUDA work may then
 * fail on all of them.
 */
export function parseGpus(output: ProbeOutput | undefined): Fact<readonly Gpu[]> {
  const tagged = output ? linesOf(output.stdout) : [];
  const of = (tag: string) =>
    tagged.flatMap((line) => (line.startsWith(`${tag} `) ? [line.slice(tag.length + 1)] : []));
  const code = wholeNumber(of('code')[0]);
  if (output === undefined || code === undefined) {
    return output?.timedOut ? unknown('nvidia-smi gave no answer in time') : gaveNothing(output, 'GPUs');
  }
  const text = of('gpu').join('\n');
  const byIndex = (tag: string) =>
    new Map(
      of(tag).map((line) => {
        const [index, value] = splitRow(line, 2);
        return [index ?? '', cell(value)] as const;
      }),
    );
  const addressing = byIndex('addressing');
  const mig = byIndex('mig');
  const gpus = of('gpu').flatMap((line) => {
    const row = splitRow(line, COLUMNS);
    const index = wholeNumber(row[0]);
    if (index === undefined || row.length < COLUMNS || !/^(GPU|MIG)-/.test(row[1] ?? '')) return [];
    return [toGpu(row, index, addressing.get(String(index)), mig.get(String(index)))];
  });
  const lost = lostGpu(text);
  const listed = wholeNumber(of('listed')[0]);
  if (gpus.length === 0 || (listed !== undefined && gpus.length < listed) || lost !== undefined) {
    return unknown(whyIncomplete(text, code, gpus.length, listed, lost));
  }
  return known(gpus);
}

function toGpu(
  row: readonly string[],
  index: number,
  addressing: string | undefined,
  mig: string | undefined,
): Gpu {
  const [, uuid = '', deviceId = '', total, free, driver, nameCell] = row;
  const name = printable(cell(nameCell)) || 'a GPU without a name';
  const totalBytes = mebibytes(total);
  const soldered = GB10.test(deviceId) || /\b(GB10|Thor|Orin)\b/.test(name);
  // A MIG parent shows no memory either, and GH200 is ATS with memory of its own: all three must hold.
  const unified = soldered || (totalBytes === undefined && mig !== 'Enabled' && addressing === 'ATS');
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
  };
}

function whyIncomplete(
  text: string,
  code: number,
  seen: number,
  listed: number | undefined,
  lost: string | undefined,
): string {
  const trouble = smiTrouble(text, code);
  if (trouble !== undefined && seen === 0) return trouble;
  const shown = listed !== undefined && seen < listed ? `nvidia-smi shows ${seen} of ${listed} GPUs` : '';
  if (lost !== undefined) return [shown, printable(lost)].filter((part) => part !== '').join(': ');
  if (shown !== '') return shown;
  return `nvidia-smi printed no GPU (exit ${code})${firstLine(text) === '' ? '' : `: ${firstLine(text)}`}`;
}
