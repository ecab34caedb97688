/**
 * The epilogue of a matmul as CUDA source: an elementwise pass over chunks of a row that the main loop passes in registers. Other inputs of the
 * pass are loaded by a separate function, so that the main loop can issue these loads before it ends, and those of weights even before it begins.
 * Scalars of the row are loaded there too, once per chunk.
 */
import type CodeBlockWriter from 'code-block-writer'
import { call, i32 } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { resolveDType } from '../../ir/instance.js'
import type { StmtOf, TensorParam } from '../../ir/kernel.js'
import { proveLayout } from '../../ir/layout_proof.js'
import { type MatmulKernel, sumsIntegers } from '../../ir/product.js'
import { freeNames, rewrite, substitute } from '../../ir/walk.js'
import { type ElementwiseProgram, onlyPass } from '../../schedule/mapped.js'
import { mapRow, type Pass, type PassRow, statementsOf } from '../../schedule/normalise/passes.js'
import { contains } from '../../schedule/normalise/rewrite.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import { writePass } from '../kernels/steps.js'
import type { TemplateInstance } from '../kernels/template.js'
import { expressionText, offsetText, type Scope, tensorOf } from '../print/expression.js'
import { guardedText } from '../print/loop_leaf.js'
import { scalarText, storageText } from '../print/names.js'
import { noOwn } from '../print/user_monoids.js'
import { renamed, vec } from './frame.js'

type Loaded = Extract<PassRow, { kind: 'loaded' }>
type Let = StmtOf<'let'>

const inline = '__device__ __forceinline__'

/** An epilogue, taken apart into loads and the rest. */
interface Parts {
  /** The pass, in whole chunks. */
  readonly whole: Pass
  /** Loads of anything but accumulators. */
  readonly operands: readonly Loaded[]
  /** Scalars of a row that are loaded with the operands, and the others. */
  readonly early: readonly Let[]
  readonly late: readonly Let[]
  /** Names before scalars and partners have places in the loaded struct. */
  readonly given: Scope
  readonly scope: Scope
}

/** Members of the slots' struct that are functions of the epilogue. `scope` names rows and columns as the functions do. */
export function epilogueBody(
  program: ElementwiseProgram,
  kernel: MatmulKernel,
  given: Scope,
  types: TemplateInstance['types'],
): string {
  const parts = partsOf(program, kernel, given)
  const { operands, early, scope } = parts
  const reads = operands.length + early.length > 0
  const writer = bodyWriter()
  writer.writeLine(`static constexpr int VEC = ${vec};`)
  writeLoaded(writer, parts)
  writer.writeLine('/// Whether all chunks are full and aligned.')
  writer
    .write('bool whole_chunks() const ')
    .block(() => void writer.writeLine(`return ${wholeText(parts.whole, operands, scope)};`))
  writePrefetch(writer, parts)
  writeLoad(writer, parts, reads)
  const taken = reads ? 'const Loaded& operands' : 'const Loaded&'
  const count = kernel.products.length === 1 ? '' : `[${kernel.products.length}]`
  writer.writeLine('/// Computes and stores these columns of the epilogue.')
  writer.writeLine('template <bool WHOLE>')
  const product = `const ${sumText(kernel, types, scope)} (&product)${count}[VEC]`
  writer.write(`${inline} void finish(int64_t row, int column, int valid, ${product}, ${taken}) const `)
  return `${lines(writer).trimEnd()} {\n${finishText(parts)}  }\n`
}

function partsOf(program: ElementwiseProgram, kernel: MatmulKernel, given: Scope): Parts {
  const accumulators = kernel.products.map(({ accumulator }) => accumulator)
  const steps = program.steps.flatMap((step) => (step.kind === 'let' ? [step] : []))
  const { pass: whole, texts: partners } = withPartners(inWholeChunks(onlyPass(program)), kernel, given)
  const loaded = whole.rows.filter((row) => row.kind === 'loaded')
  const operands = loaded.filter(({ load }) => !accumulators.includes(load.tensor))
  const early = earlyLets(steps, operands)
  const names = renamed(
    given.names,
    new Map([...partners, ...early.map(({ name }) => [name, `operands.${given.names.value(name)}`] as const)]),
  )
  const scope: Scope = { ...given, names }
  for (const row of loaded) {
    const read = !accumulators.includes(row.load.tensor)
    scope.elements.set(row.name, read ? `operands.${names.value(row.name)}[i]` : productText(kernel, row.load.tensor, 'i'))
  }
  return { whole, operands, early, late: steps.filter((step) => !early.includes(step)), given, scope }
}

