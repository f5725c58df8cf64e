import type { LabProcess } from '../processes.ts';
import { GIB } from '../story.ts';
import { bad, out, type ToolAnswer, type ToolCall } from './tool.ts';

const MIB = 2 ** 20;

/** nvidia-smi as a GB10 answers: no memory of its own, memory per process, `ATS`; or as the story has it. */
export function nvidiaSmi(call: ToolCall): ToolAnswer | Promise<ToolAnswer> {
  if (call.host.smi === 'hangs') return untilGone(call);
  return troubleOf(call) ?? answer(call);
}

/** A wedged driver: nothing comes, until somebody ends the call. */
function untilGone({ gone }: ToolCall): Promise<ToolAnswer> {
  return new Promise((resolve) => {
    const end = (): void => resolve(bad('', 137));
    if (gone.aborted) end();
    else gone.addEventListener('abort', end, { once: true });
  });
}

/** What it says instead of an answer, word for word and with its exit code. */
function troubleOf({ host }: ToolCall): ToolAnswer | undefined {
  switch (host.smi) {
    case 'version-mismatch':
      return bad(
        '',
        18,
        'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178\n',
      );
    case 'driver-not-loaded':
      return bad(
        '',
        9,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n",
      );
    case 'gpu-lost':
      return bad(
        '',
        15,
        'Unable to determine the device handle for GPU0: 000F:01:00.0: GPU is lost.  Reboot the system to recover this GPU\n',
      );
    default:
      return undefined;
  }
}

function answer(call: ToolCall): ToolAnswer {
  const options = new Map(
    call.argv.map((word) => {
      const at = word.indexOf('=');
      return at > 0 ? ([word.slice(0, at), word.slice(at + 1)] as const) : ([word, ''] as const);
    }),
  );
  const value = (name: string): string => options.get(name) ?? '';
  if (options.has('--version')) {
    return out(`${versionWords(call)}firstlight lab stand-in\n`);
  }
  if (options.has('-L') || options.has('--list-gpus')) {
    return out(`GPU 0: NVIDIA GB10 (UUID: ${call.host.gpuUuid})\n`);
  }
  const format = value('--format').split(',');
  if (options.has('--query-gpu')) {
    return query(value('--query-gpu').split(','), [gpuRow(call)], format);
  }
  const apps = options.has('--query-compute-apps') ? '--query-compute-apps' : '--query-compute-applications';
  if (options.has(apps)) {
    return query(
      value(apps).split(','),
      holders(call).map((process) => appRow(call, process)),
      format,
    );
  }
  const known = new Set(['-i', '--id', '0', '-q', '--query']);
  const unknown = call.argv.find((word) => word.startsWith('-') && !known.has(word.split('=')[0] ?? ''));
  if (unknown !== undefined) {
    return {
      ...bad('', 2, `Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n`),
    };
  }
  return out(table(call));
}

const DRIVER_610 = '610.57.04';

function driverOf({ host }: ToolCall): string {
  return host.smi === 'driver-610' ? DRIVER_610 : host.driver;
}

/** Driver 610 calls the kernel's part KMD, and says so where the old name was. */
function versionWords(call: ToolCall): string {
  const driver = driverOf(call);
  const nvml = driver.split('.').slice(0, 2).join('.');
  return call.host.smi === 'driver-610'
    ? `NVIDIA-SMI version  : ${driver}\nNVML version        : ${nvml}\nDRIVER version      : Deprecated, see "KMD version" instead\nCUDA version        : Deprecated, see "CUDA UMD version" instead\nKMD version         : ${driver}\nCUDA UMD version    : 13.3\n`
    : `NVIDIA-SMI version  : ${driver}\nNVML version        : ${nvml}\nDRIVER version      : ${driver}\nCUDA Version        : 13.0\n`;
}

/** The total that one GB10 printed, which was neither its memory nor the host's. */
const PRINTED_MIB = 95896;

type Row = Readonly<Record<string, { readonly value: string; readonly unit?: string }>>;

function query(fields: readonly string[], rows: readonly Row[], format: readonly string[]): ToolAnswer {
  const names = fields.map((field) => field.trim());
  if (!format.includes('csv')) {
    return bad('', 2, `"--format=" switch is missing. Please run 'nvidia-smi -h' for help.\n`);
  }
  const all = rows[0] ?? { ...APP_FIELDS };
  const unknown = names.find((name) => !(name in all) && !(name in APP_FIELDS));
  if (unknown !== undefined) return bad('', 2, `Field "${unknown}" is not a valid field to query.\n`);
  const units = !format.includes('nounits');
  const header = names.map((name) => {
    const shown = name === 'used_memory' ? 'used_gpu_memory' : name;
    const unit = UNITS[name];
    return unit === undefined ? shown : `${shown} [${unit}]`;
  });
  const lines = rows.map((row) =>
    names
      .map((name) => {
        const cell = row[name];
        if (cell === undefined) return '[N/A]';
        return units && cell.unit !== undefined ? `${cell.value} ${cell.unit}` : cell.value;
      })
      .join(', '),
  );
  return out(
    [...(format.includes('noheader') ? [] : [header.join(', ')]), ...lines].map((l) => `${l}\n`).join(''),
  );
}

const APP_FIELDS: Row = {
  pid: { value: '' },
  process_name: { value: '' },
  name: { value: '' },
  used_memory: { value: '' },
  used_gpu_memory: { value: '' },
  gpu_uuid: { value: '' },
  gpu_name: { value: '' },
  gpu_bus_id: { value: '' },
};

