import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseGpuLook } from '../../src/knowledge/probes/gpus.ts';
import { parseMeminfo } from '../../src/knowledge/probes/meminfo.ts';
import { readApps } from '../../src/knowledge/probes/process-reading.ts';
import { sample } from './golden.ts';
import { outputOf } from './output-of.ts';

const MIB = 2 ** 20;

/** What the gpus probe prints before its end, and what is read of it. */
function look(text: string): ReturnType<typeof parseGpuLook> {
  return parseGpuLook(outputOf(`${text}end\n`));
}

function samplesOf(folder: string, form: RegExp): readonly string[] {
  return readdirSync(new URL(`../samples/${folder}`, import.meta.url))
    .filter((name) => form.test(name))
    .map((name) => `${folder}/${name}`);
}

/** The first text between the tags behind `from`. */
function within(xml: string, ...path: readonly string[]): string {
  let rest = xml;
  for (const tag of path) rest = new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`).exec(rest)?.[1] ?? '';
  return rest.trim();
}

/** The same GPUs as the query prints them, from `nvidia-smi -q -x`. */
function rowsOf(xml: string): string {
  const gpus = [...xml.matchAll(/<gpu id=[\s\S]*?<\/gpu>/g)].map(([text]) => text);
  return gpus
    .map((gpu, at) => {
      // MIG instances have a memory of their own inside of their GPU.
      const own = gpu.replace(/<mig_devices>[\s\S]*?<\/mig_devices>/, '');
      const cells = [
        String(at),
        within(own, 'uuid') || 'GPU-0',
        `0x${within(own, 'pci', 'pci_device_id')}`,
        within(own, 'fb_memory_usage', 'total').replace(' MiB', ''),
        within(own, 'fb_memory_usage', 'free').replace(' MiB', ''),
        within(xml, 'driver_version'),
        within(own, 'mig_mode', 'current_mig').replace(/^N\/A$/, '[N/A]'),
        within(own, 'product_name'),
      ];
      return `gpu ${cells.join(', ')}\n`;
    })
    .join('');
}

describe('whole reports of nvidia-smi', () => {
  it('of a card of its own, with what is free on it', () => {
    const { gpus } = look(`listed 1\ncode 0\n${rowsOf(sample('discrete/rtx4090-qx-d535.xml'))}`);
    expect(gpus).toMatchObject({
      value: [{ unified: false, totalBytes: { value: 24564 * MIB }, freeBytes: { value: 24214 * MIB } }],
    });
    expect(gpus.known && gpus.value[0]?.mig).toBeUndefined();
    const ada = look(`listed 1\ncode 0\n${rowsOf(sample('discrete/rtx4000ada-qx-d595.xml'))}`).gpus;
    expect(ada).toMatchObject({ value: [{ name: 'NVIDIA RTX 4000 SFF Ada Generation', unified: false }] });
  });

  it('of a host with four GPUs of which one is shown', () => {
    const xml = sample('discrete/a100-host4-qx-d535.xml');
    const { gpus, driver } = look(`listed ${within(xml, 'attached_gpus')}\ncode 0\n${rowsOf(xml)}`);
    expect(gpus).toEqual({ known: false, why: 'nvidia-smi shows 1 of 4 GPUs' });
    expect(driver.trouble).toMatchObject({ kind: 'left-out', seen: [{ name: 'NVIDIA A100-SXM4-80GB' }] });
  });

  it('of a GPU that MIG has cut up, whose instances alone take work', () => {
    const xml = sample('discrete/a100-mig-qx-d510.xml');
    const { gpus } = look(`code 0\n${rowsOf(xml)}`);
    expect(gpus).toMatchObject({
      value: [{ totalBytes: { value: 40960 * MIB }, mig: { known: false } }],
    });
  });

  const listed: readonly (readonly [string, readonly string[]])[] = [
    ['h100mig', ['3g.40gb', '2g.20gb', '1g.10gb', '1g.10gb']],
    ['h200mig', ['1c.3g.71gb', '2c.3g.71gb', '2g.35gb', '1g.18gb', '1g.18gb']],
  ];
  for (const [host, profiles] of listed) {
    it(`of ${host}, with the instances that -L lists`, () => {
      const list = sample(`discrete/${host}-L.txt`).trimEnd().replace(/^/gm, 'list ');
      const uuid = 'GPU-00000000-0000-0000-0000-000000000000';
      const { gpus } = look(
        `code 0\ngpu 0, ${uuid}, 0x1, 81559, 69956, 590.48.01, Enabled, NVIDIA H100\n${list}\n`,
      );
      const mig = gpus.known ? gpus.value[0]?.mig : undefined;
      expect(mig?.known && mig.value.map(({ profile }) => profile)).toEqual(profiles);
    });
  }

  for (const path of samplesOf('discrete', /-L\.txt$/).filter((name) => !name.includes('mig'))) {
    it(`of ${path}, which lists no instance`, () => {
      const list = sample(path).trimEnd().replace(/^/gm, 'list ');
      const uuid = /UUID: (GPU-[^)]*)/.exec(list)?.[1] ?? '';
      const { gpus } = look(`code 0\ngpu 0, ${uuid}, 0x1, 100, 50, 590.1, Enabled, X\n${list}\n`);
      expect(gpus).toMatchObject({ value: [{ mig: { known: true, value: [] } }] });
    });
  }
});

describe('what the probe itself printed on a host with an H200 on which a process had 3.6 GiB', () => {
  const { gpus, driver } = parseGpuLook(outputOf(sample('h200/gpus-probe-mig-mode.txt')));
  const apps = readApps('0', ['5669, GPU-00000000-0000-0000-0000-000000000000, 3682, python3']);

  it('is a card of its own, no MIG, with the open module of the driver', () => {
    expect(gpus).toMatchObject({
      value: [
        { name: 'NVIDIA H200', unified: false, totalBytes: { value: 143771 * MIB }, driver: '580.159.04' },
      ],
    });
    expect(driver).toEqual({
      version: { known: true, value: '580.159.04' },
      flavour: { known: true, value: 'open' },
      listed: { known: true, value: 1 },
    });
  });

  it('leaves to the driver what it keeps for itself', () => {
    const [card] = gpus.known ? gpus.value : [];
    const used =
      card?.totalBytes.known && card.freeBytes.known ? card.totalBytes.value - card.freeBytes.value : 0;
    expect((used - (apps.known ? (apps.value.get(5669) ?? 0) : 0)) / MIB).toBe(623);
  });
});

describe('the table of nvidia-smi, which cuts numbers and names', () => {
  const tables = [
    ...samplesOf('discrete', /table|memNA/),
    ...samplesOf('gb10', /^table/),
    ...samplesOf('errors', /^table/),
  ];
  it('is in the samples', () => expect(tables.length).toBeGreaterThan(20));

  for (const path of tables) {
    it(`gives no number, whatever it shows: ${path}`, () => {
      const text = sample(path).trimEnd();
      const { gpus, driver } = look(`code 0\n${text.replace(/^/gm, 'gpu ')}\n`);
      expect(gpus.known).toBe(false);
      expect(driver.trouble?.seen).toEqual([]);
      const apps = readApps('0', text.split('\n'));
      expect(apps.known ? [...apps.value] : []).toEqual([]);
    });
  }

  it('tells of the GPU that fell off the bus, and of those that are left', () => {
    const text = sample('errors/table-4gpu-one-lost-d610.assembled.txt');
    const [message = ''] = text.split('\n');
    const left = [0, 2, 3]
      .map((at) => `gpu ${at}, GPU-${at}, 0x1, 97887, 9437, 610.57.04, [N/A], NVIDIA RTX PRO 6000\n`)
      .join('');
    const { gpus, driver } = look(`listed 4\ncode 0\ngpu ${message}\n${left}`);
    expect(gpus).toEqual({
      known: false,
      why: 'nvidia-smi shows 3 of 4 GPUs: Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error',
    });
    expect(driver.trouble?.kind).toBe('lost-gpu');
    expect(driver.trouble?.seen.map(({ index }) => index)).toEqual([0, 2, 3]);
    expect(driver.trouble?.remedy).toContain('restart the host');
  });
});

describe('what the driver says without nvidia-smi', () => {
  const version = (flavour: string) =>
    `version NVRM version: NVIDIA UNIX ${flavour}  580.159.03  Release Build  (dvs-builder@U22)\n`;
  it('tells the open module from the proprietary one, which a GB10 does not work with', () => {
    const open = look(
      `listed 1\n${version('Open Kernel Module for aarch64')}code 6\ngpu No devices were found\n`,
    );
    expect(open.driver).toMatchObject({
      version: { value: '580.159.03' },
      flavour: { value: 'open' },
      trouble: { kind: 'no-devices' },
    });
    const closed = look(`listed 1\n${version('aarch64 Kernel Module')}code 137\ngpu \n`);
    expect(closed.driver).toMatchObject({ flavour: { value: 'proprietary' }, trouble: { kind: 'hangs' } });
  });

  it('keeps what it told where nvidia-smi hangs for good', () => {
    const told = parseGpuLook(
      outputOf(`listed 1\n${version('Open Kernel Module for x86_64')}`, { timedOut: true }),
    );
    expect(told).toMatchObject({
      gpus: { known: false, why: 'nvidia-smi gave no answer in time' },
      driver: { listed: { value: 1 }, version: { known: true }, trouble: { kind: 'hangs' } },
    });
    const cut = { known: false, why: 'the look was cut off before it' };
    expect(parseGpuLook(outputOf('', { timedOut: true })).driver).toMatchObject({
      version: cut,
      flavour: cut,
      listed: cut,
    });
    const none = { known: false, why: 'the NVIDIA module is not loaded' };
    expect(look('code 127\ngpu nvidia-smi: command not found\n').driver).toMatchObject({ listed: none });
  });

  const kinds: readonly (readonly [string, number, string])[] = [
    ['command-not-found.txt', 127, 'no-tool'],
    ['driver-not-loaded.txt', 9, 'no-driver'],
    ['nvml-driver-library-mismatch.txt', 18, 'version-mismatch'],
    ['nvml-unknown-error-in-container.txt', 255, 'devices-withdrawn'],
    ['no-devices.txt', 0, 'no-devices'],
  ];
  for (const [file, code, kind] of kinds) {
    it(`${file} is ${kind}, with a way out`, () => {
      const text = sample(`errors/${file}`).trimEnd().replace(/^/gm, 'gpu ');
      const { trouble } = look(`code ${code}\n${text}\n`).driver;
      expect(trouble).toMatchObject({ kind, seen: [] });
      expect(trouble?.remedy).not.toBe('');
    });
  }

  it('a GB10 that prints a total is unified all the same, and what it printed is kept to be told', () => {
    const { gpus } = look('code 0\ngpu 0, GPU-1, 0x2E1210DE, 95896, 95896, 580.95.05, [N/A], NVIDIA GB10\n');
    expect(gpus).toMatchObject({
      value: [
        {
          unified: true,
          totalBytes: { known: false },
          printed: { totalBytes: 95896 * MIB, freeBytes: { value: 95896 * MIB } },
        },
      ],
    });
  });
});

describe('the kernel’s lines', () => {
  const linesOf = (file: string, more = '') => {
    const memory = parseMeminfo(outputOf(sample(`sys/${file}`) + more));
    if (!memory.known || memory.value.lines === undefined) throw new Error('no lines');
    return memory.value.lines;
  };

  it('that are not listed are unknown, never 0', () => {
    const lines = linesOf('meminfo-gb10-A-121.7GiB.txt');
    expect(lines.cachedBytes).toEqual({ known: false, why: 'meminfo lists no Cached' });
    expect(lines.swapFreeBytes).toEqual({ known: true, value: 10853772 * 1024 });
    expect(linesOf('meminfo-gb10-C-pagecache-full-swap-exhausted.txt')).toMatchObject({
      swapFreeBytes: { known: true, value: 0 },
      swapTotalBytes: { known: false },
    });
  });

  it('show the kernel that reserves memory and does not count it', () => {
    const bad = linesOf('meminfo-gb10-E-kernel-7.0.0-1019-signature.txt');
    expect([bad.cmaTotalBytes, bad.cmaFreeBytes]).toEqual([
      { known: true, value: 0 },
      { known: true, value: 220924 * 1024 },
    ]);
  });

  it('come with how long work stood still, and without where the kernel keeps no count', () => {
    const lines = linesOf('meminfo-gb10-A-121.7GiB.txt', sample('sys/pressure-memory.txt'));
    expect(lines.pressure).toEqual({
      known: true,
      value: { some10: 16.2, some60: 4.1, full10: 14.23, full60: 3.6 },
    });
    expect(linesOf('meminfo-gb10-A-121.7GiB.txt').pressure.known).toBe(false);
  });
});

describe('memory of which nvidia-smi tells a part', () => {
  it('is not known, neither of a process over GPUs nor as nothing', () => {
    const apps = readApps('0', [
      '7, GPU-a, 100, x',
      '7, GPU-b, [N/A], x',
      '8, GPU-a, 50, y',
      '8, GPU-b, 50, y',
    ]);
    expect(apps).toEqual({
      known: true,
      value: new Map([
        [7, undefined],
        [8, 100 * MIB],
      ]),
    });
    // The same process as C and as G on one GPU is one: the row that tells counts.
    const twice = readApps('0', ['7, GPU-a, [N/A], x', '7, GPU-a, 100, x']);
    expect(twice.known && twice.value.get(7)).toBe(100 * MIB);
  });
});
