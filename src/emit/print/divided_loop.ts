/**
 * Loops that the slots of a column or the threads of a grid divide, as CUDA source. They run in rounds: the chunks of a round are all loaded before the
 * first is used.
 */
import type CodeBlockWriter from 'code-block-writer'
import { mark } from '../../ir/trace.js'
import type { Copy, DividedLoop, Loop } from '../../loop/ir.js'
import { bodyWriter, insert, lines } from '../kernels/frame.js'
import { expressionText, operandText, tensorOf } from './expression.js'
import { chunkText } from './loop_leaf.js'
import { storageText } from './names.js'
import type { Printing } from './state.js'

/** Source around the iterations of a round. */
interface Rounds {
  readonly header: string
  /** Iterations of a round. */
  readonly count: string
  /** Lines that begin iteration `j`, or end the round; they declare the indices that are used. */
  readonly begin: () => readonly string[]
  readonly inside: Partial<Printing>
}

export function printDivided(
  loop: DividedLoop,
  printing: Printing,
  print: (loops: readonly Loop[], printing: Printing) => void,
): void {
  const { context } = printing
  const { writer, names, used, elements } = context
  const { header, count, begin, inside } = loop.owner === 'slot' ? ofSlots(loop, printing) : ofGrid(loop, printing)
  const here: Printing = { ...printing, ...inside }
  const copies = loop.body.flatMap((each) => (each.kind === 'copy' ? [each] : []))
  const each = (write: (to: CodeBlockWriter) => void): void => {
    for (const { index } of loop.loops) used.indices.delete(index)
    const to = bodyWriter(writer.getIndentationLevel() + 1)
    write(to)
    writer.writeLine('HEDDLE_UNROLL')
    writer.write(`for (int j = 0; j < ${count}; ++j)`).block(() => {
      for (const line of begin()) writer.writeLine(line)
      insert(lines(to), writer)
    })
  }
  writer.write(header).block(() => {
    for (const { row, load } of copies) {
      const storage = storageText(tensorOf(load.tensor, context), names)
      writer.writeLine(`heddle::Chunk<${storage}, VEC> ${names.value(row)}[${count}];`)
      elements.set(row, `${names.value(row)}[j][i]`)
    }
    const { when } = loop
    const counts = when === undefined ? undefined : names.fresh('counts')
    if (counts !== undefined) writer.writeLine(`bool ${counts}[${count}];`)
    const taken = copies.flatMap((copy) => heldText(copy, 'taken', loop, printing) ?? [])
    const load = (all: readonly Copy[]): void =>
      each((to) => {
        if (when !== undefined) to.writeLine(`${counts}[j] = ${expressionText(when, context)};`)
        const guard = counts === undefined ? '' : `if (${counts}[j]) `
        for (const copy of all) to.writeLine(`${guard}${names.value(copy.row)}[j] = ${chunkText(copy, here)};${mark(copy.load)}`)
      })
    const others = copies.filter(({ held }) => held?.is !== 'taken')
    if (taken.length > 0) {
      writer.write('if (holds) ').inlineBlock(() => each((to) => to.write(taken.join('\n'))))
      writer.write(' else ').block(() => load(copies.filter((copy) => !others.includes(copy))))
    }
    if (others.length > 0 || when !== undefined) load(others)
    // Loads of a round are in flight together, so that what they load is left after the last.
    const left = copies.flatMap((copy) => heldText(copy, 'left', loop, printing) ?? [])
    for (const [at, part] of partsOf(loop.body.filter(({ kind }) => kind !== 'copy')).entries()) {
      print(
        part.filter(({ kind }) => kind === 'rescale'),
        here,
      )
      each((to) => {
        if (counts !== undefined) to.writeLine(`if (!${counts}[j]) continue;`)
        if (at === 0) for (const line of left) to.writeLine(line)
        const rest = part.filter(({ kind }) => kind !== 'rescale')
        print(rest, { ...here, context: { ...context, writer: to } })
      })
    }
  })
}

/** The line that leaves or takes a chunk of rows that threads hold; undefined for a copy that does not. */
function heldText(
  { held, row: chunk }: Copy,
  is: 'left' | 'taken',
  { loops: [loop] }: DividedLoop,
  { context: { names, used }, given }: Printing,
): string | undefined {
  if (held?.is !== is || loop === undefined) return undefined
  const rows = given.get(held.rows)
  const row = names.value(loop.index)
  const here = `${names.value(chunk)}[j]`
  used.indices.add(loop.index)
  return is === 'left' ? `${rows}.leave(${row}, ${here});` : `${here} = ${rows}.take(${row});`
}

/** Parts of an iteration. Sums are scaled once in a round, between the parts of all its iterations. */
function partsOf(body: readonly Loop[]): readonly (readonly Loop[])[] {
  const first = body.findIndex(({ kind }) => kind === 'rescale')
  return first < 0 ? [body] : [body.slice(0, first), body.slice(first)]
}

function ofSlots({ loops }: DividedLoop, { context }: Printing): Rounds {
  const [loop] = loops
  if (loop === undefined) throw new Error('internal: slots divide no rows')
  const row = context.names.value(loop.index)
  const rows = operandText(loop.length, context)
  return {
    header: `for (int64_t round = team.first_row(); valid > 0 && round < ${rows}; round += team.round())`,
    count: 'Team::loads',
    begin: () => [
      `if (round + team.rows_before(j) >= ${rows}) break;`,
      `const int ${row} = static_cast<int>(round) + team.rows_before(j);`,
    ],
    inside: { row },
  }
}

function ofGrid({ loops }: DividedLoop, { context }: Printing): Rounds {
  const { names, used, writer } = context
  const inner = loops.at(-1)
  if (inner === undefined) throw new Error('internal: a grid divides no loop')
  const outer = loops.slice(0, -1).reverse()
  const length = operandText(inner.length, context)
  const first = names.first(inner.index)
  writer.writeLine('const int64_t stride = int64_t{parts} * Team::lanes;')
  const begin = (): readonly string[] => [
    'int64_t at = round + j * stride;',
    'if (at >= chunks) break;',
    outer.length === 0
      ? `const int ${first} = static_cast<int>(at) * VEC;`
      : `const int ${first} = heddle::peel(at, heddle::chunks_of<VEC>(${length})) * VEC;`,
    `[[maybe_unused]] const int valid = ${length} - ${first};`,
    ...outer.flatMap(({ index, length: extent }, i) => {
      const isLast = i === outer.length - 1
      if (isLast && !used.indices.has(index)) return []
      const declare = used.indices.has(index) ? `const int ${names.value(index)} = ` : ''
      return [`${declare}${isLast ? 'static_cast<int>(at)' : `heddle::peel(at, ${operandText(extent, context)})`};`]
    }),
  ]
  const start = 'int64_t{part} * Team::lanes + team.lane()'
  return {
    header: `for (int64_t round = ${start}; round < chunks; round += heddle::total_loads * stride)`,
    count: 'heddle::total_loads',
    begin,
    inside: { first },
  }
}
