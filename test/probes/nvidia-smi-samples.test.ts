import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseGpus } from '../../src/knowledge/probes/gpus.ts';
import { readApps } from '../../src/knowledge/probes/process-reading.ts';
import { expectGolden, sample } from './golden.ts';
import { outputOf } from './output-of.ts';
import { answer, readTable } from './smi-table.ts';

const GPU_FIELDS = [
  'index',
  'uuid',
  'pci.device_id',
  'memory.total',
  'memory.free',
  'driver_version',
  'mig.mode.current',
  'name',
];
const APP_FIELDS = ['pid', 'gpu_uuid', 'used_gpu_memory', 'process_name'];
const FILL = { uuid: 'GPU-00000000-0000-0000-0000-000000000000', gpu_uuid: 'GPU-0', name: 'NVIDIA GB10' };

/** Samples that were taken without a header, with the fields that were asked for. */
const HEADERS: Readonly<Record<string, readonly string[]>> = {
  'gb10/query-gpu-name-cc-driver-mem-d580.159.noheader.csv': [
    'name',
    'compute_cap',
    'driver_version',
    'memory.total',
  ],
  'gb10/query-gpu-name-mem3-driver-d580.159.noheader-nounits.csv': [
    'name',
    'memory.total',
    'memory.used',
    'memory.free',
    'driver_version',
  ],
  'gb10/query-gpu-15fields.noheader-nounits.csv': ['name', 'memory.total', 'compute_cap'],
  'gb10/query-gpu-devid-cc-addressing-util-power-temp.noheader-nounits.csv': [
    'pci.device_id',
    'compute_cap',
    'addressing_mode',
  ],
  'gb10/compute-apps-sglang.noheader-nounits.csv': ['pid', 'process_name', 'used_gpu_memory'],
};

/** The GPUs of a probe that came to its end and printed this before. */
function gpusFrom(stdout: string): ReturnType<typeof parseGpus> {
  return parseGpus(outputOf(`${stdout}end\n`));
}

function samplesNamed(form: RegExp): readonly string[] {
  return ['gb10', 'discrete'].flatMap((folder) =>
    readdirSync(new URL(`../samples/${folder}`, import.meta.url))
      .filter((file) => form.test(file))
      .map((file) => `${folder}/${file}`),
  );
}

/** What the gpus probe prints on the host of that sample. */
function gpusOutput(path: string): string {
  const table = readTable(sample(path), HEADERS[path]);
  const rows = (tag: string, fields: readonly string[], fill: Readonly<Record<string, string>>) =>
    answer(table, fields, fill)
      .trimEnd()
      .split('\n')
      .map((line) => `${tag} ${line}\n`)
      .join('');
  const asked = /\[N\/A\], \[N\/A\], /.test(answer(table, GPU_FIELDS, FILL));
  return [
    'code 0\n',
    rows('gpu', GPU_FIELDS, FILL),
    asked ? rows('addressing', ['index', 'addressing_mode'], { addressing_mode: 'ATS' }) : '',
  ].join('');
}

