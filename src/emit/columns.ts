/**
 * CUDA source of column programs: a template over the team, which walks the rows once per level of reductions. All chunks of a round are
 * loaded before the first is used; results per column are an array over a thread's columns.
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../ir/expr.js'
import { mark } from '../ir/trace.js'
import type { ColumnLoad, ColumnPass, ColumnProgram, ColumnStep, ColumnStores } from '../schedule/column_program.js'
import type { MappedKernel } from '../schedule/mapped.js'
import type { Reduced } from '../schedule/reduction.js'
import { expressionText, offsetText, operandText, type Scope, tensorOf } from './expression.js'
import { createNames, type Names, scalarText, storageText } from './names.js'
import { elementText, functorsText, functorText, type OwnNames } from './reductions.js'
import { beforeStore } from './stored.js'
import { fieldText } from './user_monoid.js'
import { userMonoidName } from './user_monoids.js'

const passesOf = ({ sequence }: ColumnProgram): ColumnPass[] => sequence.flatMap((step) => (step.kind === 'pass' ? [step] : []))

/** Bytes of shared memory of all walks, as a constant of a team. */
export const sharedText = (program: ColumnProgram, team: string, own: OwnNames): string =>
  passesOf(program)
    .map(({ reductions }) => `heddle::bytes_of_walk<${team}, VEC, ${functorsText(reductions, own)}>`)
    .join(' + ')

/** Arrays of the results of reductions for a thread's columns. */
type Results = ReadonlyMap<Reduced, string>

const resultArrays = (names: Names, program: ColumnProgram): Results =>
  new Map(
    passesOf(program)
      .flatMap(({ reductions }) => reductions)
      .map((each) => [each, each.stmt.kind === 'merge' ? names.fresh('merged') : names.value(each.stmt.name)]),
  )

/** Names values that are computed once a column: elements of arrays of a thread's columns, read at column `i`, or fields of them. */
function columnNames(names: Names, { sequence }: ColumnProgram, results: Results): Names {
  const values = new Map(
    sequence.flatMap((step): (readonly [string, string])[] =>
      step.kind === 'let' ? [[step.name, `${names.value(step.name)}[i]`]] : [],
    ),
  )
  for (const [{ stmt }, array] of results) {
    if (stmt.kind === 'reduce') values.set(stmt.name, `${array}[i]`)
    else for (const [field, name] of stmt.names.entries()) values.set(name, fieldText(stmt.monoid, field, `${array}[i]`))
  }
  return { ...names, value: (name) => values.get(name) ?? names.value(name) }
}

/**
 * Writes a column program: into `frame` what stands in front, into `body` what has a version for whole chunks. `writeIndices` writes the
 * indices of its outer axes, once it is known which are read. Returns the condition under which all chunks are whole.
 */
export function writeColumns(
  mapped: MappedKernel,
  program: ColumnProgram,
  used: Scope['used'],
  writers: { readonly frame: CodeBlockWriter; readonly body: CodeBlockWriter },
  writeIndices: (writer: CodeBlockWriter, names: Names) => void,
): string {
  const names = createNames(mapped)
  const { kernel, dims: fixed } = mapped.instance
  const results = resultArrays(names, program)
  const scope: Scope = { names: columnNames(names, program, results), used, tensors: kernel.tensors, fixed, elements: new Map() }
  const { column, sequence: steps } = program
  const { frame, body: writer } = writers
  const first = names.first(column.index)
  const own: OwnNames = { ownName: (each) => userMonoidName(each, kernel) }
  const within: Frame = { names, scope, own, results, writer, column: column.index, first, c: names.value(column.index) }
  const length = operandText(program.length, scope)
  const passes = passesOf(program)
  for (const step of steps) {
    if (step.kind === 'pass') writePass(step, within, shareOf(passes, passes.indexOf(step), own))
    else if (step.kind === 'stores') writeStores(step, within)
    else if (step.kind === 'let') {
      writer.writeLine(`${scalarText[step.type]} ${names.value(step.name)}[VEC] = {};`)
      eachColumn(within, () => [`${names.value(step.name)}[i] = ${expressionText(step.value, scope)};`])
    } else {
      const value = (): string => expressionText(beforeStore(step.value, tensorOf(step.tensor, scope).dtype), scope)
      const at = (): string => offsetText(step.tensor, step.indices, scope)
      writer.write('if (team.stores())').block(() => {
        eachColumn(within, () => [`heddle::write(${names.tensor(step.tensor)}, ${at()}, ${value()});`])
      })
    }
  }
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('HEDDLE_DYNAMIC_SHARED(shared);')
  frame.writeLine('Team team;')
  frame.writeLine('int64_t position = team.tile();')
  frame.writeLine(`const int tile = heddle::peel(position, heddle::column_tiles<Team, VEC>(${length}));`)
  frame.writeLine(`const int valid = heddle::columns_left<Team, VEC>(team, tile, ${length});`)
  frame.writeLine(`const int ${first} = ${length} - valid;`)
  writeIndices(frame, names)
  const tensors = [...new Set(steps.flatMap(wholeTensors).map((tensor) => names.tensor(tensor)))]
  return [`${length} % VEC == 0`, ...tensors.map((tensor) => `heddle::is_aligned<VEC>(${tensor}, 0)`)].join(' &&\n      ')
}

