/**
 * One pass as CUDA source: chunks of the row are loaded (loads.ts), each element is computed, reductions accumulate, results are stored. The three
 * ways to walk a row (kept in registers, read again, one chunk per thread) differ only in the loop around the chunk. If a row is scanned or ranked,
 * all threads of the row process equally many chunks, even without elements: they synchronise in every one.
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../ir/expr.js'
import { mark } from '../ir/trace.js'
import { rowExprs, startsOf } from '../schedule/normal.js'
import { type Pass, type PassRow, passValues } from '../schedule/passes.js'
import { contains, usesIndex } from '../schedule/rewrite.js'
import { ofChunks } from './chunk_values.js'
import type { Frame as PartFrame, Written } from './constructs/construct.js'
import { partsOf } from './constructs/index.js'
import * as sharedRow from './constructs/shared_row.js'
import type { PassContext } from './context.js'
import { expressionText, monoidText, operandText } from './expression.js'
import { mayFault } from './faults.js'
import * as loads from './loads.js'
import { scalarText } from './names.js'
import { chunkAccesses, declareStart } from './offsets.js'
import { isScanned, meets, type ScannedRow, type Stages, stagesOf } from './stages.js'
import { fieldsText, fieldText } from './user_monoid.js'
import { isFold } from './user_monoids.js'

/** Names and decisions of the pass being emitted. */
interface Frame extends PartFrame {
  /** Source of the row's length. */
  readonly length: string
  /** Rows loaded for all chunks at once, before any computation. */
  readonly early: ReadonlySet<PassRow>
  readonly stages: Stages
  /** Variable that computes the elements of each scan. */
  readonly prefixes: ReadonlyMap<ScannedRow, string>
  /** Source of each statement. */
  readonly parts: readonly Written[]
  /** Lines of the values computed once per chunk. */
  readonly once: () => readonly string[]
}

export function writePass(asked: Pass, given: PassContext): void {
  const { writer, names } = given
  const { whole, ...checked } = given
  // A thread may synchronise with the others for a chunk without elements, so chunks of a scan or a ranking are checked even in whole rows.
  const outer = whole === undefined || meets(asked) ? checked : given
  const first = names.first(asked.loop.index)
  const chunked = ofChunks(asked, outer, first)
  const { pass, context } = chunked
  const stages = stagesOf(pass)
  const length = operandText(pass.loop.length, context)
  const prefixes = new Map<ScannedRow, string>()
  for (const row of stages.scans) {
    // The fields of one scan are computed together.
    const twin = typeof row.monoid === 'string' ? undefined : [...prefixes].find(([other]) => other.monoid === row.monoid)
    prefixes.set(row, twin?.[1] ?? names.fresh(`${names.value(row.name)}_lanes`))
  }
  const guarded = mayFault(pass, given.shared) || stages.scans.length > 0
  const about: PartFrame = { context, pass, first, guarded }
  const parts = pass.statements.map((stmt) => partsOf(stmt, about))
  const early = loads.earlyRows(pass, context)
  const once = (): readonly string[] => chunked.lines(meets(pass) || given.mayBeEmpty === true)
  const frame: Frame = { ...about, length, early, stages, prefixes, parts, once }
  for (const access of chunkAccesses(pass)) declareStart(access, context.starts, context, writer)
  for (const row of pass.rows) declareRow(row, frame)
  writeLines(writer, linesOf(parts, 'declare'))
  if (sharedRow.isAlone(pass)) {
    sharedRow.writeElements(pass, elementLines(frame, 0), length, context)
  } else {
    writeChunkLoop(frame, () => {
      writeChunk(frame)
      writeLines(writer, linesOf(parts, 'closeChunk'))
    })
  }
  writeLines(writer, linesOf(parts, 'finish'))
}

const linesOf = (parts: readonly Written[], part: keyof Written): string[] => parts.flatMap((each) => each[part]?.() ?? [])

