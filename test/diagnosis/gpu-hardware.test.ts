import { describe, expect, it } from 'vitest';
import { answerTo, readHealthy } from './corpus.ts';

const HEALTHY = new Map(readHealthy());
const healthy = (name: string, log = 'head'): string => String(HEALTHY.get(name)?.[log]);
const loading = (name: string, log = 'head'): string => {
  const text = healthy(name, log);
  return text
    .slice(0, text.search(/Application startup complete|The server is fired up/))
    .replace(/[^\n]*$/, '');
};

/** The kernel's words of a GPU that failed, as drivers 570 and 580 print them. */
const XIDS = [
  "[ 8123.417702] NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n[ 8123.417710] NVRM: GPU 000f:01:00.0: GPU has fallen off the bus.\n",
  'Nov 29 10:04:00 spark-a kernel: NVRM: Xid (PCI:0000:0a:00): 48, pid=4821, name=VLLM::EngineCor, DBE (double bit error) at 0x000000001bad0000 on SM\nNov 29 10:04:00 spark-a kernel: NVRM: Xid (PCI:0000:0a:00): 63, pid=4821, name=VLLM::EngineCor, Row Remapper: New row marked for remapping\n',
  '[Sat Nov 29 10:04:00 2025] NVRM: Xid (PCI:0000:44:00): 94, pid=4821, name=python3, Contained: SM (0x1). RST: No, D-RST: No\n',
];
/** What the rank says of it; CUDA reports it at the next call. */
const ERRORS = [
  'torch.AcceleratorError: CUDA error: an illegal memory access was encountered',
  'torch.AcceleratorError: CUDA error: unspecified launch failure',
  'torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered',
  'RuntimeError: CUDA error: unknown error',
  'torch.AcceleratorError: CUDA error: an illegal instruction was encountered',
  'torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.hpp:328, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9',
  'RuntimeError: No CUDA GPUs are available',
];

const all = XIDS.flatMap((kernel) => ERRORS.map((error) => [kernel, error] as const));

describe('a GPU that fails by itself', () => {
  it.each(all)('is the cause, not the kernel it crashed: %s / %s', (kernel, error) => {
    const head = `${loading('vllm-single')}(EngineCore pid=12) ERROR 05-05 10:04:01 [core.py:900] ${error}\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n`;
    for (const logs of [{ head, 'head-dmesg': kernel }, { head, dmesg: kernel }, { head: head + kernel }]) {
      const said = answerTo(logs);
      expect(said).toMatchObject({ cause: 'gpu-hardware-fault', family: 'L', atFault: 'head' });
      expect(said.confidence).toBeGreaterThan(0.9);
      expect(said.finding?.quotes.map(({ text }) => text).join('\n')).toContain('Xid');
      expect(said.finding?.quotes.map(({ text }) => text).join('\n')).toContain(error);
      expect(said.finding?.alternatives?.map(({ cause }) => cause) ?? []).not.toContain(
        'experimental-kernel-crash',
      );
    }
  });

  it.each(XIDS)('is the worker’s where its kernel said it: %s', (kernel) => {
    const worker = `${healthy('vllm-pair', 'worker')}(Worker_TP1 pid=31) ERROR 11-29 10:04:01 [multiproc_executor.py:800] torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n`;
    const head = `${loading('vllm-pair')}[rank0]:[E1129 10:04:03.114 ProcessGroupNCCL.cpp:690] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n`;
    for (const name of ['worker-dmesg', 'dmesg'])
      expect(answerTo({ head, worker, [name]: kernel })).toMatchObject({
        cause: 'gpu-hardware-fault',
        atFault: 'worker',
      });
  });

  it('is told by the engine’s own word where no kernel log is there', () => {
    const head = `${loading('vllm-single')}(EngineCore pid=12) ERROR 05-05 10:04:01 [core.py:900] torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n`;
    expect(answerTo({ head })).toMatchObject({ cause: 'gpu-hardware-fault', atFault: 'head' });
  });

  it('says what to do: power and seat for the bus, rows for the memory', () => {
    const head = `${loading('vllm-single')}(EngineCore pid=12) ERROR 05-05 10:04:01 [core.py:900] ${ERRORS[1]}\n`;
    const advice = (kernel: string | undefined): string =>
      answerTo({ head, 'head-dmesg': kernel ?? '' }).finding?.advice.join(' ') ?? '';
    expect(advice(XIDS[0])).toMatch(/power/);
    expect(advice(XIDS[1])).toMatch(/ROW_REMAPPER/);
  });

  it.each([
    'NVRM: Xid (PCI:0000:0a:00): 31, pid=4821, name=python3, Ch 00000008, MMU Fault: ENGINE GRAPHICS',
    'NVRM: Xid (PCI:0000:0a:00): 13, pid=4821, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 0)',
    'NVRM: Xid (PCI:0000:0a:00): 43, pid=4821, name=python3, Ch 00000010',
    'NVRM: Xid (PCI:0000:0a:00): 63, pid=4821, name=python3, Row Remapper: New row marked for remapping',
  ])('is not what a program did: %s', (kernel) => {
    const head = `${loading('vllm-single')}(EngineCore pid=12) ERROR 05-05 10:04:01 [core.py:900] ${ERRORS[0]}\n`;
    expect(answerTo({ head, 'head-dmesg': `${kernel}\n` }).cause).toBe('experimental-kernel-crash');
  });

  it('has nothing to do with a wrong build, or with too little memory', () => {
    const with48 = (error: string): string =>
      answerTo({
        head: `${loading('vllm-single')}(EngineCore pid=12) ERROR 05-05 10:04:01 [core.py:900] ${error}\n`,
        'head-dmesg': XIDS[1] ?? '',
      }).cause;
    expect(
      with48('torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device'),
    ).toBe('kernels-not-built-for-sm121');
    expect(
      with48('RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests.'),
    ).toBe('too-many-sequences-for-memory');
  });

  it('is no fault of a service that serves all the same', () => {
    expect(answerTo({ head: healthy('vllm-single'), 'head-dmesg': XIDS[1] ?? '' }).cause).toBe('no-fault');
  });
});
