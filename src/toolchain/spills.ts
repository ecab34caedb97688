/** Limits on register spills, checked against the report of ptxas. */
import { findingError } from '../errors.js'
import type { KernelResources } from './ptxas.js'
import { plainName } from './symbol.js'

/**
 * Bytes that a thread may spill, by main loop. Masks and scores of an author may need a few registers more than the pipelined loop of attention
 * leaves. A window that spilled 28 bytes was measured faster with it (0.085 ms at 2,048 keys on an H200) than any loop without. A score that
 * looks up a bias for each pair spills 120 bytes with heads of 128: it adds 50 us to 67 (4 x 16 heads, 1,024 keys, f16, an H200), and 46 us to
 * 49 with heads of 64, which spill at most 64 bytes; as separate nodes the same takes 347 us.
 * The widest tile of wgmma keeps its sums in registers, and silu of quantised rows stores some of them once, after the loop.
 * Matmuls of few rows use all registers that two resident blocks leave a thread. An author's epilogue with per-row numbers (an expert's weight
 * and bias) needs up to eight more, and an operand whose elements are looked up by codes ten. With half as many pieces in flight nothing spills,
 * and 8 rows of 4096 x 4096 take 18.59 us instead of 18.69 with the spill (f16, an H200). An author's score may need eight if three blocks of
 * decode attention share a multiprocessor. Attention to computed keys and values of 192 elements uses all 255 registers of a thread, and two
 * more.
 * Spills without a time were not measured: a correct op is not refused for so little.
 */
const spillAllowed: ReadonlyMap<string, number> = new Map([
  ['attention_pipelined', 120],
  ['matmul_wgmma', 40],
  ['matmul_few', 32],
  ['matmul_products_few', 40],
  ['attention_decode_ring', 32],
  ['attention_tiles', 8],
])

/**
 * Bytes that a multi-pass kernel may spill, which processes rows of thousands of elements: two of its blocks share a multiprocessor, and nvcc
 * may unroll a pass by some registers more than that leaves. A correct op is not refused for so little.
 */
const rereadAllowed = 96

const allowedFor = (name: string): number => spillAllowed.get(name) ?? (name.endsWith('_reread') ? rereadAllowed : 0)

interface Reported {
  readonly source: string
  readonly resources: readonly KernelResources[]
}

/** Refuses a build with a spilling kernel, which accesses memory that its schedule did not plan for. @throws finding `build.spill` */
export function refuseSpills(objects: readonly Reported[]): void {
  const spills = objects.flatMap(({ source, resources }) =>
    resources
      .filter(
        ({ kernel, spillStoreBytes, spillLoadBytes }) =>
          Math.max(spillStoreBytes, spillLoadBytes) > allowedFor(plainName(kernel)),
      )
      .map(
        ({ kernel, arch, registers, spillStoreBytes, spillLoadBytes }) =>
          `${kernel} (${source}) spills on ${arch}: ${spillStoreBytes} bytes stored, ${spillLoadBytes} loaded, ${registers} registers`,
      ),
  )
  if (spills.length === 0) return
  throw findingError('build.spill', spills.join('\n'), {
    hint: 'give the kernel a schedule that keeps fewer values in registers',
  })
}