function writeLoaded(writer: CodeBlockWriter, { operands, early, given, scope }: Parts): void {
  const { names } = scope
  writer.writeLine('/// The operands that the epilogue loads.')
  writer.write('struct Loaded ').inlineBlock(() => {
    for (const row of operands) {
      writer.writeLine(`heddle::Chunk<${storageText(tensorOf(row.load.tensor, scope), names)}, VEC> ${names.value(row.name)};`)
    }
    for (const { name, type } of early) writer.writeLine(`${scalarText[type]} ${given.names.value(name)};`)
  })
  writer.write(';').newLine()
}

/** Writes the function that prefetches constants: loads that depend on the column alone. */
function writePrefetch(writer: CodeBlockWriter, { operands, scope }: Parts): void {
  const fixed = operands.filter(
    (row) => row.guard === undefined && tensorOf(row.load.tensor, scope).constant === true && ofColumn(row),
  )
  writer.writeLine('/// Prefetches constants.')
  writer.write(`${inline} void prefetch(${fixed.length === 0 ? 'int' : 'int column'}) const `).block(() => {
    for (const { load, loop } of fixed) {
      const place = placeOf(load.tensor, load.indices, loop.index, scope)
      writer.writeLine(`heddle::prefetch(${scope.names.tensor(load.tensor)}, ${place});`)
    }
  })
}

function writeLoad(writer: CodeBlockWriter, { operands, early, scope }: Parts, reads: boolean): void {
  const { names } = scope
  // Unused parameters have no name, to avoid compiler warnings.
  const place = reads ? 'int64_t row, int column, int valid' : 'int64_t, int, int'
  writer.writeLine('/// Starts the loads of the epilogue for columns [column, column + valid) of a row, at most VEC of them.')
  writer.writeLine('template <bool WHOLE>')
  writer.write(`${inline} Loaded load(${place}) const `).block(() => {
    writer.writeLine('Loaded operands;')
    for (const { name, value } of early) writer.writeLine(`${names.value(name)} = ${expressionText(value, scope)};`)
    for (const row of operands) {
      const { load, loop, name } = row
      const offset = placeOf(load.tensor, load.indices, loop.index, scope)
      const text = `heddle::load_chunk<VEC, WHOLE>(${names.tensor(load.tensor)}, ${offset}, valid)`
      writer.writeLine(`operands.${names.value(name)} = ${guardedText(row, text, scope)};`)
    }
    writer.writeLine('return operands;')
  })
}

/** Statements of the function that computes and stores columns. */
function finishText({ whole, late, scope }: Parts): string {
  const writer = bodyWriter(2)
  for (const { name, type, value } of late) {
    writer.writeLine(`const ${scalarText[type]} ${scope.names.value(name)} = ${expressionText(value, scope)};`)
  }
  const rest: Pass = { ...whole, rows: whole.rows.filter((row) => row.kind !== 'loaded') }
  const chunks = { walk: 'single', ownName: noOwn, widths: [vec], mayBeEmpty: true, chunkStore: 'store_columns' } as const
  writePass(rest, { ...scope, ...chunks, writer }, () => true)
  return lines(writer)
}

/** C++ type of sums. */
export function sumText(kernel: MatmulKernel, types: TemplateInstance['types'], scope: Scope): string {
  if (sumsIntegers(kernel)) return scalarText.i32
  return scalarText[dtypeInfo[resolveDType(tensorOf(kernel.products[0].accumulator, scope).dtype, types)].scalar]
}

/** An element of a matmul. Sums of int8 are integers, whatever their type in the graph. */
export function productText(kernel: MatmulKernel, accumulator: string, at: string): string {
  const which = kernel.products.findIndex((product) => product.accumulator === accumulator)
  const text = kernel.products.length === 1 ? `product[${at}]` : `product[${which}][${at}]`
  const { dtype } = kernel.epilogue.tensors.find(({ name }) => name === accumulator) ?? { dtype: 'f32' }
  return sumsIntegers(kernel) && dtype !== 'i32' ? `static_cast<float>(${text})` : text
}

/**
 * The pass with every load of a matmul result at another column of the chunk replaced by a name, and the source of these names. It is a function of
 * the place in the chunk, which an unrolled loop knows, so that sums stay in registers.
 */
