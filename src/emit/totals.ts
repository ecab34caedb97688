/**
 * A program of totals as CUDA source. A kernel walks over the chunks of a tensor. A block or warp that walks alone computes the outputs; of several
 * blocks each stores its totals, and the last to do so combines them and computes the outputs.
 */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../ir/expr.js'
import type { StmtOf } from '../ir/kernel.js'
import { mark } from '../ir/trace.js'
import { freeNames } from '../ir/walk.js'
import type { Loop } from '../schedule/normal.js'
import type { TotalProgram } from '../schedule/totals.js'
import type { PassContext } from './context.js'
import { expressionText, offsetText, operandText, type Scope, tensorOf, wideText } from './expression.js'
import { scalarText, storageText } from './names.js'
import { elementText, functorsText, functorText, type OwnNames } from './reductions.js'
import { fieldText } from './user_monoid.js'
import { writeSteps } from './write_steps.js'

type Let = StmtOf<'let'>

/** Words of scratch that a block's totals take, as source. */
export const wordsText = ({ totals }: TotalProgram, own: OwnNames): string =>
  `heddle::words_of_totals<${functorsText(totals, own)}>`

/** Chunks of a walk as a number of elements with checked arithmetic. */
export function chunksText({ loops }: TotalProgram, scope: Scope): string {
  const lengths = loops.map(({ length }) => expressionText(length, scope))
  const inner = `heddle::chunks_of<VEC>(static_cast<int>(${lengths.at(-1)}))`
  return [...lengths.slice(0, -1).map((length) => `heddle::Count(${length})`), `heddle::Count(${inner})`].join(' * ')
}

/** Computed lengths, as source of the launcher. */
export const computedLengths = ({ loops }: TotalProgram, scope: Scope): readonly string[] =>
  loops.flatMap(({ length }) => (length.kind === 'call' ? [wideText(length, scope)] : []))

/** Scalars that the expressions read, directly or through other scalars. */
function needed(lets: readonly Let[], exprs: readonly Expr[]): readonly Let[] {
  const read = new Set(exprs.flatMap((e) => [...freeNames(e)]))
  for (const { name, value } of [...lets].reverse()) if (read.has(name)) for (const other of freeNames(value)) read.add(other)
  return lets.filter(({ name }) => read.has(name))
}

const afterExprs = ({ after }: TotalProgram): Expr[] =>
  after.flatMap((s) => (s.kind === 'let' ? [s.value] : [...s.indices, s.value]))

/**
 * Writes the walk, and the use of the totals in its blocks. Returns the condition under which all chunks are whole; undefined if chunks are
 * elements.
 */
export function writeWalk(program: TotalProgram, vec: number, head: PassContext, context: PassContext): string | undefined {
  const { loops, loads, totals, before } = program
  const { writer, names } = context
  const known = needed(before, [
    ...totals.flatMap(({ values }) => values),
    ...loads.map(({ load }) => load),
    ...afterExprs(program),
  ])
  writeSteps(known, head)
  const lanes = totals.map(() => names.fresh('lanes'))
  totals.forEach((total, i) => {
    writer.writeLine(`heddle::Accumulator<${functorText(total, context)}> ${lanes[i]};${mark(...total.values)}`)
  })
  const stride = 'int64_t{parts} * Team::lanes'
  writer.writeLine(`const int64_t stride = ${stride};`)
  const start = 'int64_t{part} * Team::lanes + team.lane()'
  writer.write(`for (int64_t round = ${start}; round < chunks; round += heddle::total_loads * stride)`).block(() => {
    for (const { name, load } of loads) {
      const storage = storageText(tensorOf(load.tensor, context), names)
      writer.writeLine(`heddle::Chunk<${storage}, VEC> ${names.value(name)}[heddle::total_loads];`)
    }
    if (loads.length > 0) eachChunk(loops, context, () => loads.map((load) => loadLine(load, loops, context)))
    for (const { name } of loads) context.elements.set(name, `${names.value(name)}[j][i]`)
    eachChunk(loops, context, () => elementLines(program, vec, lanes, context))
  })
  const all = totals.map(() => names.fresh('team_total'))
  totals.forEach((_, i) => {
    writer.writeLine(`const auto ${all[i]} = heddle::total_of(team, ${lanes[i]});`)
  })
  writer.write('if constexpr (ALONE) ').inlineBlock(() => {
    writeResults(program, all, context)
  })
  writer.write(' else').block(() => {
    writeJoin(program, all, context)
  })
  if (vec === 1) return undefined
  const whole = [...new Set(loads.flatMap(({ isWhole, load }) => (isWhole ? [names.tensor(load.tensor)] : [])))]
  const length = operandText(innermost(loops).length, context)
  return [`${length} % VEC == 0`, ...whole.map((tensor) => `heddle::is_aligned<VEC>(${tensor}, 0)`)].join(' &&\n      ')
}

/** Writes the end of a block whose walk several divide: it leaves its totals, and the last block combines all. */
function writeJoin(program: TotalProgram, own: readonly string[], context: PassContext): void {
  const { writer, names } = context
  writer.writeLine(`constexpr int words = ${wordsText(program, context)};`)
  writer.writeLine('const int64_t place = int64_t{blockIdx.x} * words;')
  program.totals.forEach((_, i) => {
    writer.writeLine(`heddle::leave_total(sums, place${offset(program, i, context)}, ${own[i]});`)
  })
  writer.writeLine('if (!heddle::is_last_part(arrived, blockIdx.x / parts, parts)) return;')
  const first = 'place - int64_t{part} * words'
  const all = program.totals.map((total, i) => {
    const name = names.fresh('all_total')
    const functor = functorText(total, context)
    writer.writeLine(
      `const auto ${name} = heddle::take_total<${functor}>(sums, ${first}${offset(program, i, context)}, parts, words);`,
    )
    return name
  })
  writeResults(program, all, context)
}

