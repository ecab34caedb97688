/**
 * Loop IR as CUDA source. Every decision has been taken: a node is printed as it is. Names of the kernel are kept; names that lowering made up are
 * replaced by fresh ones where they are declared.
 */
import { mark } from '../../ir/trace.js'
import { firstOf, placeOf } from '../../loop/chunk_values.js'
import {
  type CountPlaces,
  type IfExists,
  type LaneLoop,
  type Loop,
  type Search,
  type VectorLoop,
  type Version,
  wholeFlag,
} from '../../loop/ir.js'
import { passStatementOf } from '../../schedule/constructs/index.js'
import { callText, searchTexts } from '../constructs/index.js'
import { bodyWriter, insert, lines } from '../kernels/frame.js'
import { render } from '../templates.js'
import { apartArguments, apartLine, pairedLine, printApart } from './apart.js'
import type { PassContext } from './context.js'
import { printDivided } from './divided_loop.js'
import { operandText } from './expression.js'
import { leafText, timesText } from './loop_leaf.js'
import { type Printing, pairedText, placeText } from './state.js'
import { printTileLoop } from './tiles.js'
import { hasFullChunks, printPiece, printWork, validLine } from './work.js'

export function printLoops(loops: readonly Loop[], outer: PassContext): void {
  const given = new Map<string, string>()
  const names = { ...outer.names, value: (name: string): string => given.get(name) ?? outer.names.value(name) }
  print(loops, { context: { ...outer, names }, given, first: '', searches: new Map() })
}

function print(loops: readonly Loop[], printing: Printing): void {
  for (const loop of loops) {
    switch (loop.kind) {
      case 'version':
        printVersion(loop, printing)
        break
      case 'work':
        printWork(loop, printing, print)
        break
      case 'piece':
        printPiece(loop, printing, printLoops)
        break
      case 'for':
        printFor(loop, printing)
        break
      default:
        for (const line of linesOf(loop, printing)) printing.context.writer.writeLine(line)
    }
  }
}

function printFor(loop: Extract<Loop, { readonly kind: 'for' }>, printing: Printing): void {
  switch (loop.owner) {
    case 'lane':
      printLanes(loop, printing)
      return
    case 'vector':
      printVector(loop, printing)
      return
    case 'block':
      printTileLoop(loop, printing, print)
      return
    default:
      printDivided(loop, printing, print)
  }
}

/** Lines of a node that is no loop. */
function linesOf(loop: Loop, printing: Printing): readonly string[] {
  const { context } = printing
  if (loop.kind === 'exists') {
    const condition = existsText(loop, printing)
    const body = loop.body.flatMap((each) => linesOf(each, printing))
    if (body.length === 0) return []
    if (body.length === 1) return [`if (${condition}) ${body[0]}`]
    return [`if (${condition}) {`, ...body.map((line) => `  ${line}`), '}']
  }
  if (loop.kind === 'search') return searchLines(loop, printing)
  if (loop.kind === 'count') return []
  if (loop.kind === 'call') return [callText(loop.stmt, context)]
  if (loop.kind === 'for' || loop.kind === 'version' || loop.kind === 'work' || loop.kind === 'piece')
    throw new Error('internal: a loop stands among the elements of a chunk')
  return leafText(loop, printing)
}

/** A thread of columns may have no chunk, also where all chunks are whole. */
function existsText({ whole }: IfExists, { context: { walk } }: Printing): string {
  if (!whole) return 'i < valid'
  return walk === 'columns' ? 'WHOLE ? valid > 0 : i < valid' : 'WHOLE || i < valid'
}

function searchLines({ stmt, part }: Search, { context, first, searches }: Printing): readonly string[] {
  const written =
    searches.get(stmt) ?? searchTexts(stmt, { context, first: first === '' ? context.names.first(stmt.loop.index) : first })
  searches.set(stmt, written)
  const places = mark(...passStatementOf(stmt).values(stmt))
  return (written[part]?.() ?? []).map((line) => line + places)
}

function printVersion(version: Version, printing: Printing): void {
  const { lengths, aligned, multiples, apart, pairs = false, ofChunk, body } = version
  const { context, given } = printing
  const { writer, names } = context
  given.set(wholeFlag, 'WHOLE')
  if (apart === true && context.isLaunched === true) {
    writer.writeLine(apartLine)
    if (pairs) writer.writeLine(pairedLine(version, context))
    print(body, { ...printing, context: { ...context, isVersioned: true }, apart: apartArguments, pairs })
    return
  }
  const tests = new Set(lengths.map((length) => (length === undefined ? 'false' : `${operandText(length, context)} % VEC == 0`)))
  if (ofChunk === true) tests.add('valid >= VEC')
  for (const { tensor, start, factor } of aligned) {
    const offset = start === undefined || multiples.has(start) ? '0' : (given.get(start) ?? '')
    const isAligned = factor === undefined ? 'is_aligned' : 'groups_aligned'
    tests.add(`heddle::${isAligned}<${timesText('VEC', factor)}>(${names.tensor(tensor)}, ${offset})`)
  }
  const inner = bodyWriter(2)
  if (apart === true) inner.writeLine(apartLine)
  if (pairs) inner.writeLine(pairedLine(version, context))
  print(body, {
    ...printing,
    pairs,
    context: { ...context, writer: inner, isVersioned: true },
    ...(apart === true ? { apart: apartArguments } : {}),
  })
  insert(render('whole', { condition: tests.size === 0 ? 'true' : [...tests].join(' &&\n      '), body: lines(inner) }), writer)
}