/** Declares variables that outlive a chunk: prefetched rows, running scans, and computed rows that later passes use. */
function declareRow(row: PassRow, frame: Frame): void {
  const { writer, names, elements } = frame.context
  const name = names.value(row.name)
  if (row.kind === 'loaded' && frame.early.has(row)) {
    writeLines(writer, loads.rowLines(row, frame.length, { name, chunks: 'CHUNKS' }, frame.context))
    elements.set(row.name, `${name}[chunk][i]`)
    return
  }
  const prefix = isScanned(row) ? frame.prefixes.get(row) : undefined
  if (prefix !== undefined && isScanned(row) && isFirst(row, frame)) writer.writeLine(prefixLine(row, prefix, frame))
  if (row.kind !== 'loaded' && row.keep) {
    writer.writeLine(`${scalarText[row.type]} ${name}[CHUNKS][VEC];${mark(...rowExprs(row))}`)
    elements.set(row.name, `${name}[chunk][i]`)
  } else if (prefix !== undefined) {
    elements.set(row.name, isScanned(row) ? scannedText(row, prefix) : prefix)
  } else {
    elements.set(row.name, row.kind === 'loaded' || frame.stages.outlives(row) ? `${name}[i]` : name)
  }
}

/** True if each element divides integers by a run-time number: some twenty instructions, so that eight elements are already a long loop. */
function divides({ rows, statements, loop }: Pass): boolean {
  const isDivision = (e: Expr): boolean =>
    e.kind === 'call' && (e.fn === 'idiv' || e.fn === 'mod') && e.args[1]?.kind !== 'const' && usesIndex(e, loop.index)
  const values = rows.flatMap((row) => (row.kind === 'loaded' ? [] : rowExprs(row)))
  return [...values, ...passValues({ statements })].some((value) => contains(value, isDivision))
}

function writeChunkLoop({ context, pass, first, length }: Frame, body: () => void): void {
  const { writer, walk } = context
  if (walk === 'single') {
    body()
    return
  }
  const together = meets(pass)
  const chunks = `heddle::chunks_of<VEC>(${length})`
  if (walk === 'kept') {
    writer.writeLine('HEDDLE_UNROLL')
    writer.write('for (int chunk = 0; chunk < CHUNKS; ++chunk)').block(() => {
      if (together) writer.writeLine(`if (chunk * Team::lanes * VEC >= ${length}) break;`)
      writer.writeLine(`const int ${first} = (chunk * Team::lanes + team.lane()) * VEC;`)
      writer.writeLine(`const int valid = ${length} - ${first};`)
      if (!together) writer.writeLine('if (valid <= 0) break;')
      body()
    })
    return
  }
  // Loads of several chunks are in flight together if there is no barrier between them and registers can hold them.
  if (!together && pass.rows.filter(({ kind }) => kind === 'loaded').length === 1 && !divides(pass))
    writer.writeLine('HEDDLE_UNROLL_FEW')
  const start = together ? `int round = 0; round < ${chunks}; round` : `int chunk = team.lane(); chunk < ${chunks}; chunk`
  writer.write(`for (${start} += Team::lanes)`).block(() => {
    if (together) writer.writeLine('const int chunk = round + team.lane();')
    writer.writeLine(`const int ${first} = chunk * VEC;`)
    // Beyond the last chunk of a very long row, the place itself may not fit 32 bits.
    writer.writeLine(`const int valid = ${together ? `chunk < ${chunks} ? ` : ''}${length} - ${first}${together ? ' : 0' : ''};`)
    body()
  })
}

/** The body of the chunk loop. */
function writeChunk(frame: Frame): void {
  const { context, pass, first, early, stages, prefixes, parts } = frame
  const { writer, names } = context
  for (const row of pass.rows) {
    if (row.kind === 'loaded' && !early.has(row)) writer.writeLine(loads.chunkLine(row, first, context))
  }
  writeLines(writer, frame.once())
  writeLines(writer, linesOf(parts, 'openChunk'))
  for (const row of pass.rows) {
    if (row.kind === 'computed' && !row.keep && stages.outlives(row))
      writer.writeLine(`${scalarText[row.type]} ${names.value(row.name)}[VEC];${mark(...rowExprs(row))}`)
  }
  for (let stage = 0; stage < stages.last; stage++) {
    const finished = [...prefixes].filter(([row]) => stages.known(row) === stage + 1 && isFirst(row, frame))
    writeElements(frame, stage, () => ({ collect: finished.map((scan) => addLine(...scan, frame)), leave: [] }))
    for (const [row, prefix] of finished)
      writer.writeLine(
        `${carriesOn(row) ? `heddle::take_turns(team, ${prefix});` : `team.scan(${prefix});`}${mark(...row.values)}`,
      )
  }
  writeElements(frame, stages.last, () => ({ collect: linesOf(parts, 'element'), leave: linesOf(parts, 'anyElement') }))
  writeLines(writer, linesOf(parts, 'leaveChunk'))
}