const UNITS: Readonly<Record<string, string>> = {
  used_memory: 'MiB',
  used_gpu_memory: 'MiB',
  'memory.total': 'MiB',
  'memory.used': 'MiB',
  'memory.free': 'MiB',
  'memory.reserved': 'MiB',
  'utilization.gpu': '%',
  'utilization.memory': '%',
  'power.draw': 'W',
  'power.limit': 'W',
  'clocks.sm': 'MHz',
  'clocks.current.sm': 'MHz',
  'clocks.max.sm': 'MHz',
};

function gpuRow(call: ToolCall): Row {
  const busy = call.host.gpuBusy;
  const absent = { value: '[N/A]' };
  const prints = call.host.smi === 'prints-memory';
  return {
    index: { value: '0' },
    count: { value: '1' },
    name: { value: 'NVIDIA GB10' },
    gpu_name: { value: 'NVIDIA GB10' },
    uuid: { value: call.host.gpuUuid },
    gpu_uuid: { value: call.host.gpuUuid },
    serial: absent,
    'pci.bus_id': { value: '0000000F:01:00.0' },
    gpu_bus_id: { value: '0000000F:01:00.0' },
    'pci.device_id': { value: '0x2E1210DE' },
    driver_version: { value: driverOf(call) },
    compute_cap: { value: '12.1' },
    addressing_mode: { value: 'ATS' },
    'memory.total': prints ? { value: String(PRINTED_MIB), unit: 'MiB' } : absent,
    'memory.used': prints ? { value: '0', unit: 'MiB' } : absent,
    'memory.free': prints ? { value: String(PRINTED_MIB), unit: 'MiB' } : absent,
    'memory.reserved': absent,
    'utilization.gpu': { value: busy ? '96' : '0', unit: '%' },
    'utilization.memory': absent,
    'temperature.gpu': { value: busy ? '71' : '42' },
    'power.draw': { value: busy ? '61.40' : '10.20', unit: 'W' },
    'power.limit': absent,
    'fan.speed': absent,
    pstate: { value: busy ? 'P0' : 'P8' },
    'clocks.sm': { value: busy ? '2405' : '208', unit: 'MHz' },
    'clocks.current.sm': { value: busy ? '2405' : '208', unit: 'MHz' },
    'clocks.max.sm': { value: '3003', unit: 'MHz' },
    'mig.mode.current': absent,
    'ecc.mode.current': absent,
    persistence_mode: { value: 'Enabled' },
    display_active: { value: 'Disabled' },
    timestamp: { value: new Date().toISOString() },
  };
}

function holders(call: ToolCall): readonly LabProcess[] {
  return call.host.processes.list.filter(({ pid }) => call.host.processes.gpuBytesOf(pid) > 0);
}

function appRow(call: ToolCall, process: LabProcess): Row {
  const used = {
    value: String(Math.round(call.host.processes.gpuBytesOf(process.pid) / MIB)),
    unit: 'MiB',
  };
  const name = { value: process.argv[0] ?? process.comm };
  return {
    pid: { value: String(process.pid) },
    process_name: name,
    name,
    used_memory: used,
    used_gpu_memory: used,
    gpu_uuid: { value: call.host.gpuUuid },
    gpu_name: { value: 'NVIDIA GB10' },
    gpu_bus_id: { value: '0000000F:01:00.0' },
  };
}

function table(call: ToolCall): string {
  const busy = call.host.gpuBusy;
  const memory =
    call.host.smi === 'prints-memory' ? `     0MiB / ${PRINTED_MIB}MiB`.padEnd(22) : 'Not Supported         ';
  const rule = `+${'-'.repeat(89)}+`;
  const cells = (text: string): string => `| ${text.padEnd(87)} |`;
  const columns = `+${'-'.repeat(41)}+${'-'.repeat(24)}+${'-'.repeat(22)}+`;
  const rows = holders(call).map((process) => {
    const bytes = call.host.processes.gpuBytesOf(process.pid);
    const memory = `${Math.round(bytes / MIB)}MiB`.padStart(11);
    const name = (process.argv[0] ?? process.comm).slice(0, 36).padEnd(36);
    return `|    0   N/A  N/A ${String(process.pid).padStart(15)}      C   ${name} ${memory} |`;
  });
  return [
    new Date().toUTCString(),
    rule,
    call.host.smi === 'driver-610'
      ? cells(`NVIDIA-SMI ${DRIVER_610}              KMD Version: ${DRIVER_610}     CUDA UMD Version: 13.3`)
      : cells(
          `NVIDIA-SMI ${call.host.driver}             Driver Version: ${call.host.driver}     CUDA Version: 13.0`,
        ),
    columns,
    '| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |',
    '| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |',
    '|                                         |                        |               MIG M. |',
    `|${'='.repeat(41)}+${'='.repeat(24)}+${'='.repeat(22)}|`,
    '|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |',
    `| N/A   ${busy ? 71 : 42}C    ${busy ? 'P0' : 'P8'}             ${busy ? 61 : 10}W /  N/A  | ${memory} |     ${busy ? ' 96' : '  0'}%      Default |`,
    '|                                         |                        |                  N/A |',
    columns,
    '',
    rule,
    cells('Processes:'),
    cells(' GPU   GI   CI              PID   Type   Process name                        GPU Memory'),
    cells('       ID   ID                                                               Usage'),
    `|${'='.repeat(89)}|`,
    ...(rows.length === 0 ? [cells(' No running processes found')] : rows),
    rule,
    '',
  ].join('\n');
}

/** Bytes above which the GPU is taken to be at work. */
export const BUSY_BYTES = 40 * GIB;
