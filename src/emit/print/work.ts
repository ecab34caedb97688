/**
 * Division of a kernel's work as CUDA source: the position of a thread, team or block in the launch, from which the digits of its share are split,
 * innermost first.
 */
import type { Expr } from '../../ir/expr.js'
import { getOwn } from '../../ir/get_own.js'
import type { RowAxis } from '../../ir/kernel.js'
import { dimsOf, isMerged } from '../../ir/row_axis.js'
import { type Digit, eachLoop, type Loop, type OnePiece, type Work } from '../../loop/ir.js'
import { isFull, noMultiples } from '../../schedule/access/multiples.js'
import { bodyWriter, insert, lines } from '../kernels/frame.js'
import type { PassContext } from './context.js'
import { expressionText, operandText, type Scope } from './expression.js'
import type { Printing } from './state.js'

type Print = (loops: readonly Loop[], printing: Printing) => void

/** Lines that begin a kernel: those who run a share, and the number of theirs. */
const openings: { readonly [O in Work['owner']]: (work: Work) => readonly string[] } = {
  thread: ({ threads }) => [
    `int64_t position = static_cast<int64_t>(blockIdx.x) * ${threads ?? 'THREADS'} + threadIdx.x;`,
    'if (position >= work) return;',
  ],
  team: () => ['Team team;', 'int64_t position = team.row();', 'if (position >= rows) return;'],
  cluster: ({ body }) => [
    ...(exchanges(body) ? ['HEDDLE_DYNAMIC_SHARED(shared);'] : []),
    'Team team;',
    'int64_t position = team.tile();',
  ],
  grid: () => [
    '[[maybe_unused]] const Team team;',
    '[[maybe_unused]] int64_t position = team.row() / parts;',
    'if (position >= rows) return;',
    'const int part = static_cast<int>(team.row() % parts);',
  ],
  block: () => ['int64_t position = static_cast<int64_t>(blockIdx.x);'],
}

/** True if threads exchange results, for which a launch has shared memory. */
function exchanges(body: readonly Loop[]): boolean {
  let found = false
  eachLoop(body, ({ kind }) => {
    found ||= kind === 'announce'
  })
  return found
}

export function printWork(work: Work, printing: Printing, print: Print): void {
  const { context } = printing
  const body = bodyWriter()
  print(work.body, { ...printing, context: { ...context, writer: body } })
  // After all source that uses indices.
  const split = [...work.digits].reverse().flatMap((digit, i) => digitLines(digit, i === work.digits.length - 1, work, context))
  for (const line of ['heddle::begin_kernel();', ...openings[work.owner](work), ...split]) context.writer.writeLine(line)
  insert(lines(body), context.writer)
}

/** Splits one digit off the position. @param isLast nothing is left of the position afterwards */
function digitLines(digit: Digit, isLast: boolean, { owner }: Work, context: PassContext): readonly string[] {
  const { names, used } = context
  switch (digit.of) {
    case 'axis': {
      const { index } = digit.axis
      const isUsed = used.indices.has(index)
      const declare = isUsed ? `const int ${names.value(index)} = ` : ''
      if (isLast) return isUsed ? [`${declare}static_cast<int>(position);`] : []
      return [`${declare}heddle::peel(position, ${extentText(digit.axis, context)});`]
    }
    case 'slots':
      return [`const int slot = ${isLast ? 'static_cast<int>(position)' : 'heddle::peel(position, slots)'};`]
    case 'chunks': {
      const length = operandText(digit.length, context)
      const first = names.first(digit.index)
      if (owner === 'thread')
        return [
          `const int ${first} = heddle::peel(position, heddle::chunks_of<VEC>(${length})) * VEC;`,
          validLine(digit.length, first, context),
        ]
      return [`const int tile = heddle::peel(position, heddle::column_tiles<Team, VEC>(${length}));`]
    }
    case 'tiles': {
      const side = `Shape::${digit.side}`
      const name = digit.side === 'rows' ? 'tile_row' : 'tile_column'
      const tiles = `heddle::chunks_of<${side}>(${operandText(digit.length, context)})`
      return [`const int ${name} = heddle::peel(position, ${tiles}) * ${side};`]
    }
  }
}

function extentText(axis: RowAxis, { fixed, used, names }: Pick<Scope, 'fixed' | 'used' | 'names'>): string {
  const extents = dimsOf(axis).map((dim) => {
    const known = getOwn(fixed, dim)
    if (known === undefined) used.dims.add(dim)
    return known ?? names.dim(dim)
  })
  return extents.join(isMerged(axis) ? ' * ' : ' + ')
}

/** Source for a chunk in which no piece ends; the thread is then done. @param print writes loops whose names are their own */
export function printPiece(
  { index, loop, bounds, when, body }: OnePiece,
  { context }: Printing,
  print: (loops: readonly Loop[], context: PassContext) => void,
): void {
  const { names, writer } = context
  const first = names.first(loop)
  const value = (name: string): string => (name === index ? first : names.value(name))
  const inner = bodyWriter(1)
  print(body, { ...context, writer: inner, names: { ...names, value }, elements: new Map(), shared: new Map() })
  const tests = [
    ...bounds.map((bound) => operandText(bound, context)).map((at) => `${at} <= ${first} || ${at} - ${first} >= VEC`),
    ...(when === undefined ? [] : [expressionText(when, context)]),
  ]
  writer.writeLine(`if (${tests.length === 1 ? tests[0] : tests.map((test) => `(${test})`).join(' && ')}) {`)
  writer.write(lines(inner))
  writer.writeLine('  return;')
  writer.writeLine('}')
}

/** True if facts state that the chunks of a loop are full. */
export const hasFullChunks = (length: Expr, { widths, multiples = noMultiples }: PassContext): boolean =>
  isFull(length, widths, multiples)

/** Declares the number of elements of a chunk that exist. */
export const validLine = (length: Expr, first: string, context: PassContext): string =>
  hasFullChunks(length, context)
    ? `[[maybe_unused]] constexpr int valid = VEC;  // the facts of ${operandText(length, context)} leave no tail`
    : `const int valid = ${operandText(length, context)} - ${first};`