function withPartners(
  pass: Pass,
  kernel: MatmulKernel,
  scope: Scope,
): { readonly pass: Pass; readonly texts: ReadonlyMap<string, string> } {
  const texts = new Map<string, string>()
  const accumulators = kernel.products.map(({ accumulator }) => accumulator)
  const inChunk = renamed(scope.names, new Map([['place in the chunk', 'i']]))
  const computed = new Map(pass.rows.flatMap((row) => (row.kind === 'computed' ? [[row.name, row.value] as const] : [])))
  const written = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      const value = node.kind === 'element' ? computed.get(node.row) : undefined
      return value === undefined ? node : written(value)
    })
  const replace = (expr: Expr): Expr =>
    rewrite(expr, (node) => {
      if (node.kind !== 'load' || !accumulators.includes(node.tensor)) return node
      const column = node.indices.at(-1)
      if (column === undefined) return node
      const place: Expr = { kind: 'local', type: 'i32', name: 'place in the chunk' }
      const there = substitute(written(column), new Map([[pass.loop.index, place]]))
      // Under a condition, an unused index may be outside of the chunk, where there is no register.
      const inside = there.kind === 'local' ? there : call('bitAnd', there, i32(vec - 1))
      const at = expressionText(inside, { ...scope, names: inChunk })
      const text = productText(kernel, node.tensor, at)
      texts.set(text, text)
      return { kind: 'local', type: node.type, name: text }
    })
  const rows = pass.rows.map((row) => mapRow(row, replace))
  const statements = pass.statements.map((stmt) =>
    stmt.kind === 'loopStore'
      ? { ...stmt, value: replace(stmt.value), ...(stmt.when === undefined ? {} : { when: replace(stmt.when) }) }
      : stmt,
  )
  return { pass: { ...pass, rows, statements }, texts }
}

/** The pass with accesses in runs shorter than a chunk made element by element. */
export function inWholeChunks(pass: Pass): Pass {
  const rows = pass.rows.map((row): PassRow => {
    if (row.kind !== 'loaded' || row.run >= vec) return row
    const { name, type, loop, load, guard, keep } = row
    const nothing: Expr = { kind: 'const', type, value: 0 }
    const value: Expr = guard === undefined ? load : { kind: 'call', type, fn: 'select', args: [guard, load, nothing] }
    return { kind: 'computed', name, type, loop, value, keep }
  })
  const statements = pass.statements.map((stmt) =>
    stmt.kind !== 'loopStore' || stmt.run === undefined || stmt.run >= vec ? stmt : { ...stmt, run: undefined },
  )
  return { ...pass, rows, statements }
}

/**
 * Scalars of a row that are computed when its chunks are loaded: those that read tensors, those that the places of loads depend on, and their
 * inputs.
 */
function earlyLets(lets: readonly Let[], operands: readonly Loaded[]): readonly Let[] {
  const places = operands.flatMap(({ load, guard }) => [...load.indices, ...(guard === undefined ? [] : [guard])])
  const wanted = new Set(places.flatMap((expr) => [...freeNames(expr)]))
  const early: Let[] = []
  for (const step of [...lets].reverse()) {
    if (!wanted.has(step.name) && !contains(step.value, (node) => node.kind === 'load')) continue
    early.unshift(step)
    for (const name of freeNames(step.value)) wanted.add(name)
  }
  return early
}

/** True if a chunk's place depends on its column alone. Prefetched loads have no row, and no number computed by another kernel. */
const ofColumn = ({ load, loop }: Loaded): boolean =>
  load.indices.every(
    (at) => !contains(at, ({ kind }) => kind === 'load') && [...freeNames(at)].every((name) => name === loop.index),
  )

/** Offset of the epilogue's current column. */
function placeOf(tensor: string, indices: readonly Expr[], index: string, scope: Scope): string {
  return offsetText(tensor, indices, { ...scope, names: renamed(scope.names, new Map([[index, 'column']])) })
}

/** Condition that chunks are full and aligned: rows of the matmul are whole chunks, and so are those of every tensor. */
function wholeText(pass: Pass, operands: readonly Loaded[], scope: Scope): string {
  const { names, tensors } = scope
  const { length, index } = pass.loop
  const touched = [...operands.map(({ load }) => load), ...statementsOf(pass, 'loopStore')]
  const atColumn = ({ indices }: { readonly indices: readonly Expr[] }): boolean => {
    const last = indices.at(-1)
    return last?.kind === 'index' && last.name === index
  }
  const params = tensors.filter(({ name }) => touched.some(({ tensor }) => tensor === name))
  const columns = length.kind === 'dim' ? length.name : undefined
  if (!touched.every(atColumn) || !params.every((param) => columns !== undefined && inChunks(param, columns))) return 'false'
  return [
    `${expressionText(length, scope)} % VEC == 0`,
    ...params.map(({ name }) => `${names.tensor(name)}.aligned(0, 16)`),
  ].join(' && ')
}

/** True if chunks that start at multiples of their size are whole and aligned in a tensor whose last dimension is a multiple of it. */
function inChunks({ layout, dims }: TensorParam, columns: string): boolean {
  if (dims.at(-1) !== columns) return false
  if (layout.name === 'row') return true
  const { contiguousRun, alignedRun } = proveLayout(layout)
  return (contiguousRun === 'all' || contiguousRun >= vec) && alignedRun >= vec
}
