/** Description of a schedule in words, for `heddle inspect`, the manifest and the head of a generated file. */
import { printExpr, printStmt } from '../ir/print.js'
import { printAxis } from '../ir/row_axis.js'
import { passStatementOf, rowStatementOf } from './constructs/index.js'
import { type DividedProgram, hasSections } from './divided/divided_program.js'
import { printReduced } from './divided/reduction.js'
import {
  type ColumnLaunches,
  type ElementwiseProgram,
  type FixedSizes,
  type InRow,
  type InRows,
  isInSpans,
  type Limit,
  launchesBeside,
  type MappedKernel,
  type PieceSteps,
  stepsOf,
  type Team,
  type Variant,
} from './mapped.js'
import type { Pass, PassRow, Step } from './normalise/passes.js'

interface VariantLine {
  readonly name: string
  readonly schedule: string
  readonly when: string
}

/**
 * One line per variant: its name, its schedule, and its condition. Those of a launch in place of several come first, then those of earlier
 * launches.
 */
export const variantLines = (mapped: MappedKernel): VariantLine[] =>
  mapped.grouped === undefined ? programLines(mapped) : groupedLines(mapped.key)

/** The main loops of a grouped matmul (native/device/grouped_matmul.cuh). */
const groupedLines = (key: string): VariantLine[] => [
  {
    name: key,
    schedule: 'a matmul: a block reads eight columns of a matrix for all rows that choose it',
    when: 'at most 8 rows',
  },
  {
    name: key,
    schedule: 'a matmul: rows are grouped by the matrix that they choose, and tiles of 64 or 128 of them multiply one matrix',
    when: 'otherwise; on tensor cores where both factors have one 16-bit type and rows are whole units of 16 bytes',
  },
]

const programLines = (mapped: MappedKernel): VariantLine[] => [
  ...(mapped.split?.fixed ?? []).flatMap(fixedVariantLines),
  ...rowsVariantLines(mapped.split?.inRows),
  ...rowVariantLines(mapped.split?.inRow),
  ...columnLines(mapped.split?.columns),
  ...(mapped.split?.before ?? []).flatMap(ownVariantLines),
  ...ownVariantLines(mapped),
]

/** Variants of launches over the columns of groups. */
const columnLines = (columns: ColumnLaunches | undefined): VariantLine[] =>
  (columns?.launches ?? []).flatMap(ownVariantLines).map((line) => ({
    ...line,
    when: `groups of at most ${columns?.most} columns that are no whole chunks of ${columns?.width}, from 1048576 elements on: ${line.when}`,
  }))

/** Variants of the launch for dimensions that are numbers. */
function fixedVariantLines({ mapped, dims, whole }: FixedSizes): VariantLine[] {
  const tests = [
    ...Object.entries(dims).map(([dim, extent]) => `${dim} = ${extent}`),
    ...(whole === undefined ? [] : [`${whole.dim} is a multiple of ${whole.width}`]),
  ]
  return ownVariantLines(mapped).map((line) => ({ ...line, when: `${tests.join(' and ')}: ${line.when}` }))
}

/** Variants of one launch in place of several, each with the sizes for which the launcher takes that launch. */
function rowsVariantLines(inRows: InRows | undefined): VariantLine[] {
  if (inRows === undefined) return []
  const { mapped, length, kept, groups, many } = inRows
  const size =
    groups === undefined
      ? `one launch, for rows of at most ${kept} elements (${printExpr(length)})${many === undefined ? '' : ` or at least ${many} rows`}`
      : mapped.program.kind === 'columns'
        ? `one launch, for at most ${kept} rows (${printExpr(length)}) or at least ${groups} columns`
        : `one launch, for groups of at most ${kept} elements (${printExpr(length)}) or at least ${groups} groups`
  return ownVariantLines(mapped).map((line) => ({ ...line, when: `${size}: ${line.when}` }))
}

/** Variants of the launch over all elements as one row. */
const rowVariantLines = (inRow: InRow | undefined): VariantLine[] =>
  (inRow === undefined ? [] : ownVariantLines(inRow.mapped)).map((line) => ({
    ...line,
    when: `${inRow === undefined ? '' : inRowText(inRow)}: ${line.when}`,
  }))

