/** Signatures of kernel functions: template parameters, launch bounds and leading parameters, by those who run a share of the work. */
import { dtypeInfo } from '../../ir/dtype.js'
import { resolveDType } from '../../ir/instance.js'
import type { Walk } from '../../loop/ir.js'
import { launchedVersion } from '../../loop/kernel_loops.js'
import { rowStatementOf } from '../../schedule/constructs/index.js'
import { hasSections } from '../../schedule/divided/divided_program.js'
import { heldLoads } from '../../schedule/divided/held_loads.js'
import type { ElementwiseProgram, MappedKernel, RowProgram } from '../../schedule/mapped.js'
import { type Body, functionName } from './frame.js'

/** A kernel function without its body. */
type Signature = Omit<Body, 'body'>

export function signatureOf(mapped: MappedKernel, walk: Walk): Signature {
  const { program } = mapped
  switch (program.kind) {
    case 'elementwise':
      return program.staging === undefined
        ? elementwise(mapped, program)
        : {
            comment: 'A block computes a tile, whose strided loads go through shared memory.',
            template: 'template <class Shape, int VEC>',
            bounds: 'Shape::threads, 1',
            first: [],
            name: functionName(mapped, 'tiled'),
          }
    case 'rows':
      return rows(mapped, program, walk)
    case 'columns':
      return {
        comment: 'A thread reduces VEC neighbouring columns of its rows.',
        template: 'template <class Team>',
        bounds: 'Team::threads, 1',
        ...(hasSections(program)
          ? {
              first: ['[[maybe_unused]] const heddle::Out<float> left', '[[maybe_unused]] const heddle::Out<int> arrived'],
            }
          : heldLoads(program).length > 0
            ? { first: ['const bool holds'] }
            : {}),
        name: functionName(mapped, walk),
      }
    case 'totals':
      return {
        comment: 'Teams combine the chunks of a tensor. One that is ALONE, or the last of several, computes the outputs.',
        template: 'template <class Team, bool ALONE>',
        bounds: 'heddle::total_threads, 2',
        first: [
          'const int64_t rows',
          'const int64_t chunks',
          'const int parts',
          '[[maybe_unused]] const heddle::Out<float> sums',
          '[[maybe_unused]] const heddle::Out<int> arrived',
        ],
        name: functionName(mapped, walk),
      }
  }
}

const elementwise = (mapped: MappedKernel, { threads, blocks = 1 }: ElementwiseProgram): Signature => ({
  comment: 'Each thread computes one chunk of VEC elements.',
  template: mapped.generic === true ? 'template <int VEC, int THREADS>' : '',
  bounds: mapped.generic === true ? 'THREADS, 1' : `${threads}, ${blocks}`,
  name: functionName(mapped, 'single'),
})

/** Row programs are templates over the team: one keeps rows in registers, one reads them again. */
function rows(mapped: MappedKernel, program: RowProgram, walk: Walk): Signature {
  const own = launchedVersion(mapped, walk) === undefined ? '' : ', bool WHOLE'
  const width = mapped.generic === true ? ', int VEC' : own
  const name = functionName(mapped, walk)
  if (walk === 'kept')
    return {
      comment: 'Row values stay in registers: CHUNKS chunks of VEC elements a lane.',
      template: `template <class Team, int CHUNKS${width}>`,
      bounds: 'Team::threads, 1',
      name,
    }
  return {
    comment: 'Any row length: every pass reads and computes the row values it needs again.',
    template: `template <class Team${width}>`,
    bounds: `Team::threads, ${rereadBlocks(mapped, program)}`,
    name,
  }
}

/** Registers per thread if two blocks of a reread program share a multiprocessor, less those for addresses. */
const sharedRegisters = 56

/** Blocks of a reread program per multiprocessor: two, unless one chunk of every tensor, or a search, takes too many registers. */
function rereadBlocks({ instance: { kernel, types }, vec }: MappedKernel, { reread }: RowProgram): 1 | 2 {
  if (reread.some((step) => step.kind !== 'pass' && rowStatementOf(step).searches)) return 1
  const bytes = kernel.tensors.reduce((sum, { dtype }) => sum + vec * dtypeInfo[resolveDType(dtype, types)].bytes, 0)
  return bytes / dtypeInfo.f32.bytes > sharedRegisters ? 1 : 2
}