describe('GPUs as nvidia-smi told them', () => {
  for (const path of samplesNamed(/query-gpu/)) {
    it(`reads ${path}`, () => {
      expectGolden(`gpus.${path.replace(/^.*\//, '')}`, gpusFrom(gpusOutput(path)));
    });
  }

  it('reads two H200 from the forms recorded on one', () => {
    const [, header = '', ...rows] = sample('h200/nvidia-smi-all-forms.txt')
      .split('\n')
      .slice(
        sample('h200/nvidia-smi-all-forms.txt')
          .split('\n')
          .findIndex((line) => line.includes('--query-gpu')),
      );
    const table = readTable([header, ...rows.filter((line) => /^\d, NVIDIA/.test(line))].join('\n'));
    const text = answer(table, GPU_FIELDS, FILL).replace(/^/gm, 'gpu ').replace(/gpu $/, '');
    const gpus = gpusFrom(`listed 2\ncode 0\n${text}`);
    expect(gpus).toMatchObject({
      known: true,
      value: [
        {
          index: 0,
          unified: false,
          totalBytes: { value: 143771 * 2 ** 20 },
          freeBytes: { value: 143156 * 2 ** 20 },
        },
        { index: 1, name: 'NVIDIA H200', driver: '580.159.04' },
      ],
    });
  });

  it('reads what the probe itself printed on a host with an H200 on which 3 GiB were taken', () => {
    expect(gpusFrom(sample('h200/gpus-probe.txt'))).toMatchObject({
      value: [{ name: 'NVIDIA H200', unified: false, freeBytes: { value: 139558 * 2 ** 20 } }],
    });
  });

  const row = (memory: string, name: string, device = '0x000010DE', mig = '[N/A], ') =>
    `code 0\ngpu 0, GPU-1, ${device}, ${memory}, ${memory}, 580.1, ${mig}${name}\n`;
  const unified = (text: string) => {
    const gpus = gpusFrom(text);
    return gpus.known ? gpus.value[0]?.unified : gpus.why;
  };

  it('calls memory shared by name, by device, or when total, addressing and MIG all say so', () => {
    expect(unified(row('[N/A]', 'NVIDIA GB10'))).toBe(true);
    expect(unified(row('[N/A]', '[N/A]', '0x2E1210DE'))).toBe(true);
    expect(unified(row('[N/A]', 'NVIDIA Thor'))).toBe(true);
    expect(unified(`${row('[N/A]', 'NVIDIA X1')}addressing 0, ATS\n`)).toBe(true);
  });

  it('takes no N/A for shared memory by itself', () => {
    expect(unified(`${row('[N/A]', 'NVIDIA RTX PRO 6000', '0x1', 'Enabled, ')}addressing 0, HMM\n`)).toBe(
      false,
    );
    expect(unified(`${row('[N/A]', 'NVIDIA B300', '0x1', 'Enabled, ')}addressing 0, ATS\n`)).toBe(false);
    expect(unified(`${row('97871', 'NVIDIA GH200 480GB')}addressing 0, ATS\n`)).toBe(false);
    const old = sample('errors/invalid-field.txt').trim();
    expect(unified(`${row('[N/A]', 'NVIDIA X1')}addressing ${old}\n`)).toBe(false);
  });

  it('believes no total that a GB10 prints', () => {
    const gpus = gpusFrom(row('95896', 'NVIDIA GB10'));
    expect(gpus).toMatchObject({ value: [{ unified: true, totalBytes: { known: false } }] });
  });

  it('keeps commas and quotes in a name', () => {
    expect(gpusFrom(row('100', 'NVIDIA "X", the 2nd'))).toMatchObject({
      value: [{ name: 'NVIDIA "X", the 2nd' }],
    });
  });
});

describe('processes as nvidia-smi told them', () => {
  for (const path of samplesNamed(/compute-apps/)) {
    it(`reads ${path}`, () => {
      const lines = answer(readTable(sample(path), HEADERS[path]), APP_FIELDS, FILL)
        .trimEnd()
        .split('\n');
      const apps = readApps('0', lines);
      expectGolden(`apps.${path.replace(/^.*\//, '')}`, apps.known ? [...apps.value] : apps);
    });
  }

  it('counts a pid once that comes as C and as G, and adds it up over GPUs', () => {
    const shape = sample('gb10/qx-processes-shape.xml');
    const rows = [...shape.matchAll(/<pid>(\d+)<[\s\S]*?<process_name>(.*?)<[\s\S]*?<used_memory>(.*?)</g)];
    const apps = readApps(
      '0',
      rows.map(([, pid, name, memory]) => `${pid}, GPU-1, ${memory}, ${name}`),
    );
    expect(apps.known && [...apps.value]).toEqual([
      [2804, 18 * 2 ** 20],
      [3060, 6 * 2 ** 20],
      [5021, 20434 * 2 ** 20],
      [6012, undefined],
    ]);
    const two = readApps('0', ['7, GPU-1, 100, a', '7, GPU-2, 50, a', '7, GPU-2, 60, a']);
    expect(two.known && two.value.get(7)).toBe(160 * 2 ** 20);
  });

  it('reads hostile names as names', () => {
    const apps = readApps('0', ['7, GPU-1, 100, a, b "c", 9, GPU-1, 5', 'and a second line, of it']);
    expect(apps.known && [...apps.value]).toEqual([[7, 100 * 2 ** 20]]);
  });

  it('says why it may not name processes', () => {
    const [, line = ''] = sample('errors/compute-apps-insufficient-permissions.csv').split('\n');
    expect(readApps('0', [line.split(', ').slice(1).join(', ')])).toEqual({
      known: false,
      why: 'nvidia-smi may not name the processes on this GPU',
    });
  });
});