function inRowText({ length, width, tile, extents }: InRow): string {
  const columns = printExpr(length)
  const sizes =
    tile === undefined
      ? `${width} does not divide ${columns}`
      : `${columns} is at most ${tile.columns} and planes of ${printExpr(tile.rows)} x ${columns} have at most ${tile.places} places`
  return `all elements as one row of ${extents.map(printExpr).join(' * ')}, where ${sizes}`
}

function ownVariantLines(mapped: MappedKernel): VariantLine[] {
  const { program, vec, key } = mapped
  if (program.kind === 'elementwise' && program.staging !== undefined) {
    const { axis, loads, isRun } = program.staging
    const schedule = `elementwise by tiles: a block of 128 threads loads ${loads.map(({ load }) => load.tensor).join(' and ')} along ${axis.index} into shared memory, chunks of ${vec} elements per thread, or fewer where rows of the result are not aligned`
    return [
      {
        name: key,
        schedule,
        when: `always; tiles of 64 x 64, or of 4, 16 or 32 along a shorter side${isRun ? ', and tiles of up to 16 columns are stored as one run' : ''}`,
      },
    ]
  }
  if (program.kind === 'elementwise') {
    const text = (width: number, threads: number) =>
      `elementwise: a chunk of ${width} elements a thread${isInSpans(mapped) ? ', with those beside it in spans' : ''}, ${threads} threads a block`
    const tuned = (program.tuned ?? []).map((v) => ({
      name: `${key}_${v.name}`,
      schedule: text(v.vec, v.threads),
      when: `${limitText(v)}: ${v.reason}`,
    }))
    return [...tuned, { name: key, schedule: text(vec, program.threads), when: tuned.length === 0 ? 'always' : 'otherwise' }]
  }
  if (program.kind === 'columns') {
    const schedule = `${vec} columns a thread, 32 threads a chunk, each loads ${program.parts * program.each} rows at once`
    // Matches choose_sections and choose_stored_columns (native/device/columns.cuh).
    const few = program.sequence.some(({ kind }) => kind === 'stores') ? `; up to ${4 * program.parts} rows are a thread's` : ''
    const sections = hasSections(program) ? ', and sections of the grid more than 4096 rows,' : ''
    const divided = `${program.parts} blocks of a cluster divide the rows${sections}`
    const when = `always; ${divided} where tiles of columns are few${few}`
    return [{ name: key, schedule, when }]
  }
  if (program.kind === 'totals') {
    const schedule = `a warp for at most 512 chunks of ${vec}, a block for every 2048 of more, at most 1024 blocks; the last to end combines theirs`
    return [{ name: key, schedule, when: 'always; where one block walks alone it computes the outputs too' }]
  }
  return program.variants.map((v) => ({
    name: `${key}_${v.name}`,
    schedule: variantText(v, v.vec ?? vec, program.joined !== undefined),
    when: `${limitText(v)}: ${v.reason}`,
  }))
}

/** The whole schedule: vector width, accesses, passes, variants. Several lines, without a final line end. */
export const describeSchedule = (mapped: MappedKernel): string =>
  [...launchesBeside(mapped.split), mapped].map(describeLaunch).join('\n')

function describeLaunch(mapped: MappedKernel): string {
  const { program, axes, vec } = mapped
  const rows = axes.length === 0 ? 'one row' : `rows over (${axes.map(printAxis).join(', ')})`
  const what = { rows: 'row program', elementwise: 'elementwise', columns: 'column program', totals: 'program of totals' }[
    program.kind
  ]
  return [
    `${mapped.key}: ${what}, ${rows}, chunks of ${vec}`,
    ...(program.kind === 'elementwise' ? stagedLines(program) : []),
    ...stepsOf(mapped).flatMap(stepLines),
    ...(program.kind === 'elementwise' && program.pieces !== undefined ? pieceLines(program.pieces) : []),
    ...(program.kind === 'columns' || program.kind === 'totals' ? dividedLines(program) : []),
    ...ownVariantLines(mapped).map((v) => `  ${v.name}: ${v.schedule}; ${v.when}`),
  ].join('\n')
}

const stagedLines = ({ staging }: ElementwiseProgram): string[] =>
  (staging?.loads ?? []).map(
    ({ name, load, vec }) => `  once a tile: ${name} = load ${printExpr(load)} in chunks of ${vec} along ${staging?.axis.index}`,
  )

