import type { GpuTrouble } from '../../domain/facts.ts';

/**
 * sh: `smi ARGUMENTS` runs nvidia-smi under a timeout of its own, since a wedged GPU hangs it; 124 or 137 says
 * that it hung. stdout and stderr come together, as some of its errors are on the one and some on the other.
 */
export const SMI_SH = String.raw`
smi() {
  if command -v timeout >/dev/null 2>&1; then timeout -s KILL 5 nvidia-smi "$@" 2>&1; else nvidia-smi "$@" 2>&1; fi
}
`;

const DMESG = "sudo dmesg | grep -iE 'nvrm|xid'";

/** What nvidia-smi's text and exit code mean, and the way out; undefined where it said nothing that we know for an error. */
export function smiTrouble(text: string, code: number): Omit<GpuTrouble, 'seen'> | undefined {
  const is = (kind: GpuTrouble['kind'], why: string, remedy: string) => ({ kind, why, remedy });
  if (code === 124 || code === 137) {
    const remedy = `see what the driver says: ${DMESG}; a hung driver ends only with a restart`;
    return is('hangs', 'nvidia-smi gave no answer in 5 s', remedy);
  }
  if (/command not found|nvidia-smi: not found|No such file or directory/.test(text) || code === 127) {
    return is('no-tool', 'nvidia-smi is not installed', 'install the NVIDIA driver with its tools');
  }
  if (/couldn't communicate with the NVIDIA driver/.test(text)) {
    const remedy = `load it: sudo modprobe nvidia; why it does not load: ${DMESG}`;
    return is('no-driver', 'the NVIDIA driver is not loaded', remedy);
  }
  if (/Driver\/library version mismatch/.test(text)) {
    const why = 'the NVIDIA driver was updated and the host was not restarted since';
    return is('version-mismatch', why, 'restart the host');
  }
  if (/Failed to initialize NVML/.test(text)) {
    const why = /Failed to initialize NVML: ?([^\n]*)/.exec(text)?.[1]?.trim();
    return is(
      'devices-withdrawn',
      `nvidia-smi cannot reach the GPU: ${why || 'no reason given'}`,
      'inside a container: create it anew, the host itself is fine; on the host: restart it',
    );
  }
  if (/No devices were found/.test(text)) {
    const remedy = `see why it did not come up: ${DMESG}; a GB10 needs the open kernel module`;
    return is('no-devices', 'the driver is loaded and found no GPU', remedy);
  }
  if (/is not a valid field to query/.test(text)) {
    const field = /Field "([^"]*)"/.exec(text)?.[1] ?? 'a field that was asked for';
    return is('unreadable', `this nvidia-smi does not know ${field}`, 'update the NVIDIA driver');
  }
  return undefined;
}

/** A line that tells of a GPU that fell off the bus, or undefined. The rest of the answer is still good. */
export function lostGpu(text: string): string | undefined {
  return /^Unable to determine the device handle for [^\n]*/m.exec(text)?.[0]?.replace(/ +/g, ' ').trim();
}

/** `109832`, `109832 MiB` → bytes; `[N/A]`, `N/A`, `[Not Supported]`, `ERR!` and the like → undefined. */
export function mebibytes(text: string | undefined): number | undefined {
  const match = /^(\d{1,9})(?: MiB)?$/.exec(text?.trim() ?? '');
  return match?.[1] === undefined ? undefined : Number(match[1]) * 2 ** 20;
}

/** A cell's text where it is a value, '' where nvidia-smi says that it has none. */
export function cell(text: string | undefined): string {
  const value = text?.trim() ?? '';
  return /^(\[.*\]|N\/A|ERR!|Not Supported)$/.test(value) ? '' : value;
}

/** Splits a CSV row at its first commas only: the last column may hold commas, quotes and blanks itself. */
export function splitRow(line: string, columns: number): readonly string[] {
  const cells = line.split(',');
  return [...cells.slice(0, columns - 1), cells.slice(columns - 1).join(',')].map((each) => each.trim());
}
