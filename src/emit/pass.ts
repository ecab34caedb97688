/**
 * One pass as CUDA text: chunks of the row are loaded, each element is computed, reductions collect, stores leave. The
 * three ways to walk a row (kept in registers, read again, one chunk a thread) differ in the loop around the chunk only.
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../ir/expr.js'
import type { LoopStore } from '../schedule/normalise.js'
import type { Pass, PassRow } from '../schedule/passes.js'
import { contains, sameExpr } from '../schedule/rewrite.js'
import { mayDivideByZero } from '../schedule/simplify.js'
import { expressionText, monoidText, offsetText, type Scope, startOf, tensorOf, wideText } from './expression.js'
import { scalarText, storageText } from './names.js'

/** How the chunks of a row are walked: all of them held by the team, one after the other, or one by this thread. */
export type Walk = 'kept' | 'reread' | 'single'

export interface PassContext extends Scope {
  readonly writer: CodeBlockWriter
  readonly walk: Walk
  /** Row starts declared so far: the expression and its variable. */
  readonly starts: { readonly start: Expr; readonly name: string }[]
}

/** Names and decisions of the pass being written. */
interface Frame {
  readonly context: PassContext
  readonly pass: Pass
  /** Text of the first element index of the chunk, and of the row's length. */
  readonly first: string
  readonly length: string
  /** Rows read for all chunks at once, before anything is computed. */
  readonly early: ReadonlySet<PassRow>
  /** Every computation of an element stands behind the check that the element exists. */
  readonly guarded: boolean
}

export function writePass(pass: Pass, context: PassContext): void {
  const { writer, names } = context
  const first = names.first(pass.loop.index)
  const length = expressionText(pass.loop.length, context)
  const frame: Frame = { context, pass, first, length, early: earlyRows(pass, context), guarded: mayFault(pass) }
  declareStarts(frame)
  for (const row of pass.rows) declareRow(row, frame)
  const accumulators = pass.reductions.map((r) => names.fresh(`${names.value(r.name)}_lanes`))
  pass.reductions.forEach((r, i) => {
    writer.writeLine(`heddle::Accumulator<${monoidText(r.monoid, r.value.type)}> ${accumulators[i]};`)
  })
  writeChunkLoop(frame, () => {
    writeChunk(frame, accumulators)
    for (const accumulator of accumulators) writer.writeLine(`${accumulator}.end_chunk();`)
  })
  pass.reductions.forEach((r, i) => {
    writer.writeLine(`const ${scalarText[r.type]} ${names.value(r.name)} = team.reduce(${accumulators[i]});`)
  })
}

/**
 * Rows that differ from row to row come from far memory: the team asks for all their chunks before it needs the first.
 * Rows that are the same for every row (a weight) are in the cache, and would only occupy registers.
 */
function earlyRows(pass: Pass, { walk, ...scope }: PassContext): ReadonlySet<PassRow> {
  if (walk !== 'kept') return new Set()
  const early = pass.rows.filter((row) => {
    if (row.kind !== 'loaded') return false
    const start = startOf(row.load.tensor, row.load.indices, row.loop.index, scope)
    return row.keep || (start !== undefined && contains(start, (e) => ['index', 'local', 'load'].includes(e.kind)))
  })
  return new Set(early)
}

/** True when computing an element that does not exist could read out of bounds or divide by zero. */
function mayFault({ rows, reductions, stores }: Pass): boolean {
  const values = rows.flatMap((row) => (row.kind === 'computed' ? [row.value] : []))
  const faults = (e: Expr): boolean => contains(e, (node) => node.kind === 'load' || mayDivideByZero(node))
  return stores.some((s) => s.run === undefined) || [...values, ...[...reductions, ...stores].map((s) => s.value)].some(faults)
}

/** Declares the offsets at which the rows of the pass start, each once per kernel. */
function declareStarts({ context, pass }: Frame): void {
  const loads = pass.rows.flatMap((row) => (row.kind === 'loaded' ? [{ ...row.load, run: row.run }] : []))
  for (const { tensor, indices, run } of [...loads, ...pass.stores]) {
    if (run !== Number.POSITIVE_INFINITY) continue
    const start = startOf(tensor, indices, pass.loop.index, context)
    if (start === undefined || context.starts.some((known) => sameExpr(known.start, start))) continue
    const name = context.names.fresh('start')
    context.writer.writeLine(`const int64_t ${name} = ${wideText(start, context)};`)
    context.starts.push({ start, name })
  }
}

/** Offset of the element at loop index `at` of a contiguous access. */
function chunkOffset(tensor: string, indices: readonly Expr[], run: number, at: string, { context, pass }: Frame): string {
  if (run === Number.POSITIVE_INFINITY) {
    const start = startOf(tensor, indices, pass.loop.index, context)
    if (start === undefined) return at
    const known = context.starts.find((candidate) => sameExpr(candidate.start, start))
    if (known === undefined) throw new Error(`internal: the start of ${tensor} is not declared`)
    return `${known.name} + ${at}`
  }
  const value = (name: string): string => (name === pass.loop.index ? at : context.names.value(name))
  return offsetText(tensor, indices, { ...context, names: { ...context.names, value } })
}