/** Tensors whose chunks are full and aligned where their first is. */
const wholeTensors = (step: ColumnStep): string[] => [
  ...(step.kind === 'pass' || step.kind === 'stores' ? step.loads : []).flatMap(({ isWhole, load }) =>
    isWhole ? [load.tensor] : [],
  ),
  ...(step.kind === 'stores' ? step.stores : []).flatMap(({ isWhole, tensor }) => (isWhole ? [tensor] : [])),
]

/** Shared-memory offset of the results of a walk, after those of earlier walks. */
const shareOf = (passes: readonly ColumnPass[], at: number, own: OwnNames): string =>
  passes
    .slice(0, at)
    .map(({ reductions }) => ` + heddle::bytes_of_walk<Team, VEC, ${functorsText(reductions, own)}>`)
    .join('')

interface Frame {
  readonly names: Names
  readonly scope: Scope
  readonly own: OwnNames
  readonly results: Results
  readonly writer: CodeBlockWriter
  /** The index of the column axis. */
  readonly column: string
  /** Texts of the first column of the thread's chunk, and of column `i` of it. */
  readonly first: string
  readonly c: string
}

/** A loop over the columns of a thread's chunk that exist. */
function eachColumn({ writer, scope, column, first, c }: Frame, lines: () => readonly string[]): void {
  const { used } = scope
  used.indices.delete(column)
  const written = lines()
  writer.writeLine('HEDDLE_UNROLL')
  writer.write('for (int i = 0; i < VEC; ++i)').block(() => {
    writer.write('if (WHOLE ? valid > 0 : i < valid)').block(() => {
      if (used.indices.has(column)) writer.writeLine(`const int ${c} = ${first} + i;`)
      for (const line of written) writer.writeLine(line)
    })
  })
}

function writePass(pass: ColumnPass, frame: Frame, before: string): void {
  const { names, scope, own, results, writer } = frame
  const { reductions } = pass
  const arrays = reductions.map((each) => results.get(each) ?? '')
  const sums = arrays.map((array) => names.fresh(`${array}_sums`))
  const totals = names.fresh('totals')
  writer.writeLine(`const heddle::ColumnTotals<Team, VEC> ${totals}(shared${before});`)
  writer.writeLine(`${totals}.announce(heddle::bytes_of_column<${functorsText(reductions, own)}>);`)
  reductions.forEach((each, i) => {
    writer.writeLine(`heddle::ColumnSums<${functorText(each, own)}, Team, VEC> ${sums[i]};${mark(...each.values)}`)
  })
  writeWalk(pass, frame, (row) => {
    const text = (value: Expr): string => expressionText(value, scope)
    eachColumn(frame, () =>
      reductions.map((each, i) => `${sums[i]}.add(j, i, ${elementText(each, each.values.map(text))}, ${row});`),
    )
  })
  writer.writeLine(`${totals}.ready();`)
  const bytes = (i: number): string => (i === 0 ? '0' : `heddle::bytes_of_column<${functorsText(reductions.slice(0, i), own)}>`)
  reductions.forEach((each, i) => {
    writer.writeLine(`${totals}.template send<${functorText(each, own)}>(team, ${bytes(i)}, ${sums[i]});`)
  })
  writer.writeLine(`${totals}.receive();`)
  reductions.forEach((each, i) => {
    const { stmt, values } = each
    const type = stmt.kind === 'merge' ? `heddle::Fields<${stmt.monoid.fields.length}>` : scalarText[stmt.type]
    writer.writeLine(`${type} ${arrays[i]}[VEC];${mark(...values)}`)
    writer.writeLine(`${totals}.template total<${functorText(each, own)}>(team, ${bytes(i)}, ${arrays[i]});${mark(...values)}`)
  })
}

