/** Prints the loop IR for people: a line per node, with the owner of each loop. Used by `heddle inspect --passes`. */

import type { Expr } from '../ir/expr.js'
import { printExpr } from '../ir/print.js'
import { printAxis } from '../ir/row_axis.js'
import type { Interval, Sum } from '../schedule/divided/update_range.js'
import type { Access, Accumulator, Copy, Digit, DividedLoop, LaneLoop, Loop, Work } from './ir.js'
import type { TileLayout } from './tile_layout.js'

/** Loops as text, two spaces of indent per level. */
export const printLoops = (loops: readonly Loop[], indent = ''): string =>
  loops.map((loop) => `${indent}${lineOf(loop)}\n${'body' in loop ? printLoops(loop.body, `${indent}  `) : ''}`).join('')

const when = (condition: Expr | undefined): string => (condition === undefined ? '' : ` if ${printExpr(condition)}`)
const place = ({ tensor, indices }: { readonly tensor: string; readonly indices: readonly Expr[] }): string =>
  `${tensor}[${indices.map(printExpr).join(', ')}]`
const checks = ({ whole }: Access): string => (whole ? ', unchecked' : '')

function lineOf(loop: Loop): string {
  switch (loop.kind) {
    case 'work':
      return workText(loop)
    case 'piece':
      return `if no piece of ${loop.loop} ends in the chunk from ${loop.index}, at ${loop.bounds.map(printExpr).join(' or ')}: this, and nothing after it`
    case 'narrow':
      return `let ${loop.interval.axis.index} = place of the slot ${boundsText(loop.interval)}; a slot after the last is done`
    case 'tile':
      return `shared ${loop.name}: tile of ${loop.tensor}, ${wordsText(loop.layout)}`
    case 'fillTile':
      return `${loop.tile}[${loop.columns.index}, ${loop.rows.index}] = load ${place(loop.load)} in chunks of ${loop.vec} along ${loop.rows.index}: threads of the block`
    case 'for':
      return forText(loop)
    case 'let':
      return `let ${loop.name}: ${loop.type} = ${printExpr(loop.value)}${loop.ofChunk === undefined ? '' : ' (once per chunk)'}`
    case 'offset':
      return `let ${loop.name}: i64 = ${printExpr(loop.value)}`
    case 'buffer':
      return `registers ${loop.name}: ${loop.type} of a ${loop.shape}`
    case 'copy':
      return copyText(loop)
    case 'held':
      return `shared ${loop.name}: rows of ${loop.load.tensor} (${printExpr(loop.length)}) of each thread, where a launch has room`
    case 'prefetch':
      return `prefetch ${loop.name} = ${place(loop.copy.load)} (if a lane has one chunk)`
    case 'request':
      return `request ${loop.tensor} (${printExpr(loop.length)} elements, before the kernel waits)`
    case 'count':
      return `count ${loop.index} by ${loop.divisors.map(printExpr).join(', then by ')}: ${[...loop.quotients, ...loop.remainders].join(', ')}`
    case 'compute':
      return `${loop.row} = ${'kind' in loop.value ? printExpr(loop.value) : accumulatorName(loop.value.scan)}`
    case 'groups':
      return `${loop.row} = ${printExpr(loop.value)} of ${loop.group} = ${loop.column} / ${printExpr(loop.length)}: once per group, by threads of the block`
    case 'fill':
      return `${loop.buffer} = ${printExpr(loop.value)}${when(loop.when)}`
    case 'accumulator':
      return `${loop.columns === true ? 'columns of ' : ''}${loop.scan ? 'scan' : 'accumulator'} ${accumulatorName(loop)}: ${typeof loop.monoid === 'string' ? loop.monoid : 'of the op'}`
    case 'accumulate':
      return `${loop.part === undefined ? '' : `${loop.part} of `}${accumulatorName(loop.into)} += ${loop.values.map(printExpr).join(', ')}`
    case 'rescale':
      return `let ${loop.accumulator.shift} = maximum of ${accumulatorName(loop.accumulator)}, to which its sums are scaled`
    case 'combine':
      return combineText(loop)
    case 'announce':
      return `announce the exchange of ${loop.accumulators.map(accumulatorName).join(', ')}`
    case 'exchange':
      return exchangeText(loop)
    case 'storeChunk':
      return `store chunk ${place(loop.access)}${groupText(loop.access)} = ${loop.buffer}${when(loop.when)}${checks(loop.access)}`
    case 'store':
      return `store ${place(loop)} = ${printExpr(loop.value)}${when(loop.when)} (${loop.by})`
    case 'exists':
      return `if the element exists${loop.whole ? ', or in whole rows' : ''}`
    case 'shared':
      return `shared ${loop.row.name}: ${loop.row.type} of ${loop.row.length}`
    case 'put':
      return `${loop.row}[${loop.index}] = ${printExpr(loop.value)}`
    case 'barrier':
      return `barrier${loop.scope === 'block' ? ' of the block' : ''}${loop.publishes.length === 0 ? '' : `: ${loop.publishes.join(', ')} can be read`}`
    case 'search':
      return `${loop.stmt.kind}: ${loop.part}${loop.part === 'element' ? ` ${printExpr(loop.stmt.value)}` : ''}`
    case 'call':
      return `call ${loop.stmt.kind === 'team' ? loop.stmt.construct : loop.stmt.kind}`
    case 'version':
      return versionText(loop)
  }
}

type Of<Kind extends Loop['kind']> = Extract<Loop, { readonly kind: Kind }>

function combineText({ accumulator, into, across }: Of<'combine'>): string {
  const names = into.map(({ name }) => name).join(', ')
  return `${names === '' ? '' : `let ${names} = `}combine ${accumulatorName(accumulator)} across ${across}`
}

