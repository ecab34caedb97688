/**
 * One pass as CUDA text: chunks of the row are loaded (loads.ts), each element is computed, reductions collect, stores leave. The
 * three ways to walk a row (kept in registers, read again, one chunk a thread) differ in the loop around the chunk only.
 * Where a row is scanned or ranked, all threads of the row walk as many chunks, those without elements too: they meet in every one.
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Pass, PassRow } from '../schedule/passes.js'
import type { PassContext } from './context.js'
import { expressionText, monoidText, operandText } from './expression.js'
import { mayFault } from './faults.js'
import { clearLine, countLine } from './histogram.js'
import * as loads from './loads.js'
import { scalarText } from './names.js'
import { chunkAccesses, chunkOffset, declareStart } from './offsets.js'
import * as sharedRow from './shared_row.js'
import { isScanned, meets, type ScannedRow, type Stages, stagesOf } from './stages.js'
import { chunkStoresOf, declareLine, scatterLine, valueLine, whenText } from './stores.js'
import * as ranking from './top_k.js'

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
  readonly stages: Stages
  /** The variable that makes the elements of each scan. */
  readonly prefixes: ReadonlyMap<ScannedRow, string>
  readonly rankings: readonly ranking.WrittenRanking[]
}

export function writePass(pass: Pass, given: PassContext): void {
  const { writer, names } = given
  const stages = stagesOf(pass)
  const { whole, ...checked } = given
  // A thread may meet the others with a chunk that has no element, so those of a scan or a ranking are checked even in whole rows.
  const context = whole === undefined || meets(pass) ? checked : given
  const first = names.first(pass.loop.index)
  const length = operandText(pass.loop.length, context)
  const prefixes = new Map(stages.scans.map((row) => [row, names.fresh(`${names.value(row.name)}_lanes`)]))
  const guarded = mayFault(pass, given.shared) || stages.scans.length > 0
  const rankings = ranking.rankingsOf(pass, context)
  const frame: Frame = {
    context,
    pass,
    first,
    length,
    early: loads.earlyRows(pass, context),
    guarded,
    stages,
    prefixes,
    rankings,
  }
  for (const access of chunkAccesses(pass)) declareStart(access, context.starts, context, writer)
  for (const row of pass.rows) declareRow(row, frame)
  const accumulators = pass.reductions.map((r) => names.fresh(`${names.value(r.name)}_lanes`))
  pass.reductions.forEach((r, i) => {
    writer.writeLine(`heddle::Accumulator<${monoidText(r.monoid, r.value.type)}> ${accumulators[i]};`)
  })
  for (const h of pass.histograms) writer.writeLine(clearLine(h, context))
  writeLines(writer, [
    ...pass.sharedRows.flatMap((row) => sharedRow.declareLines(row, context)),
    ...rankings.flatMap(ranking.declareLines),
  ])
  if (sharedRow.isAlone(pass)) {
    sharedRow.writeElements(pass, elementLines(frame, 0), length, context)
  } else {
    writeChunkLoop(frame, () => {
      writeChunk(frame, accumulators)
      for (const accumulator of accumulators) writer.writeLine(`${accumulator}.end_chunk();`)
    })
  }
  pass.reductions.forEach((r, i) => {
    writer.writeLine(`const ${scalarText[r.type]} ${names.value(r.name)} = team.reduce(${accumulators[i]});`)
  })
  for (const row of pass.sharedRows) writer.writeLine(sharedRow.finishLine(row, context))
  for (const each of rankings) writer.writeLine(ranking.finishLine(each, context))
}