/** Declares what outlives a chunk: rows read early, and computed rows that later passes use. */
function declareRow(row: PassRow, frame: Frame): void {
  const { writer, names, elements } = frame.context
  const name = names.value(row.name)
  if (row.kind === 'loaded' && frame.early.has(row)) {
    const { tensor, indices } = row.load
    const element = names.value(frame.pass.loop.index)
    const offset = chunkOffset(tensor, indices, row.run, element, frame)
    writer.writeLine(`heddle::Chunk<${storageText(tensorOf(tensor, frame.context), names)}, VEC> ${name}[CHUNKS];`)
    const place = `[&](int ${element}) -> int64_t { return ${offset}; }`
    writer.writeLine(`heddle::load_row<VEC>(team, ${names.tensor(tensor)}, ${frame.length}, ${name}, ${place});`)
    elements.set(row.name, `${name}[chunk][i]`)
  } else if (row.kind === 'computed' && row.keep) {
    writer.writeLine(`${scalarText[row.type]} ${name}[CHUNKS][VEC];`)
    elements.set(row.name, `${name}[chunk][i]`)
  } else {
    elements.set(row.name, row.kind === 'loaded' ? `${name}[i]` : name)
  }
}

function writeChunkLoop({ context, first, length }: Frame, body: () => void): void {
  const { writer, walk } = context
  if (walk === 'single') {
    body()
    return
  }
  if (walk === 'kept') writer.writeLine('HEDDLE_UNROLL')
  const bound =
    walk === 'kept'
      ? 'int chunk = 0; chunk < CHUNKS; ++chunk'
      : `int chunk = team.lane(); chunk < heddle::chunks_of<VEC>(${length}); chunk += Team::lanes`
  writer.write(`for (${bound})`).block(() => {
    writer.writeLine(`const int ${first} = ${walk === 'kept' ? '(chunk * Team::lanes + team.lane())' : 'chunk'} * VEC;`)
    writer.writeLine(`const int valid = ${length} - ${first};`)
    if (walk === 'kept') writer.writeLine('if (valid <= 0) break;')
    body()
  })
}

/** The body of the chunk loop. */
function writeChunk(frame: Frame, accumulators: readonly string[]): void {
  const { context, pass, first, early, guarded } = frame
  const { writer, names } = context
  for (const row of pass.rows) {
    if (row.kind !== 'loaded' || early.has(row)) continue
    const offset = chunkOffset(row.load.tensor, row.load.indices, row.run, first, frame)
    writer.writeLine(
      `const auto ${names.value(row.name)} = heddle::load_chunk<VEC>(${names.tensor(row.load.tensor)}, ${offset}, valid);`,
    )
  }
  const chunkStores = pass.stores.flatMap((s) =>
    s.run === undefined ? [] : [{ ...s, run: s.run, values: names.fresh(`${s.tensor}_${pass.loop.index}`) }],
  )
  for (const s of chunkStores) writer.writeLine(`${scalarText[s.value.type]} ${s.values}[VEC]${guarded ? ' = {}' : ''};`)

  const element = names.value(pass.loop.index)
  context.used.indices.delete(pass.loop.index)
  const compute = elementLines(frame)
  const collect = pass.reductions.map((r, i) => `${accumulators[i]}.add(${expressionText(r.value, context)}, ${first} + i);`)
  const leave = [
    ...chunkStores.map((s) => `${s.values}[i] = ${expressionText(s.value, context)};`),
    ...pass.stores.filter((s) => s.run === undefined).map((s) => scatterLine(s, context)),
  ]
  if (compute.length + collect.length + leave.length > 0) {
    writer.writeLine('HEDDLE_UNROLL')
    writer.write('for (int i = 0; i < VEC; ++i)').block(() => {
      if (context.used.indices.has(pass.loop.index)) writer.writeLine(`const int ${element} = ${first} + i;`)
      if (guarded) {
        writeGuarded(writer, [...compute, ...collect, ...leave])
      } else {
        writeLines(writer, compute)
        writeGuarded(writer, collect)
        writeLines(writer, leave)
      }
    })
  }
  for (const s of chunkStores) {
    const offset = chunkOffset(s.tensor, s.indices, s.run, first, frame)
    writer.writeLine(`heddle::store_chunk<VEC>(${names.tensor(s.tensor)}, ${offset}, valid, ${s.values});`)
  }
}

function writeLines(writer: CodeBlockWriter, lines: readonly string[]): void {
  for (const line of lines) writer.writeLine(line)
}

function writeGuarded(writer: CodeBlockWriter, lines: readonly string[]): void {
  if (lines.length === 0) return
  if (lines.length === 1) writer.writeLine(`if (i < valid) ${lines[0]}`)
  else writer.write('if (i < valid)').block(() => writeLines(writer, lines))
}

/** The computed rows of the pass, one line each, in dependency order. */
const elementLines = ({ context, pass }: Frame): string[] =>
  pass.rows.flatMap((row) => {
    if (row.kind !== 'computed') return []
    const value = expressionText(row.value, context)
    const name = context.names.value(row.name)
    return [row.keep ? `${name}[chunk][i] = ${value};` : `const ${scalarText[row.type]} ${name} = ${value};`]
  })

const scatterLine = (s: LoopStore, context: PassContext): string =>
  `heddle::write(${context.names.tensor(s.tensor)}, ${offsetText(s.tensor, s.indices, context)}, ${expressionText(s.value, context)});`