/** Writes the rows of a walk, each element computed of the reductions before it. */
function writeStores(walk: ColumnStores, frame: Frame): void {
  const { stores } = walk
  const { names, scope, writer } = frame
  const left = stores.map(({ tensor }) => names.fresh(`${tensor}_values`))
  writeWalk(walk, frame, () => {
    stores.forEach(({ inChunks, value }, i) => {
      if (inChunks) writer.writeLine(`${scalarText[value.type]} ${left[i]}[VEC] = {};`)
    })
    eachColumn(frame, () =>
      stores.map(({ tensor, indices, value, inChunks }, i) => {
        const text = expressionText(beforeStore(value, tensorOf(tensor, scope).dtype), scope)
        return inChunks
          ? `${left[i]}[i] = ${text};`
          : `heddle::write(${names.tensor(tensor)}, ${offsetText(tensor, indices, scope)}, ${text});`
      }),
    )
    stores.forEach(({ tensor, indices, inChunks, isWhole }, i) => {
      const call = `heddle::store_chunk<VEC, ${isWhole ? 'WHOLE' : 'false'}>`
      if (inChunks)
        writer.writeLine(`${call}(${names.tensor(tensor)}, ${chunkOffset(tensor, indices, frame)}, valid, ${left[i]});`)
    })
  })
}

/** A thread's rows: chunks of a round are all asked for, then `take` writes what is done with each. */
function writeWalk(
  { loop, loads, when }: Pick<ColumnPass, 'loop' | 'loads' | 'when'>,
  frame: Frame,
  take: (row: string) => void,
): void {
  const { names, scope, writer } = frame
  const row = names.value(loop.index)
  const rows = operandText(loop.length, scope)
  writer.write(`for (int64_t round = team.first_row(); valid > 0 && round < ${rows}; round += Team::round)`).block(() => {
    const each = (lines: () => void): void => {
      writer.writeLine('HEDDLE_UNROLL')
      writer.write('for (int j = 0; j < Team::loads; ++j)').block(() => {
        writer.writeLine(`if (round + Team::rows_before(j) >= ${rows}) break;`)
        writer.writeLine(`const int ${row} = static_cast<int>(round) + Team::rows_before(j);`)
        lines()
      })
    }
    for (const each of loads) {
      const storage = storageText(tensorOf(each.load.tensor, scope), names)
      writer.writeLine(`heddle::Chunk<${storage}, VEC> ${names.value(each.name)}[Team::loads];`)
    }
    const counts = when === undefined ? undefined : names.fresh('counts')
    if (counts !== undefined) writer.writeLine(`bool ${counts}[Team::loads];`)
    if (loads.length > 0)
      each(() => {
        if (when !== undefined) writer.writeLine(`${counts}[j] = ${expressionText(when, scope)};`)
        const guard = counts === undefined ? '' : `if (${counts}[j]) `
        for (const load of loads) writer.writeLine(`${guard}${loadLine(load, frame)}`)
      })
    each(() => {
      if (counts !== undefined) writer.writeLine(`if (!${counts}[j]) continue;`)
      for (const { name } of loads) scope.elements.set(name, `${names.value(name)}[j][i]`)
      take(row)
    })
  })
}

/** Reads the chunk of one row. */
function loadLine({ name, load, isWhole }: ColumnLoad, frame: Frame): string {
  const { names } = frame
  const call = `heddle::load_chunk<VEC, ${isWhole ? 'WHOLE' : 'false'}>`
  return `${names.value(name)}[j] = ${call}(${names.tensor(load.tensor)}, ${chunkOffset(load.tensor, load.indices, frame)}, valid);${mark(load)}`
}

/** Offset of a chunk, that of its first column. */
function chunkOffset(tensor: string, indices: readonly Expr[], { names, scope, first, c }: Frame): string {
  const value = (wanted: string): string => (names.value(wanted) === c ? first : scope.names.value(wanted))
  return offsetText(tensor, indices, { ...scope, names: { ...scope.names, value } })
}