function printLanes(loop: LaneLoop, printing: Printing): void {
  const { context, given } = printing
  const { writer, names } = context
  const { index, walk, together } = loop
  const length = operandText(loop.length, context)
  if (loop.step === 'element') {
    const name = names.value(index)
    const header = `for (int ${name} = team.lane(); ${name} < ${length}; ${name} += Team::lanes)`
    writer.write(header).block(() => print(loop.body, printing))
    return
  }
  const first = names.first(index)
  given.set(firstOf(index), first)
  given.set(placeOf(index), 'i')
  const body = (): void => print(loop.body, { ...printing, first })
  if (walk === 'single') {
    body()
  } else if (walk === 'columns') {
    const apart = loop.apart === true ? 'VEC, STEP' : undefined
    if (apart !== undefined) writer.writeLine('constexpr int STEP = WHOLE ? 1 : Team::lanes;')
    const paired = apart === undefined ? '' : pairedText(printing)
    const firstOfTile = `heddle::first_column<Team, VEC${apart === undefined ? '' : ', STEP'}>(team, tile, ${length}${paired})`
    writer.writeLine(`const int ${first} = ${firstOfTile};`)
    writer.writeLine(
      `const int valid = heddle::columns_left${apart === undefined ? '' : '<STEP>'}(${first}, ${length}${paired});`,
    )
    print(loop.body, { ...printing, first, ...(apart === undefined ? {} : { apart }) })
  } else if (printing.apart !== undefined) {
    printApart(loop, first, printing, body)
  } else if (walk === 'kept') {
    writer.writeLine('HEDDLE_UNROLL')
    writer.write('for (int chunk = 0; chunk < CHUNKS; ++chunk)').block(() => {
      if (together) writer.writeLine(`if (chunk * Team::lanes * VEC >= ${length}) break;`)
      writer.writeLine(`const int ${first} = (chunk * Team::lanes + team.lane()) * VEC;`)
      if (!together && hasFullChunks(loop.length, context)) {
        writer.writeLine(`if (${first} >= ${length}) break;`)
        writer.writeLine(validLine(loop.length, first, context))
      } else {
        writer.writeLine(`const int valid = ${length} - ${first};`)
        if (!together) writer.writeLine('if (valid <= 0) break;')
      }
      body()
    })
  } else {
    if (loop.unrolled) writer.writeLine('HEDDLE_UNROLL_FEW')
    const chunks = `heddle::chunks_of<VEC>(${length})`
    const start = together ? `int round = 0; round < ${chunks}; round` : `int chunk = team.lane(); chunk < ${chunks}; chunk`
    writer.write(`for (${start} += Team::lanes)`).block(() => {
      if (together) writer.writeLine('const int chunk = round + team.lane();')
      writer.writeLine(`const int ${first} = chunk * VEC;`)
      // Beyond the last chunk of a very long row, the place itself may not fit 32 bits.
      writer.writeLine(
        together ? `const int valid = chunk < ${chunks} ? ${length} - ${first} : 0;` : validLine(loop.length, first, context),
      )
      body()
    })
  }
}

function printVector({ index, body }: VectorLoop, printing: Printing): void {
  const { context } = printing
  const { writer, names, used } = context
  const counts = body.filter((each) => each.kind === 'count').map((each) => printCount(each, printing))
  used.indices.delete(index)
  const inside = body.flatMap((each) => linesOf(each, printing))
  if (inside.length === 0) return
  writer.writeLine('HEDDLE_UNROLL')
  writer.write('for (int i = 0; i < VEC; ++i)').block(() => {
    if (used.indices.has(index)) writer.writeLine(`const int ${names.value(index)} = ${placeText(printing)};`)
    for (const line of inside) writer.writeLine(line)
    for (const name of counts) writer.writeLine(`${name}.next();`)
  })
}

/** Declares the places of a chunk, which its elements count. @returns the variable */
function printCount({ divisors, quotients, remainders }: CountPlaces, printing: Printing): string {
  const { first, context, given } = printing
  const name = context.names.fresh('places')
  for (const [i, each] of quotients.entries()) given.set(each, `${name}.quotient(${i})`)
  for (const [i, each] of remainders.entries()) given.set(each, `${name}.remainder(${i})`)
  const by = divisors.map((divisor) => operandText(divisor, context))
  context.writer.writeLine(`heddle::Places<${divisors.length}> ${name}(${[first, ...by].join(', ')});`)
  return name
}
