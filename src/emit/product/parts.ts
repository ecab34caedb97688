/**
 * Partial results that a matmul keeps for each group of columns, as CUDA source. The elements of a chunk are computed again in the form that the
 * reductions need, and combined by the four threads that hold the group.
 */
import type CodeBlockWriter from 'code-block-writer'
import { column, groupedOf } from '../../fuse/product/partials.js'
import { dim, index as indexVar } from '../../ir/build.js'
import type { Kernel, StmtOf, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { type MatmulKernel, partColumns } from '../../ir/product.js'
import { substitute } from '../../ir/walk.js'
import { mapPart } from '../../schedule/map.js'
import { onlyPass } from '../../schedule/mapped.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass } from '../kernels/steps.js'
import type { TemplateInstance } from '../kernels/template.js'
import type { PassContext } from '../print/context.js'
import { expressionText, monoidText, offsetText, type Scope } from '../print/expression.js'
import { type Names, scalarText } from '../print/names.js'
import { noOwn } from '../print/user_monoids.js'
import { inWholeChunks, productText, sumText } from './epilogue.js'
import { indexTexts, placed, vec } from './frame.js'

type Group = NonNullable<ReturnType<typeof groupedOf>>

/** Names of the tensor and of the registers that receive the elements of a reduction. */
interface Kept {
  readonly tensor: string
  readonly values: string
}

/** Member of the slots' struct that keeps partial results; a kernel without any only states that there are none. */
export function partsBody(kernel: MatmulKernel, scope: Scope, types: TemplateInstance['types']): string {
  const { partials, products, batch, m } = kernel
  const flag = `  static constexpr bool PARTS = ${partials !== undefined};\n`
  if (partials === undefined) return flag
  const { names } = scope
  const groups = partials.body.map((stmt, i) => {
    const grouped = groupedOf(stmt)
    if (grouped === undefined) throw new Error(`internal: ${kernel.name} keeps a result that is no reduction over columns`)
    const kept = { tensor: names.fresh(`part_${i}`), values: names.fresh(`values_${i}`) }
    return { ...grouped, kept }
  })
  const framed = placed(names, indexTexts(partials, [...batch, m], 'row', names), scope.used)
  const writer = bodyWriter(2)
  writeElements(writer, { kernel, partials, groups, framed, scope, types })
  const beyond = names.fresh('beyond')
  for (const group of groups) writeKept(writer, group, { kernel, partials, framed, scope, beyond })
  const head = bodyWriter()
  head.writeLine(
    `/// Keeps folds over ${partColumns} columns, called together by the four threads that hold them, whether their columns exist or not.`,
  )
  const count = products.length === 1 ? '' : `[${products.length}]`
  const product = `const ${sumText(kernel, types, { ...scope, tensors: kernel.epilogue.tensors })} (&product)${count}[VEC]`
  head.write(`__device__ __forceinline__ void keep_parts(int64_t row, int column, int valid, ${product}) const `)
  return `${flag}${lines(head).trimEnd()} {\n${lines(writer)}  }\n`
}

interface Site {
  readonly kernel: MatmulKernel
  readonly partials: Kernel
  /** Names of a row and its indices. */
  readonly framed: Names
  readonly scope: Scope
}

/** Writes the pass that computes the elements of a chunk into registers. */
function writeElements(
  writer: CodeBlockWriter,
  {
    kernel,
    partials,
    groups,
    framed,
    scope,
    types,
  }: Site & { readonly groups: readonly (Group & { readonly kept: Kept })[]; readonly types: TemplateInstance['types'] },
): void {
  const accumulators = kernel.products.map(({ accumulator }) => accumulator)
  const kept = groups.map((group) => group.kept)
  const axes = partials.tensors.find(({ name }) => accumulators.includes(name))?.dims ?? []
  const elements = asElements(partials, groups, kept, [...axes.slice(0, -1), kernel.n])
  const { program } = mapPart({ kernel: elements, types, dims: {} })
  if (program.kind !== 'elementwise')
    throw new Error(`internal: ${kernel.name} keeps partial results of a program that is not elementwise`)
  const pass = inWholeChunks(onlyPass(program))
  const inFrame: Names = {
    ...framed,
    tensor: (name) => (kept.some(({ tensor }) => tensor === name) ? name : scope.names.tensor(name)),
    first: (name) => (name === pass.loop.index ? 'column' : scope.names.first(name)),
  }
  const context: PassContext = {
    ...scope,
    ...{ tensors: elements.tensors, elements: new Map(), shared: new Map(), names: inFrame, writer },
    ...{ walk: 'single', ownName: noOwn, widths: [vec], mayBeEmpty: true },
  }
  const isProduct = (row: Pass['rows'][number]) => row.kind === 'loaded' && accumulators.includes(row.load.tensor)
  for (const row of pass.rows) {
    if (row.kind === 'loaded' && isProduct(row)) context.elements.set(row.name, productText(kernel, row.load.tensor, 'i'))
  }
  for (const step of program.steps) {
    if (step.kind === 'let')
      writer.writeLine(`const ${scalarText[step.type]} ${inFrame.value(step.name)} = ${expressionText(step.value, context)};`)
  }
  for (const { reduction, kept: own } of groups) {
    const type = scalarText[reduction.value.type]
    writer.writeLine(`${type} ${own.values}[VEC];`)
    writer.writeLine(`const heddle::KeptChunk<VEC, ${type}> ${own.tensor}{${own.values}};`)
  }
  writePass({ ...pass, rows: pass.rows.filter((row) => !isProduct(row)) }, context)
}

/** Name of the variable for the place of a group in its row. */
const group = 'group of columns'

/** Writes the combination of a group's elements, and its store. */
function writeKept(
  writer: CodeBlockWriter,
  { store, reduction, end, kept }: Group & { readonly kept: Kept },
  { kernel, partials, framed, scope, beyond }: Site & { readonly beyond: string },
): void {
  const offsetAt = (place: string): string => {
    const at = { ...framed, value: (name: string) => (name === group ? place : framed.value(name)) }
    return offsetText(store.tensor, [...store.rows, indexVar(group)], { ...scope, tensors: partials.tensors, names: at })
  }
  const own = `column / ${partColumns}`
  const monoid = monoidText(reduction.monoid, reduction.value.type)
  const count = expressionText(store.length, { ...scope, names: framed })
  const tensor = scope.names.tensor(store.tensor)
  // A tensor may have room for fewer groups than there are, or for more: those beyond the columns hold the neutral element.
  writer.writeLine(
    `heddle::keep_part<${monoid}>(${tensor}, ${offsetAt(`(${own})`)}, column, ${own} < ${count} ? valid : 0, ${kept.values});`,
  )
  if (end === undefined) return
  writer.write(`if (valid > 0 && column + valid == ${scope.names.dim(kernel.n)}) `).block(() => {
    writer.writeLine(`for (int ${beyond} = ${own} + 1; ${beyond} < ${count}; ++${beyond})`)
    writer.writeLine(`  heddle::write(${tensor}, ${offsetAt(beyond)}, ${monoid}::result(${monoid}::identity()));`)
  })
}

/** Program that computes the elements to reduce: one result for each reduction, over the columns of the matmul. */
function asElements(
  partials: Kernel,
  groups: readonly Group[],
  kept: readonly { readonly tensor: string }[],
  axes: readonly string[],
): Kernel {
  const inputs = partials.tensors.filter(({ access }) => access === 'in')
  const results = kept.map(({ tensor }, i): TensorParam => {
    const type = groups[i]?.reduction.value.type === 'i32' ? 'i32' : 'f32'
    return { name: tensor, access: 'out', dtype: type, dims: axes, layout: rowMajor(axes) }
  })
  const rows = axes.slice(0, -1).map((axis) => indexVar(partials.rows.find((row) => row.dim === axis)?.index ?? axis))
  const body = groups.map(({ element }, i): StmtOf<'storeRow'> => {
    const index = `column_${i}`
    const value = substitute(element, new Map([[column, indexVar(index)]]))
    return { kind: 'storeRow', tensor: kept[i]?.tensor ?? '', rows, length: dim(axes.at(-1) ?? ''), index, value }
  })
  return { ...partials, tensors: [...inputs, ...results], body }
}