/** Writes the loop over the elements of a chunk in one stage: its rows, then accumulation, then the values that leave the chunk. */
function writeElements(
  frame: Frame,
  stage: number,
  written: () => { readonly collect: readonly string[]; readonly leave: readonly string[] },
): void {
  const { context, pass, first, guarded } = frame
  const { writer, names, used } = context
  const { index } = pass.loop
  used.indices.delete(index)
  const compute = elementLines(frame, stage)
  const { collect, leave } = written()
  if (compute.length + collect.length + leave.length === 0) return
  writer.writeLine('HEDDLE_UNROLL')
  writer.write('for (int i = 0; i < VEC; ++i)').block(() => {
    if (used.indices.has(index)) writer.writeLine(`const int ${names.value(index)} = ${first} + i;`)
    const exists = context.whole === undefined ? 'i < valid' : 'WHOLE || i < valid'
    if (guarded) {
      writeGuarded(writer, exists, [...compute, ...collect, ...leave])
    } else {
      writeLines(writer, compute)
      writeGuarded(writer, exists, collect)
      writeLines(writer, leave)
    }
  })
}

function writeLines(writer: CodeBlockWriter, lines: readonly string[]): void {
  for (const line of lines) writer.writeLine(line)
}

function writeGuarded(writer: CodeBlockWriter, condition: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  if (lines.length === 1) writer.writeLine(`if (${condition}) ${lines[0]}`)
  else writer.write(`if (${condition})`).block(() => writeLines(writer, lines))
}

/** The rows that become known in a stage, one line each, in dependency order. */
const elementLines = ({ context, pass, stages, prefixes }: Frame, stage: number): string[] =>
  pass.rows.flatMap((row) => {
    if (row.kind === 'loaded' || stages.known(row) !== stage) return []
    const name = context.names.value(row.name)
    if (isScanned(row)) return row.keep ? [`${name}[chunk][i] = ${scannedText(row, prefixes.get(row) ?? '')};`] : []
    const value = expressionText(row.value, context)
    if (row.keep) return [`${name}[chunk][i] = ${value};`]
    return [stages.outlives(row) ? `${name}[i] = ${value};` : `const ${scalarText[row.type]} ${name} = ${value};`]
  })

function addLine({ monoid, values }: ScannedRow, prefix: string, { context, first }: Frame): string {
  const texts = values.map((value) => expressionText(value, context))
  return `${prefix}.add(i, ${typeof monoid === 'string' ? texts.join() : fieldsText(texts)}, ${first} + i);`
}

/** True if a row is the first of those that one variable computes. */
const isFirst = (row: ScannedRow, { prefixes }: Frame): boolean =>
  [...prefixes].find(([, prefix]) => prefix === prefixes.get(row))?.[0] === row

const carriesOn = ({ monoid }: ScannedRow): boolean => typeof monoid !== 'string' && isFold(monoid)

/** Declares the variable that computes the elements of a scan, or of a recurrence with its initial values. */
function prefixLine(row: ScannedRow, prefix: string, frame: Frame): string {
  if (!carriesOn(row)) return `heddle::Prefix<${scanText(row, frame)}, VEC> ${prefix};${mark(...row.values)}`
  const starts = startsOf(row).map((start) => expressionText(start, frame.context))
  return `heddle::Carry<${scanText(row, frame)}, VEC> ${prefix}(${fieldsText(starts)});`
}

/** The functor of a scan. */
const scanText = ({ monoid, values }: ScannedRow, { context }: Frame): string =>
  typeof monoid === 'string' ? monoidText(monoid, values[0]?.type ?? 'f32') : context.ownName(monoid)

/** An element of a scan. */
const scannedText = ({ monoid, field }: ScannedRow, prefix: string): string =>
  typeof monoid === 'string' ? `${prefix}[i]` : fieldText(monoid, field, `${prefix}[i]`)
