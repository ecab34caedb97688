/** Nodes of the loop IR without a body as lines of CUDA source. */
import type { Expr, ExprOf } from '../../ir/expr.js'
import { mark } from '../../ir/trace.js'
import type {
  Access,
  Accumulate,
  Accumulator,
  Buffer,
  Combine,
  Compute,
  Copy,
  Let,
  Loop,
  Prefetch,
  Rescale,
  Span,
  Store,
  StoreChunk,
} from '../../loop/ir.js'
import { putLine, sharedLines } from '../constructs/shared_row.js'
import { apartText } from './apart.js'
import type { PassContext } from './context.js'
import { announceLine, exchangeLines, heldLine } from './exchange.js'
import { expressionText, offsetText, operandText, type Scope, tensorOf, wideText } from './expression.js'
import { groupLines } from './groups.js'
import { scalarText, storageText } from './names.js'
import { narrowLines } from './narrow.js'
import { functorText } from './reductions.js'
import { beforeStore } from './rounding.js'
import { declare, type Printing, pairedText, placeText } from './state.js'
import { fillLines, tileLine } from './tiles.js'
import { fieldsText, fieldText } from './user_monoid.js'
import { isFold } from './user_monoids.js'

type Leaf = Exclude<Loop, { readonly kind: 'work' | 'piece' | 'for' | 'version' | 'exists' | 'search' | 'call' | 'count' }>

export function leafText(loop: Leaf, printing: Printing): readonly string[] {
  const { context, given } = printing
  const { names } = context
  switch (loop.kind) {
    case 'let':
      return [letLine(loop, printing)]
    case 'offset':
      return [`const int64_t ${declare(loop.name, 'start', printing)} = ${wideText(loop.value, context)};`]
    case 'buffer':
      return [bufferLine(loop, printing)]
    case 'copy':
      return loop.shape === 'row' ? rowLines(loop, names.value(loop.row), 'CHUNKS', printing) : [chunkLine(loop, printing)]
    case 'request':
      return [`heddle::request_vector(${names.tensor(loop.tensor)}, ${operandText(loop.length, context)});`]
    case 'prefetch':
      return prefetchLines(loop, printing)
    case 'compute':
      return [computeLine(loop, printing)]
    case 'groups':
      return groupLines(loop, printing)
    case 'fill': {
      const value = storedText(loop, context)
      return [`${whenText(loop, context)}${given.get(loop.buffer)}[${memberText(loop.place)}] = ${value};`]
    }
    case 'accumulator':
      return [accumulatorLine(loop, printing)]
    case 'accumulate':
      return [accumulateLine(loop, printing)]
    case 'rescale':
      return [rescaleLine(loop, printing)]
    case 'combine':
      return combineLines(loop, printing)
    case 'announce':
      return [announceLine(loop, printing)]
    case 'held':
      return [heldLine(loop, printing)]
    case 'exchange':
      return exchangeLines(loop, printing)
    case 'storeChunk':
      return [storeChunkLine(loop, printing)]
    case 'store':
      return [storeLine(loop, context)]
    case 'shared':
      return sharedLines(loop.row, context)
    case 'put':
      return [putLine(loop, context)]
    case 'narrow':
      return narrowLines(loop.interval, context)
    case 'tile':
      return [tileLine(loop, printing)]
    case 'fillTile':
      return fillLines(loop, printing)
    case 'barrier':
      if (loop.scope === 'block') return ['__syncthreads();']
      for (const name of loop.publishes) context.shared?.set(name, `${names.value(name)}.get`)
      return [`team.meet();${mark(...(loop.from ?? []))}`]
  }
}

function bufferLine({ name: given, of, row, shape, type, factor, zero, from }: Buffer, printing: Printing): string {
  const { names, elements } = printing.context
  const name = of === undefined ? names.value(given) : declare(given, of, printing)
  if (row !== undefined) elements.set(row, shape === 'row' ? `${name}[chunk][i]` : `${name}[i]`)
  return `${scalarText[type]} ${name}${shape === 'row' ? '[CHUNKS][VEC]' : `[${timesText('VEC', factor)}]`}${zero ? ' = {}' : ''};${mark(...from)}`
}