/** Offset of a total in words. */
const offset = ({ totals }: TotalProgram, at: number, context: PassContext): string =>
  at === 0 ? '' : ` + heddle::words_of_totals<${functorsText(totals.slice(0, at), context)}>`

function writeResults(program: TotalProgram, all: readonly string[], context: PassContext): void {
  const { writer, names } = context
  const { totals, after } = program
  totals.forEach((total, i) => {
    const { stmt } = total
    const result = `${functorText(total, context)}::result(${all[i] ?? ''})`
    const results =
      stmt.kind === 'merge'
        ? stmt.names.map(
            (name, field) => [name, stmt.monoid.fields[field]?.type ?? 'f32', fieldText(stmt.monoid, field, result)] as const,
          )
        : [[stmt.name, stmt.type, result] as const]
    for (const [name, type, text] of results)
      writer.writeLine(`[[maybe_unused]] const ${scalarText[type]} ${names.value(name)} = ${text};${mark(...total.values)}`)
  })
  writeSteps(after, context)
}

function innermost(loops: readonly Loop[]): Loop {
  const inner = loops.at(-1)
  if (inner === undefined) throw new Error('internal: a walk has no loop')
  return inner
}

/** A loop over the chunks of a round, with the indices that its lines use. */
function eachChunk(loops: readonly Loop[], context: PassContext, lines: () => readonly string[]): void {
  const { writer, names, used } = context
  const inner = innermost(loops)
  const outer = loops.slice(0, -1).reverse()
  for (const { index } of loops) used.indices.delete(index)
  const written = lines()
  const at = names.fresh('at')
  writer.writeLine('HEDDLE_UNROLL')
  writer.write('for (int j = 0; j < heddle::total_loads; ++j)').block(() => {
    writer.writeLine(`int64_t ${at} = round + j * stride;`)
    writer.writeLine(`if (${at} >= chunks) break;`)
    const length = operandText(inner.length, context)
    const first = names.first(inner.index)
    if (outer.length === 0) writer.writeLine(`const int ${first} = static_cast<int>(${at}) * VEC;`)
    else writer.writeLine(`const int ${first} = heddle::peel(${at}, heddle::chunks_of<VEC>(${length})) * VEC;`)
    writer.writeLine(`[[maybe_unused]] const int valid = ${length} - ${first};`)
    outer.forEach(({ index, length: extent }, i) => {
      const isLast = i === outer.length - 1
      if (isLast && !used.indices.has(index)) return
      const declare = used.indices.has(index) ? `const int ${names.value(index)} = ` : ''
      const peeled = isLast ? `static_cast<int>(${at})` : `heddle::peel(${at}, ${operandText(extent, context)})`
      writer.writeLine(`${declare}${peeled};`)
    })
    for (const line of written) writer.writeLine(line)
  })
}

/** Loads the chunk of one place. */
function loadLine({ name, load, isWhole }: TotalProgram['loads'][number], loops: readonly Loop[], context: PassContext): string {
  const { names } = context
  const { index } = innermost(loops)
  // The place of a chunk is that of its first element.
  const value = (wanted: string): string => (wanted === index ? names.first(index) : names.value(wanted))
  const place = offsetText(load.tensor, load.indices, { ...context, names: { ...names, value } })
  return `${names.value(name)}[j] = heddle::load_chunk<VEC, ${isWhole ? 'WHOLE' : 'false'}>(${names.tensor(load.tensor)}, ${place}, valid);${mark(load)}`
}

/** Accumulates the elements of one chunk. */
function elementLines({ totals, loops }: TotalProgram, vec: number, lanes: readonly string[], context: PassContext): string[] {
  const { names, used } = context
  const inner = innermost(loops)
  const first = names.first(inner.index)
  const adds = totals.map((total, i) => {
    const texts = total.values.map((value) => expressionText(value, context))
    return `${lanes[i]}.add(${elementText(total, texts)}, ${first} + i);`
  })
  const declare = used.indices.has(inner.index) ? [`const int ${names.value(inner.index)} = ${first} + i;`] : []
  const lines = [...declare, ...adds].map((line) => `    ${line}`)
  return [
    'HEDDLE_UNROLL',
    'for (int i = 0; i < VEC; ++i) {',
    ...(vec === 1 ? lines.map((line) => line.slice(2)) : ['  if (WHOLE || i < valid) {', ...lines, '  }']),
    '}',
    ...lanes.map((name) => `${name}.end_chunk();`),
  ]
}

/** Writes the beginning of the kernel: the team, the walk that it takes part in, and its part. */
export const writeFrame = (writer: CodeBlockWriter): void => {
  writer.writeLine('heddle::begin_kernel();')
  writer.writeLine('[[maybe_unused]] const Team team;')
  writer.writeLine('[[maybe_unused]] int64_t position = team.row() / parts;')
  writer.writeLine('if (position >= rows) return;')
  writer.writeLine('const int part = static_cast<int>(team.row() % parts);')
}