/** Declares what outlives a chunk: rows read early, running scans, and computed rows that later passes use. */
function declareRow(row: PassRow, frame: Frame): void {
  const { writer, names, elements } = frame.context
  const name = names.value(row.name)
  if (row.kind === 'loaded' && frame.early.has(row)) {
    writeLines(writer, loads.rowLines(row, frame.length, { name, chunks: 'CHUNKS' }, frame.context))
    elements.set(row.name, `${name}[chunk][i]`)
    return
  }
  const prefix = isScanned(row) ? frame.prefixes.get(row) : undefined
  if (isScanned(row)) writer.writeLine(`heddle::Prefix<${monoidText(row.monoid, row.value.type)}, VEC> ${prefix};`)
  if (row.kind !== 'loaded' && row.keep) {
    writer.writeLine(`${scalarText[row.type]} ${name}[CHUNKS][VEC];`)
    elements.set(row.name, `${name}[chunk][i]`)
  } else if (prefix !== undefined) {
    elements.set(row.name, `${prefix}[i]`)
  } else {
    elements.set(row.name, row.kind === 'loaded' || frame.stages.outlives(row) ? `${name}[i]` : name)
  }
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
  // Loads of several chunks are under way together where nothing stands between them, and where registers hold them.
  if (!together && pass.rows.filter(({ kind }) => kind === 'loaded').length === 1) writer.writeLine('HEDDLE_UNROLL_FEW')
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
function writeChunk(frame: Frame, accumulators: readonly string[]): void {
  const { context, pass, first, early, guarded, stages, prefixes, rankings } = frame
  const { writer, names } = context
  for (const row of pass.rows) {
    if (row.kind === 'loaded' && !early.has(row)) writer.writeLine(loads.chunkLine(row, first, context))
  }
  const chunkStores = chunkStoresOf(pass, context)
  for (const s of chunkStores) writer.writeLine(declareLine(s, guarded))
  for (const row of pass.rows) {
    if (row.kind === 'computed' && !row.keep && stages.outlives(row))
      writer.writeLine(`${scalarText[row.type]} ${names.value(row.name)}[VEC];`)
  }
  writeLines(writer, rankings.map(ranking.chunkLine))
  for (let stage = 0; stage < stages.last; stage++) {
    const finished = [...prefixes].filter(([row]) => stages.known(row) === stage + 1)
    writeElements(frame, stage, () => ({ collect: finished.map((scan) => addLine(...scan, frame)), leave: [] }))
    for (const [, prefix] of finished) writer.writeLine(`team.scan(${prefix});`)
  }
  writeElements(frame, stages.last, () => ({
    collect: [
      ...pass.reductions.map((r, i) => `${accumulators[i]}.add(${expressionText(r.value, context)}, ${first} + i);`),
      ...pass.histograms.map((h) => countLine(h, context)),
      ...rankings.map((each) => ranking.offerLine(each, context)),
      ...pass.sharedRows.map((row) => sharedRow.setLine(row, context)),
    ],
    leave: [
      ...chunkStores.map((s) => valueLine(s, context)),
      ...pass.stores.filter((s) => s.run === undefined).map((s) => scatterLine(s, context)),
    ],
  }))
  for (const each of rankings) writer.writeLine(ranking.takeLine(each, first))
  for (const s of chunkStores) {
    const access = { ...s, index: pass.loop.index }
    const offset = chunkOffset(access, first, context.starts, context)
    const call = `heddle::store_chunk<${loads.widthText(access, context)}>`
    writer.writeLine(`${whenText(s, context)}${call}(${names.tensor(s.tensor)}, ${offset}, valid, ${s.values});`)
  }
}

/** The loop over the elements of a chunk in one stage: its rows, then what collects values, then what leaves the chunk. */
function writeElements(
  frame: Frame,
  stage: number,
  linesOf: () => { readonly collect: readonly string[]; readonly leave: readonly string[] },
): void {
  const { context, pass, first, guarded } = frame
  const { writer, names, used } = context
  const { index } = pass.loop
  used.indices.delete(index)
  const compute = elementLines(frame, stage)
  const { collect, leave } = linesOf()
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
    if (isScanned(row)) return row.keep ? [`${name}[chunk][i] = ${prefixes.get(row)}[i];`] : []
    const value = expressionText(row.value, context)
    if (row.keep) return [`${name}[chunk][i] = ${value};`]
    return [stages.outlives(row) ? `${name}[i] = ${value};` : `const ${scalarText[row.type]} ${name} = ${value};`]
  })

const addLine = (row: ScannedRow, prefix: string, { context, first }: Frame): string =>
  `${prefix}.add(i, ${expressionText(row.value, context)}, ${first} + i);`