function letLine({ name, type, value, ofChunk }: Let, printing: Printing): string {
  const { names } = printing.context
  const text = expressionText(value, printing.context)
  const { tensor } = ofChunk ?? {}
  const wanted = tensor === undefined ? 'of_chunk' : `${names.tensor(tensor)}_of_chunk`
  const given = ofChunk === undefined || ofChunk.named ? names.value(name) : declare(name, wanted, printing)
  return `const ${scalarText[type]} ${given} = ${ofChunk?.masked === true ? `valid > 0 ? ${text} : 0` : text};`
}

/** Template arguments of a chunk access: its width, and whether it needs no checks. */
const widthText = ({ whole, factor }: Access, { walk, isVersioned }: PassContext): string =>
  `${timesText('VEC', factor)}${walk === 'single' && isVersioned !== true ? '' : `, ${whole ? 'WHOLE' : 'false'}`}`

/** Source of a number of elements, of which each index of a loop has `factor`. */
export const timesText = (count: string, factor: number | undefined): string =>
  factor === undefined ? count : `${count} * ${factor}`

/** Source of the place of a member in a chunk of groups. */
const memberText = (of: { readonly factor: number; readonly member: number } | undefined): string =>
  of === undefined ? 'i' : `i * ${of.factor}${of.member === 0 ? '' : ` + ${of.member}`}`

/** Offset of the element at loop index `at`. */
function chunkOffset(access: Access, at: string, { context, given }: Printing): string {
  const { run, rows, start, index, tensor, indices, factor } = access
  const moved = factor === undefined ? at : `static_cast<int64_t>(${at}) * ${factor}`
  if (rows === undefined && run === Number.POSITIVE_INFINITY)
    return start === undefined ? moved : `${given.get(start)} + ${moved}`
  const value = (name: string): string => (name === index ? at : context.names.value(name))
  return offsetText(tensor, indices, { ...context, names: { ...context.names, value } })
}

/** Loads a lane's chunks of a row into an array. */
function rowLines({ load, access, guard, length, row }: Copy, name: string, chunks: string, printing: Printing): string[] {
  const { context, apart } = printing
  const { names } = context
  if (chunks === 'CHUNKS') context.elements.set(row, `${name}[chunk][i]`)
  const element = names.value(access.index)
  const place = `[&](int ${element}) -> int64_t { return ${chunkOffset(access, element, printing)}; }`
  const extent = operandText(length, context)
  const call = apart === undefined ? `load_row<${widthText(access, context)}` : `load_row_apart<${apartText(access, apart)}`
  const text = `heddle::${call}>(team, ${names.tensor(load.tensor)}, ${extent}, ${name}, ${place}${pairedText(printing)});${mark(load)}`
  const chunk = `heddle::Chunk<${storageText(tensorOf(load.tensor, context), names)}, VEC> ${name}[${chunks}]${mark(load)}`
  return guard === undefined ? [`${chunk};`, text] : [`${chunk} = {};`, `if (${operandText(guard, context)}) ${text}`]
}

function prefetchLines({ name, copy }: Prefetch, printing: Printing): string[] {
  const given = declare(name, `soon_${printing.context.names.value(copy.row)}`, printing)
  const [chunk = '', load = ''] = rowLines(copy, given, '1', printing)
  return [chunk, `if constexpr (CHUNKS == 1) ${load}`]
}

/** Source of a chunk load that reads nothing if a guard does not hold. */
export function guardedText(
  { load, guard, span }: { readonly load: ExprOf<'load'>; readonly guard?: Copy['guard']; readonly span?: Copy['span'] },
  text: string,
  scope: Scope,
): string {
  if (guard === undefined) return text
  const type = storageText(tensorOf(load.tensor, scope), scope.names)
  const none = isWider(span) ? `Span<${type}, VEC, ${span.before}, ${span.after}>` : `Chunk<${type}, VEC>`
  return `${expressionText(guard, scope)} ? ${text} : heddle::${none}{}`
}