function exchangeText({ parts, across, sections }: Of<'exchange'>): string {
  const into = parts.flatMap((part) => part.into.map(({ name }) => name)).join(', ')
  const slots = sections === true ? 'slots and sections' : 'slots'
  const owner = across === 'slot' ? `${slots}, for each column` : 'the grid, by its last block'
  return `let ${into} = combine ${parts.map(({ accumulator }) => accumulatorName(accumulator)).join(', ')} across ${owner}`
}

function versionText({ lengths, aligned, stated, apart, pairs, ofChunk }: Of<'version'>): string {
  if (ofChunk === true)
    return `two versions: full chunks if ${[...new Set(aligned.map(({ tensor }) => tensor))].join(', ')} aligned, others`
  const whole = lengths.map((length) => (length === undefined ? 'false' : `${printExpr(length)} % VEC == 0`))
  const tensors = [...new Set(aligned.map(({ tensor }) => tensor))].join(', ')
  const known = stated.map((length) => `; VEC divides ${printExpr(length)} by facts`)
  return `two versions: whole rows if ${[...new Set(whole), `${tensors} aligned`].join(' and ')}${[...new Set(known)].join('')}${apart === true ? '; elements of a chunk apart in others' : ''}${pairs === true ? ', in pairs of an even length' : ''}`
}

function forText(loop: Of<'for'>): string {
  switch (loop.owner) {
    case 'vector':
      return `for ${loop.index} in chunk: vector`
    case 'lane':
      return laneText(loop)
    case 'block':
      return `for ${loop.rows.index}, ${loop.columns.index} in tile: threads of the block, chunks of VEC${loop.isRun ? ', from one row to the next where tiles have all columns' : ''}`
    default:
      return dividedText(loop)
  }
}

/** Owners of the shares of the work. */
const owners: Readonly<Record<Work['owner'], string>> = {
  thread: 'threads',
  team: 'teams',
  block: 'blocks',
  cluster: 'clusters',
  grid: 'several teams each',
}

function workText({ owner, digits }: Work): string {
  const all = digits.map((digit) => digitText(digit, owner))
  return `${all.length === 0 ? 'once' : `for ${all.join(', ')}`}: ${owners[owner]}`
}

function digitText(digit: Digit, owner: Work['owner']): string {
  switch (digit.of) {
    case 'axis':
      return printAxis(digit.axis)
    case 'slots':
      return `slots of ${printAxis(digit.interval.axis)}`
    case 'chunks':
      return `${digit.index} < ${printExpr(digit.length)} in chunks of VEC${owner === 'thread' ? '' : ' for each lane'}`
    case 'tiles':
      return `${digit.index} < ${printExpr(digit.length)} in tiles`
  }
}

const boundsText = ({ bounds }: Interval): string =>
  bounds
    .map((bound) => (bound.kind === 'if' ? `if ${printExpr(bound.part)}` : `${bound.kind} ${sumText(bound.place)}`))
    .join(', ')

const sumText = (sum: Sum): string =>
  sum.map(({ sign, value }, i) => `${i === 0 && sign === '+' ? '' : `${sign} `}${printExpr(value)}`).join(' ')

const wordsText = ({ perWord, skew }: TileLayout): string =>
  `${perWord === 1 ? 'a word an element' : `${perWord} elements a word`}, columns ${skew} ${skew === 1 ? 'word' : 'words'} apart`

const accumulatorName = ({ of, name }: Accumulator): string => of ?? name

function laneText({ index, length, step, walk, together, unrolled, apart }: LaneLoop): string {
  const rounds = {
    kept: 'all in registers',
    reread: unrolled ? 'a few unrolled' : 'one after the other',
    single: 'one a thread',
    columns: 'one for threads that divide its rows',
    parts: 'one after the other',
  }[walk]
  return `for ${index} < ${printExpr(length)}: lanes, ${step === 'element' ? 'one element each' : `chunks of VEC, ${rounds}`}${together ? ', all meet' : ''}${apart === true ? ', columns of a chunk apart where rows are not whole' : ''}`
}

function dividedText({ owner, loops, step, when: condition }: DividedLoop): string {
  const all = loops.map(({ index, length }) => `${index} < ${printExpr(length)}`).join(', ')
  const by =
    owner === 'slot' ? 'slots, some rows at once' : `the grid, some ${step === 'chunk' ? 'chunks of VEC' : 'elements'} at once`
  return `for ${all}: ${by}${when(condition)}`
}

const groupText = ({ factor }: Access): string => (factor === undefined ? '' : ` in groups of ${factor}`)

function copyText({ row, load, access, shape, guard, prefetched, span, held, members }: Copy): string {
  const from = prefetched === undefined ? '' : `, or ${prefetched}`
  const kept = held === undefined ? '' : held.is === 'left' ? `, left in ${held.rows}` : `, or taken from ${held.rows}`
  if (span !== undefined) {
    const rows = span.rows.map((each) => `${each.row} at ${each.shift}`).join(', ')
    return `${rows} = load span ${place(load)}, ${span.before} before and ${span.after} after${when(guard)}${checks(access)}`
  }
  if (members !== undefined) {
    const rows = members.map((each) => `${each.row} is member ${each.member}`).join(', ')
    return `${rows} of load chunk ${place(load)} in groups of ${access.factor}${when(guard)}${checks(access)}`
  }
  return `${row} = load ${shape === 'row' ? 'all chunks of' : 'chunk'} ${place(load)}${from}${kept}${when(guard)}${checks(access)}`
}