const stepLines = (step: Step): string[] =>
  step.kind === 'pass' ? passLines(step.pass) : [`  once a row: ${rowStatementOf(step).describe(step)}`]

const pieceLines = ({ index, bounds, when, steps }: PieceSteps): string[] => [
  when === undefined
    ? `  where a chunk from ${index} on lies in one piece, which ends at ${bounds.map(printExpr).join(' or ')}:`
    : `  where ${printExpr(when)}:`,
  ...steps.flatMap(stepLines).map((line) => `  ${line}`),
]

const dividedLines = ({ kind, sequence }: DividedProgram): string[] =>
  sequence.flatMap((step) => {
    if (step.kind === 'let' || step.kind === 'store')
      return [`  once${kind === 'columns' ? ' a column' : ''}: ${printStmt(step)}`]
    const when = step.kind === 'stores' || step.when === undefined ? '' : ` where ${printExpr(step.when)}`
    return [
      `  walk over ${step.loops.map(({ index, length }) => `${index} < ${printExpr(length)}`).join(', ')}${when}:`,
      ...step.loads.map(({ name, load }) => `    ${name} = load ${printExpr(load)} in chunks`),
      ...(step.kind === 'pass'
        ? step.reductions.map((reduction) => `    ${printReduced(reduction)}`)
        : step.stores.map(({ tensor, indices, value, inChunks }) => {
            const to = `${tensor}[${indices.map(printExpr).join(', ')}]`
            return `    ${to} = ${printExpr(value)}${inChunks ? ', in chunks' : ''}`
          })),
    ]
  })

const passLines = ({ loop, rows, statements }: Pass): string[] => [
  `  pass over ${loop.index} < ${printExpr(loop.length)}:`,
  ...rows.map((row) => `    ${row.name} = ${rowText(row)}${row.keep ? ', kept in registers' : ''}`),
  ...statements.map((s) => `    ${passStatementOf(s).describe(s)}`),
]

function rowText(row: PassRow): string {
  switch (row.kind) {
    case 'loaded':
      return `load ${printExpr(row.load)} in ${row.shift === undefined ? 'chunks' : 'spans'}${shiftText(row.shift)}${row.guard === undefined ? '' : ` where ${printExpr(row.guard)}`}`
    case 'computed':
      return printExpr(row.value)
    case 'scanned':
      return `${typeof row.monoid !== 'string' && 'next' in row.monoid ? 'fold' : 'scan'} ${typeof row.monoid === 'string' ? row.monoid : `field ${row.field}`} of ${row.values.map(printExpr).join(', ')}`
  }
}

/** Distance of the elements of a span from their place. */
const shiftText = (shift = 0): string => (shift === 0 ? '' : `, ${Math.abs(shift)} ${shift < 0 ? 'before' : 'after'}`)

const variantText = (v: Variant, vec: number, isJoined: boolean): string =>
  `${teamText(v.team)}; ${v.chunks === undefined ? `values computed again in every pass${isJoined ? ', sums in that of the maximum that shifts them' : ''}` : `${v.chunks} x ${vec} values a lane in registers`}`

function teamText(team: Team): string {
  switch (team.kind) {
    case 'thread':
      return `a thread a row, ${team.rowsPerBlock} rows a block`
    case 'warp':
      return `${team.lanes === 32 ? 'a warp' : `${team.lanes} lanes`} a row, ${team.rowsPerBlock} rows a block`
    case 'block':
      return `a block of ${team.lanes} threads a row`
  }
}

const oddText = (odd: Limit['odd']): string =>
  odd === undefined ? '' : `, or any number of more than ${odd.above} elements that are no whole chunks of ${odd.width}`

function limitText({ limit }: Pick<Variant, 'limit'>): string {
  const { tuned } = limit
  const bounds = [
    ...(tuned === undefined ? [] : [`on ${tuned.architecture} rows of ${tuned.length} elements`]),
    ...(tuned === undefined || tuned.fromRows === 1 ? [] : [`at least ${tuned.fromRows} rows`]),
    ...(limit.length === undefined ? [] : [`rows of at most ${limit.length} elements`]),
    ...(limit.whole === undefined ? [] : [`whole chunks of ${limit.whole}`]),
    ...(limit.rows === undefined ? [] : [`at most ${limit.rows} rows${oddText(limit.odd)}`]),
  ]
  return bounds.length === 0 ? 'otherwise' : bounds.join(' and ')
}
