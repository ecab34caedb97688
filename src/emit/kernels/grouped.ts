/**
 * A grouped matmul as CUDA source: its epilogue as that of any matmul, the place of a row of the left factor and the matrix that a row chooses. The
 * main loops are those of native/device/grouped_matmul.cuh.
 */
import { i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { MatmulKernel } from '../../ir/product.js'
import type { GroupedMatmul } from '../../schedule/grouped/grouped_matmul.js'
import { mapPart } from '../../schedule/map.js'
import { type MappedKernel, onlyPass } from '../../schedule/mapped.js'
import { expressionText, offsetText, type Scope, tensorOf } from '../print/expression.js'
import { createNames, storageText } from '../print/names.js'
import { epilogueBody } from '../product/epilogue.js'
import { indexTexts, noting, placed, vec } from '../product/frame.js'
import { bodyWriter, lines } from './frame.js'
import { declareNames, templateFile } from './template.js'

/** Further names of the slots. */
const reserved = 'Left Right left right matrix_of left_begin'

/** The file of an instance that is a grouped matmul. */
export function emitGrouped({ key, instance: { types } }: MappedKernel, grouped: GroupedMatmul): string {
  const kernel = asMatmul(grouped)
  const { epilogue } = grouped
  const mapped = { ...mapPart({ kernel: epilogue, types, dims: {} }), vec }
  const { program } = mapped
  if (program.kind !== 'elementwise' || program.interval !== undefined)
    throw new Error(`internal: ${kernel.name} has no elementwise epilogue`)
  const names = declareNames(kernel, createNames(mapped, reserved))
  const used = { dims: new Set<string>(), attrs: new Set<string>(), indices: new Set<string>(), tensors: new Set<string>() }
  const framed = placed(noting(names, used.tensors), indexTexts(epilogue, [...kernel.batch, kernel.m], 'row', names), used)
  const column = onlyPass(program).loop.index
  const scope: Scope = {
    names: { ...framed, first: (name) => (name === column ? 'column' : names.first(name)) },
    used,
    tensors: epilogue.tensors,
    fixed: {},
    elements: new Map(),
  }
  const body = epilogueBody(program, kernel, scope, types) + factorsBody(grouped, scope)
  const matrices = tensorOf(grouped.right.tensor, scope).dims[0] ?? ''
  const rows = grouped.rows.map((axis) => `heddle::Count(${names.dim(axis.dim)})`).join(' * ')
  const sizes = [grouped.n, grouped.k, matrices].map(names.dim).join(', ')
  return templateFile(
    { kernel, types, key },
    { names, used },
    {
      comment: `${key}: matmul main loops of native/device/grouped_matmul.cuh for rows that choose their matrix, epilogue over chunks of ${vec} columns`,
      include: 'grouped_matmul.cuh',
      slots: { name: 'Epilogue', comment: 'The epilogue of the matmul, and the choice of each row.', body },
      launch: (slots) => [`return heddle::launch_grouped_matmul(launch, error, "${key}", ${rows}, ${sizes}, ${slots});`],
      extents: [...kernel.batch, kernel.m, kernel.n].map(names.dim),
    },
    { tuned: [] },
  )
}

/** A matmul kernel with the same epilogue and parameters. Factors are read through ordinary handles, whose copies they may be. */
function asMatmul({ rows, n, k, left, right, accumulator, epilogue }: GroupedMatmul): MatmulKernel {
  const dims = rows.map((axis) => axis.dim)
  const factors = [left.tensor, right.tensor]
  const tensors = epilogue.tensors
    .filter(({ name }) => name !== accumulator)
    .map(({ constant, ...tensor }) =>
      constant === undefined || factors.includes(tensor.name) ? tensor : { ...tensor, constant },
    )
  return {
    ...epilogue,
    kind: 'matmul',
    tensors,
    batch: dims.slice(0, -1),
    m: dims.at(-1) ?? '',
    n,
    k,
    a: { tensor: left.tensor },
    products: [{ b: { tensor: right.tensor }, accumulator }],
    epilogue: { ...epilogue, tensors: [...epilogue.tensors.filter(({ name }) => name === accumulator), ...tensors] },
  }
}

/** Members of the slots' struct that find the factors of a row. */
function factorsBody({ left, right }: GroupedMatmul, scope: Scope): string {
  const { names } = scope
  const writer = bodyWriter()
  for (const [type, name, tensor] of [
    ['Left', 'left', left.tensor],
    ['Right', 'right', right.tensor],
  ] as const) {
    const storage = storageText(tensorOf(tensor, scope), names)
    writer.writeLine(`using ${type} = ${storage};`)
    writer.writeLine(
      `__host__ __device__ __forceinline__ heddle::In<${type}> ${name}() const { return ${names.tensor(tensor)}; }`,
    )
  }
  const write = (comment: string, head: string, value: string): void => {
    writer.writeLine(`/// ${comment}`)
    writer.write(`__device__ __forceinline__ ${head}([[maybe_unused]] int64_t row) const `).block(() => {
      writer.writeLine(`return ${value};`)
    })
  }
  write('The matrix that a row chooses.', 'int matrix_of', matrixText(right.matrix, scope))
  write(
    'First element of a row of the left factor.',
    'int64_t left_begin',
    offsetText(left.tensor, [...left.indices, i32(0)], scope),
  )
  return lines(writer)
}

/** A row counts in 64 bits, a matrix in 32. */
const matrixText = (matrix: Expr, scope: Scope): string => `static_cast<int>(${expressionText(matrix, scope)})`
