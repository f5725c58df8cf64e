import { pattern, type Signature } from '../signature.ts';
import { isCompiler, KERNEL_OOM, victimOf } from './host-memory.ts';

const compilerEnded = pattern(
  [
    'died due to signal 9',
    'Killed signal terminated program',
    'Killed (program',
    'terminated with signal 9',
    'code=137',
    'code=-9',
    'out of memory allocating',
    'virtual memory exhausted',
    'LLVM ERROR: out of memory',
    'died with signal 9',
    'returned 137',
    'Error 137',
    'signal: 9',
  ],
  /'?(?<tool>\w{1,80}\+*)'? died (?:due to|with) signal 9|Killed signal terminated program (?<tool2>\S{1,300})|internal compiler error: Killed \(program (?<tool3>[^)]{1,200})\)|(?<tool4>ld|collect2).{0,400} terminated with signal 9|FAILED: ?\[code=(?:137|-9)\]|(?:cc1plus|cicc|ptxas|nvcc).{0,400}out of memory allocating|virtual memory exhausted: Cannot allocate memory|LLVM ERROR: out of memory|(?:ninja|make)\S{0,300}:.{0,400}(?:Error 137|returned 137)|\b(?:nvcc|rustc|cicc)\b.{0,400}signal: 9/,
);
const building = pattern(
  ['ninja: build stopped', 'Ninja build failed', 'Error building extension', 'nvcc -', '/nvcc ', 'bin/nvcc'],
  /ninja: build stopped|Ninja build failed|Error building extension|^\[(?<done>\d{1,20})\/(?<all>\d{1,20})\] .{0,400}(?:nvcc|c\+\+|g\+\+)/,
);
const jobs = pattern(
  ['MAX_JOBS', 'ninja -'],
  /MAX_JOBS(?:=| )(?<jobs>\d{1,20})|ninja .{0,400}-j ?(?<j>\d{1,20})/,
);

/** As many compilers as there are cores took the memory that the weights left. */
export const jitMemory: Signature = {
  name: 'jit-memory',
  causes: ['jit-compile-parallelism-oom'],
  seenOn: 'vLLM 0.23 with FlashInfer 0.6.12, June 2026; torch cpp_extension 2.7 to 2.13',
  source: 'flashinfer-ai/flashinfer#3634; nvcc and gcc drivers; ninja',
  looks: [
    "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
    'c++: fatal error: Killed signal terminated program cc1plus',
  ],
  patterns: [compilerEnded, building, jobs, KERNEL_OOM],
  match({ find }) {
    const victim = find(KERNEL_OOM).find((found) => isCompiler(victimOf(found)));
    const ended = find(compilerEnded)[0];
    const first = ended ?? victim;
    if (first === undefined) return undefined;
    const { node, groups } = first;
    const built = find(building).filter((found) => found.node === node);
    const tool =
      groups['tool'] ??
      groups['tool2'] ??
      groups['tool3'] ??
      groups['tool4'] ??
      (victim === undefined ? undefined : victimOf(victim));
    const many = find(jobs).find((found) => found.node === node);
    const count = many?.groups['jobs'] ?? many?.groups['j'];
    return {
      cause: 'jit-compile-parallelism-oom',
      node,
      shown: [first, ...(victim !== undefined && victim !== first ? [victim] : []), ...built.slice(-2)].slice(
        0,
        4,
      ),
      title: `Memory ran out on ${node} while kernels were compiled there${tool === undefined ? '' : `: ${tool} was ended by SIGKILL`}`,
      why: `${count === undefined ? 'One compiler for each core' : `${count} compilers at once`} runs, each with several GiB, in the memory that the weights already fill.`,
      advice: [
        'Set MAX_JOBS: "2" in env of the recipe, and FLASHINFER_NVCC_THREADS: "1": the build takes longer and fits.',
        'Keep the cache of compiled kernels in a volume of the recipe (FLASHINFER_WORKSPACE_BASE, ~/.cache/flashinfer), so that it is built once.',
      ],
      values: count === undefined ? {} : { jobs: count },
      confidence: ended === undefined ? 0.85 : 0.94,
      specificity: 3,
    };
  },
};