describe('errors of nvidia-smi are told apart', () => {
  const cases: readonly (readonly [string, number, string])[] = [
    ['command-not-found.txt', 127, 'nvidia-smi is not installed'],
    ['driver-not-loaded.txt', 9, 'the NVIDIA driver is not loaded'],
    [
      'nvml-driver-library-mismatch.txt',
      18,
      'the NVIDIA driver was updated and the host was not restarted since',
    ],
    ['nvml-unknown-error-in-container.txt', 255, 'nvidia-smi cannot reach the GPU: Unknown Error'],
    ['no-devices.txt', 6, 'the driver is loaded and found no GPU'],
    ['no-devices.txt', 0, 'the driver is loaded and found no GPU'],
    ['invalid-field.txt', 2, 'this nvidia-smi does not know addressing_mode'],
  ];
  for (const [file, code, why] of cases) {
    it(`${file} with exit ${code}`, () => {
      const text = sample(`errors/${file}`).trimEnd();
      const said = text.replace(/^/gm, 'gpu ');
      expect(gpusFrom(`code ${code}\n${said}\n`)).toEqual({ known: false, why });
      expect(readApps(String(code), text.split('\n'))).toEqual({ known: false, why });
    });
  }

  it('takes 137 of the timeout for a hang, and no code at all for a hang of the whole', () => {
    expect(gpusFrom('code 137\ngpu \n')).toEqual({
      known: false,
      why: 'nvidia-smi gave no answer in 5 s',
    });
    expect(parseGpus(outputOf('', { timedOut: true }))).toEqual({
      known: false,
      why: 'nvidia-smi gave no answer in time',
    });
    expect(readApps(undefined, [])).toEqual({ known: false, why: 'nvidia-smi gave no answer in time' });
  });

  for (const file of ['gpu-is-lost.txt', 'gpu-is-lost-newer.txt']) {
    it(`${file}: one GPU fell off the bus, and the rest still prints`, () => {
      const rows =
        'gpu 0, GPU-a, 0x1, 97887, 9000, 610.1, NVIDIA RTX\ngpu 2, GPU-c, 0x1, 97887, 9000, 610.1, NVIDIA RTX\n';
      const gpus = gpusFrom(`listed 3\ncode 0\ngpu ${sample(`errors/${file}`).trim()}\n${rows}`);
      expect(gpus).toMatchObject({ known: false });
      expect(!gpus.known && gpus.why).toMatch(
        /^nvidia-smi shows 2 of 3 GPUs: Unable to determine .* GPU is lost\. Reboot/,
      );
    });
  }

  it('notices a GPU that is left out without a word', () => {
    const gpus = gpusFrom('listed 2\ncode 0\ngpu 0, GPU-a, 0x1, 97887, 9000, 610.1, NVIDIA RTX\n');
    expect(gpus).toEqual({ known: false, why: 'nvidia-smi shows 1 of 2 GPUs' });
  });
});