/** Source of one chunk. */
export const chunkText = ({ load, access }: Copy, printing: Printing): string =>
  `heddle::${printing.apart === undefined ? `${access.factor === undefined ? 'load_chunk' : 'load_groups'}<${widthText(access, printing.context)}` : `load_apart<${apartText(access, printing.apart)}`}>(${printing.context.names.tensor(load.tensor)}, ${chunkOffset(access, printing.first, printing)}, ${timesText('valid', access.factor)}${pairedText(printing)})`

/** True for a span with elements beside its chunk. */
const isWider = (span: Span | undefined): span is Span => span !== undefined && span.before + span.after > 0

/** Source of one chunk with the elements beside it. */
const spanText = ({ load, access }: Copy, { before, after }: Span, printing: Printing): string =>
  `heddle::load_span<VEC, ${before}, ${after}${access.whole ? ', WHOLE' : ''}>(${printing.context.names.tensor(load.tensor)}, ${chunkOffset(access, printing.first, printing)}, ${printing.first}, valid)`

/** Source of the place of an element beside that of the loop over a chunk. */
const placeBeside = (shift: number): string => (shift === 0 ? 'i' : `i ${shift < 0 ? '-' : '+'} ${Math.abs(shift)}`)

/** A load of one chunk. */
function chunkLine(copy: Copy, printing: Printing): string {
  const { context, given } = printing
  const { row, load, prefetched } = copy
  const name = context.names.value(row)
  const guarded = guardedText(copy, isWider(copy.span) ? spanText(copy, copy.span, printing) : chunkText(copy, printing), context)
  const { factor = 1 } = copy.access
  for (const { row: of, member } of copy.members ?? []) context.elements.set(of, `${name}[${memberText({ factor, member })}]`)
  for (const { row: of, shift } of copy.span?.rows ?? (copy.members === undefined ? [{ row, shift: 0 }] : []))
    context.elements.set(of, `${name}[${placeBeside(shift)}]`)
  return `const auto ${name} = ${prefetched === undefined ? guarded : `CHUNKS == 1 ? ${given.get(prefetched)}[0] : ${guarded}`};${mark(load)}`
}

function computeLine({ row, type, value, shape }: Compute, printing: Printing): string {
  const { context } = printing
  const name = context.names.value(row)
  const text = 'kind' in value ? expressionText(value, context) : scannedText(value.scan, value.field, printing)
  if (shape === 'row') return `${name}[chunk][i] = ${text};`
  if (shape === 'chunk') return `${name}[i] = ${text};`
  context.elements.set(row, name)
  return `const ${scalarText[type]} ${name} = ${text};`
}

/** Declares an accumulator: of a lane, of each column of a thread, or of the values up to each element, or of a recurrence with its initial values. */
function accumulatorLine(accumulator: Accumulator, printing: Printing): string {
  const { name, of, monoid, columns, scan, rows, starts, from } = accumulator
  const { context } = printing
  const wanted = `${of === undefined ? 'merged' : context.names.value(of)}_${columns === true ? 'sums' : 'lanes'}`
  const given = declare(name, wanted, printing)
  for (const { row, field } of rows) context.elements.set(row, scannedText(accumulator, field, printing))
  const functor = functorText(accumulator, context)
  if (columns === true) return `heddle::ColumnSums<${functor}, Team, VEC> ${given};${mark(...from)}`
  if (accumulator.shift !== undefined) return `heddle::Shifted<${functor}> ${given};${mark(...from)}`
  if (!scan)
    return `heddle::${context.walk === 'kept' ? `RowShare<Team, ${functor}>` : `Accumulator<${functor}>`} ${given};${mark(...from)}`
  if (typeof monoid === 'string' || !isFold(monoid))
    return `heddle::${printing.apart === undefined ? `Prefix<${functor}, VEC>` : `RowPrefix<${functor}, VEC, STEP>`} ${given};${mark(...from)}`
  return `heddle::Carry<${functor}, VEC> ${given}(${fieldsText(starts.map((start) => expressionText(start, context)))});`
}

/** An element of a scan. */
function scannedText({ name, monoid }: Pick<Accumulator, 'name' | 'monoid'>, field: number, { given }: Printing): string {
  const element = `${given.get(name)}[i]`
  return typeof monoid === 'string' ? element : fieldText(monoid, field, element)
}

