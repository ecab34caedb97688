/** Launches of column programs and programs of totals as source. The device headers choose their teams. */
import type CodeBlockWriter from 'code-block-writer'
import type { Expr } from '../../ir/expr.js'
import {
  type ColumnProgram,
  hasSections,
  passesOf,
  storesAlone,
  type TotalProgram,
  walkOf,
} from '../../schedule/divided/divided_program.js'
import { heldLoads } from '../../schedule/divided/held_loads.js'
import type { Reduced } from '../../schedule/divided/reduction.js'
import type { MappedKernel } from '../../schedule/mapped.js'
import { functionName } from '../kernels/frame.js'
import { expressionText, type Scope, tensorOf, wideText } from '../print/expression.js'
import { storageText } from '../print/names.js'
import { functorsText } from '../print/reductions.js'
import { userMonoidName } from '../print/user_monoids.js'
import { productText } from './conditions.js'

/** Functors of reductions, as template arguments. */
const functorsOf = (reductions: readonly Reduced[], { instance: { kernel } }: MappedKernel): string =>
  functorsText(
    reductions.map(({ stmt, values }) => ({ monoid: stmt.monoid, type: values[0]?.type ?? 'f32' })),
    { ownName: (own) => userMonoidName(own, kernel) },
  )

/** Launches the walk over a tensor, by a warp, one block or several. */
export function writeTotalsLaunch(
  mapped: MappedKernel,
  program: TotalProgram,
  args: string,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const { loops, reductions } = walkOf(program)
  const kernel = functionName(mapped, 'parts')
  const kernels = ['WalkingWarp, true', 'WalkingBlock, true', 'WalkingBlock, false'].map((team) => `${kernel}<heddle::${team}>`)
  // A computed length may exceed the range of an index.
  for (const { length } of loops)
    if (length.kind === 'call') writer.writeLine(`arguments.at_most(${wideText(length, scope)}, INT32_MAX, "places of a loop");`)
  const lengths = loops.map(({ length }) => expressionText(length, scope))
  const inner = `heddle::chunks_of<VEC>(static_cast<int>(${lengths.at(-1)}))`
  const chunks = [...lengths.slice(0, -1), inner].map((length) => `heddle::Count(${length})`).join(' * ')
  const words = `heddle::words_of_totals<${functorsOf(reductions, mapped)}>`
  const sizes = `${productText(extents)}, ${chunks}, ${words}`
  writer.writeLine(
    `return heddle::launch_totals(launch, error, arguments, "${mapped.key}", ${sizes}, ${kernels.join(', ')}, ${args});`,
  )
}

/** Launches a column program. Tiles of columns differ in width, and the reduction of their rows differs too: the header chooses. */
export function writeColumnLaunch(
  mapped: MappedKernel,
  program: ColumnProgram,
  args: string,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const { length, parts, each } = program
  const columns = expressionText(length, scope)
  const shared = passesOf(program).map(({ reductions }) => `heddle::bytes_of_walk<Team, VEC, ${functorsOf(reductions, mapped)}>`)
  const kernel = `${functionName(mapped, 'columns')}<Team>`
  const divided = hasSections(program)
  const held = heldLoads(program)
  if (storesAlone(program)) {
    writeStoredLaunch(mapped, program, args, extents, scope, writer)
    return
  }
  writer
    .write(`const auto run = [&](auto team, int64_t tiles${divided ? ', int64_t sections' : ''}) -> int32_t `)
    .inlineBlock(() => {
      writer.writeLine('using Team = decltype(team);')
      writer.writeLine(`constexpr uint32_t shared = ${shared.join(' + ')};`)
      const given = `launch, error, "${mapped.key}", tiles`
      if (divided) {
        const functors = passesOf(program).map(({ reductions }) => functorsOf(reductions, mapped))
        writer.writeLine(`constexpr int words = heddle::words_of_totals<${functors.join(', ')}> * Team::lanes * VEC;`)
        writer.writeLine(`return heddle::launch_sections<Team>(${given}, sections, words, shared, ${kernel}, ${args});`)
      } else if (held.length > 0) {
        const rows = expressionText(held[0]?.rows ?? length, scope)
        const types = held.map(({ first }) => storageText(tensorOf(first.load.tensor, scope), scope.names))
        writer.writeLine(`const uint32_t held = heddle::held_bytes<Team, VEC, ${types.join(', ')}>(${rows}, shared);`)
        writer.writeLine(`return heddle::launch_columns<Team>(${given}, shared + held, ${kernel}, held > 0, ${args});`)
      } else writer.writeLine(`return heddle::launch_columns<Team>(${given}, shared, ${kernel}, ${args});`)
    })
  writer.write(';').newLine()
  const [choose, rows] = choiceOf(program)
  const sizes = [columns, ...rows.map((each) => expressionText(each, scope))].join(', ')
  const chunks = each === 1 ? '' : `, ${each}`
  writer.writeLine(`return heddle::${choose}<VEC, ${parts}${chunks}>(${productText(extents)}, ${sizes}, arguments, run);`)
}

/** Launches a program of columns that are stored and not reduced: sections of the grid divide the rows. */
function writeStoredLaunch(
  mapped: MappedKernel,
  program: ColumnProgram,
  args: string,
  extents: readonly string[],
  scope: Scope,
  writer: CodeBlockWriter,
): void {
  const rows = program.sequence.flatMap((step) => (step.kind === 'stores' ? step.loops : []))
  const sizes = [program.length, ...rows.map(({ length }) => length)].map((each) => expressionText(each, scope)).join(', ')
  const kernel = `${functionName(mapped, 'columns')}<Team>`
  writer.write('const auto run = [&](auto team, int64_t tiles, int64_t sections) -> int32_t ').inlineBlock(() => {
    writer.writeLine('using Team = decltype(team);')
    writer.writeLine(`return heddle::launch_stored<Team>(launch, error, "${mapped.key}", tiles, sections, ${kernel}, ${args});`)
  })
  writer.write(';').newLine()
  writer.writeLine(
    `return heddle::choose_stored_sections<VEC, ${program.parts}>(${productText(extents)}, ${sizes}, arguments, run);`,
  )
}

/** The function that chooses the blocks of a column program, and the extents that it needs beside those of columns. */
function choiceOf(program: ColumnProgram): readonly [choose: string, extents: readonly Expr[]] {
  // There may be few stored rows, such as channels.
  const stored = program.sequence.find((step) => step.kind === 'stores')
  const [pass] = passesOf(program)
  if (stored !== undefined) return ['choose_stored_columns', stored.loops.map(({ length }) => length)]
  return hasSections(program) ? ['choose_sections', (pass?.loops ?? []).map(({ length }) => length)] : ['choose_columns', []]
}