/** Scales the sums of a lane, and declares what the terms of a chunk are shifted by. */
function rescaleLine({ accumulator: { name, shift = '', from } }: Rescale, printing: Printing): string {
  return `const float ${declare(shift, 'shift', printing)} = ${printing.given.get(name)}.rescale();${mark(...from)}`
}

function accumulateLine({ into, values, part }: Accumulate, printing: Printing): string {
  const { context, given, row } = printing
  const texts = values.map((value) => expressionText(value, context))
  if (part !== undefined)
    return `${given.get(into.name)}.${part === 'maximum' ? 'raise' : 'add_terms'}(${texts.join(', ')});${mark(...values)}`
  const element = typeof into.monoid === 'string' ? texts.join() : fieldsText(texts)
  if (into.columns === true) return `${given.get(into.name)}.add(i, ${element}, ${row});${mark(...values)}`
  return `${given.get(into.name)}.add(${into.scan ? 'i, ' : ''}${element}, ${placeText(printing)});${mark(...values)}`
}

function combineLines({ accumulator, across, into }: Combine, { context, given, apart }: Printing): string[] {
  const { name, monoid, scan, from } = accumulator
  const [lanes, places] = [given.get(name), mark(...from)]
  if (across === 'vector') return [`${lanes}.end_chunk();${places}`]
  if (scan) {
    const isCarried = typeof monoid !== 'string' && isFold(monoid)
    return [
      `${isCarried ? `heddle::take_turns(team, ${lanes});` : apart === undefined ? `team.scan(${lanes});` : `heddle::scan_row(team, ${lanes});`}${places}`,
    ]
  }
  const { names } = context
  const [total] = into
  if (typeof monoid === 'string' && total !== undefined)
    return [`const ${scalarText[total.type]} ${names.value(total.name)} = team.reduce(${lanes});${places}`]
  if (typeof monoid === 'string') throw new Error('internal: a reduction has no result')
  const all = names.fresh('merged_fields')
  return [
    `const auto ${all} = ${accumulator.shift === undefined ? `team.reduce(${lanes})` : `heddle::reduce_shifted(team, ${lanes})`};${places}`,
    ...into.map(
      (field, i) =>
        `[[maybe_unused]] const ${scalarText[field.type]} ${names.value(field.name)} = ${fieldText(monoid, i, all)};${places}`,
    ),
  ]
}

function storeChunkLine(store: StoreChunk, printing: Printing): string {
  const { context, given, apart, first } = printing
  const { access, buffer, from } = store
  const written = access.factor === undefined ? (context.chunkStore ?? 'store_chunk') : 'store_groups'
  const chunk = `heddle::${written}<${widthText(access, context)}>`
  const call = apart === undefined ? chunk : `heddle::store_apart<${apartText(access, apart)}>`
  const place = `${context.names.tensor(access.tensor)}, ${chunkOffset(access, first, printing)}`
  return `${whenText(store, context)}${call}(${place}, ${timesText('valid', access.factor)}, ${given.get(buffer)}${pairedText(printing)});${mark(...from)}`
}

/** A store of one element. */
function storeLine({ tensor, indices, value, when, by }: Store, context: PassContext): string {
  const { names } = context
  const write = (stored: string): string =>
    `heddle::write(${names.tensor(tensor)}, ${offsetText(tensor, indices, context)}, ${stored});`
  const isFirst = by === 'first slot' ? 'if (team.stores()) ' : ''
  if (by !== 'first lane')
    return `${isFirst}${whenText({ when }, context)}${write(storedText({ tensor, value }, context))}${mark(value)}`
  const also = when === undefined ? '' : ` && ${operandText(when, context)}`
  return `if (team.lane() == 0${also}) ${write(expressionText(value, context))}`
}

/** Guard of a statement that is executed only where its condition holds. */
const whenText = ({ when }: { readonly when?: Expr | undefined }, context: Scope): string =>
  when === undefined ? '' : `if (${expressionText(when, context)}) `

const storedText = ({ tensor, value }: { readonly tensor: string; readonly value: Expr }, context: Scope): string =>
  expressionText(beforeStore(value, tensorOf(tensor, context).dtype), context)
