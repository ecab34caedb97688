/**
 * A recurrence with row state as CUDA source: a loop over the steps. The state has two copies in shared memory: the one before a step (from `now`
 * on) and the one that the step computes (from `next` on). The lanes of the row synchronise when it is complete, and when the step ends.
 */
import type { Expr } from '../../ir/expr.js'
import type { FoldedState } from '../../schedule/normalise/normal.js'
import type { PassContext } from '../print/context.js'
import { expressionText, monoidText, offsetText } from '../print/expression.js'
import { scalarText } from '../print/names.js'
import type { RowText } from './construct.js'

/** Names of buffers and offsets in the source. */
interface Buffers {
  readonly now: string
  readonly next: string
  /** Buffer of a carried row by the name of its field. */
  readonly of: ReadonlyMap<string, string>
}

export const foldedStateText: RowText<FoldedState> = {
  header: () => 'shared_row.cuh',
  write(s, context) {
    const { names, shared } = context
    if (shared === undefined) throw new Error('internal: carried rows need shared memory, and there is none')
    const rows = s.fields.filter(({ is }) => is === 'row')
    const now = names.fresh(`${names.value(s.column)}_now`)
    const next = names.fresh(`${names.value(s.column)}_next`)
    const buffers: Buffers = {
      now,
      next,
      of: new Map(rows.map(({ result }) => [result, names.fresh(`${names.value(result)}_rows`)])),
    }
    const readers: string[] = []
    for (const { before, after, result } of rows) {
      const buffer = buffers.of.get(result) ?? ''
      for (const [row, from] of [
        [before, now],
        [after, next],
      ] as const) {
        const reader = names.fresh(`${names.value(row)}_at`)
        readers.push(`[[maybe_unused]] const auto ${reader} = [&](int place) { return ${buffer}.get(${from} + place); };`)
        shared.set(row, reader)
      }
      // After the last step, the result is in the buffer that the next step would start with.
      shared.set(result, shared.get(before) ?? '')
    }
    const size = 2 * s.most
    const lines = [
      ...rows.flatMap(({ result }) => {
        const buffer = buffers.of.get(result) ?? ''
        const places = names.fresh(`${buffer}_places`)
        return [
          `HEDDLE_SHARED(float, ${places}, Team::rows * ${size});`,
          `const auto ${buffer} = heddle::shared_row<Team, float, ${size}>(${places});`,
        ]
      }),
      `int ${now} = 0;`,
      `int ${next} = ${s.most};`,
      ...readers,
      ...startLines(s, buffers, context),
      'team.meet();',
      ...stepLines(s, buffers, context),
      ...s.fields.flatMap(({ is, result, before }) =>
        is === 'row' || s.each ? [] : [`[[maybe_unused]] const float ${names.value(result)} = ${names.value(before)};`],
      ),
    ]
    return lines.join('\n')
  },
}

/** Lines for every element of a row that a lane has. */
function eachElement(s: FoldedState, context: PassContext, lines: readonly string[]): string[] {
  const column = context.names.value(s.column)
  const width = expressionText(s.width, context)
  return [
    `for (int ${column} = team.lane(); ${column} < ${width}; ${column} += Team::lanes) {`,
    ...lines.map((line) => `  ${line}`),
    '}',
  ]
}

function startLines(s: FoldedState, { now, of }: Buffers, context: PassContext): string[] {
  return s.fields.flatMap(({ is, result, before }, i) => {
    const text = expressionText(startOf(s, i), context)
    if (is === 'number') return [`float ${context.names.value(before)} = ${text};`]
    return eachElement(s, context, [`${of.get(result)}.set(${now} + ${context.names.value(s.column)}, ${text});`])
  })
}

function stepLines(s: FoldedState, { now, next, of }: Buffers, context: PassContext): string[] {
  const { names } = context
  const t = names.value(s.index)
  const swap = names.fresh(`${names.value(s.column)}_made`)
  const lines = s.step.flatMap(({ does, name, type, monoid }, i): string[] => {
    const value = s.values[i]
    if (value === undefined) throw new Error(`internal: ${name} of a step has no value`)
    if (does === 'let')
      return [`[[maybe_unused]] const ${scalarText[type]} ${names.value(name)} = ${expressionText(value, context)};`]
    if (does === 'row') {
      const field = s.fields.find(({ after }) => after === name)
      const set = `${of.get(field?.result ?? '')}.set(${next} + ${names.value(s.column)}, ${expressionText(value, context)});`
      return [...eachElement(s, context, [set]), 'team.meet();']
    }
    if (monoid === undefined) throw new Error(`internal: ${name} of a step has no monoid`)
    const lanes = names.fresh(`${names.value(name)}_lanes`)
    return [
      `heddle::Accumulator<${monoidText(monoid, value.type)}> ${lanes};`,
      ...eachElement(s, context, [
        `${lanes}.add(${expressionText(value, context)}, ${names.value(s.column)});`,
        `${lanes}.end_chunk();`,
      ]),
      `[[maybe_unused]] const ${scalarText[type]} ${names.value(name)} = team.reduce(${lanes});`,
    ]
  })
  return [
    `for (int ${t} = 0; ${t} < ${expressionText(s.length, context)}; ++${t}) {`,
    ...[
      ...lines,
      ...s.stores.map(
        ({ tensor, indices, value }) =>
          `if (team.lane() == 0) heddle::write(${names.tensor(tensor)}, ${offsetText(tensor, indices, context)}, ${names.value(value)});`,
      ),
      ...s.fields.flatMap(({ is, before, after }) =>
        is === 'number' ? [`${names.value(before)} = ${names.value(after)};`] : [],
      ),
      // The state is not read any more.
      'team.meet();',
      `const int ${swap} = ${next};`,
      `${next} = ${now};`,
      `${now} = ${swap};`,
    ].map((line) => `  ${line}`),
    '}',
  ]
}

function startOf({ starts, fields }: FoldedState, i: number): Expr {
  const start = starts[i]
  if (start === undefined) throw new Error(`internal: ${fields[i]?.result} has no initial value`)
  return start
}
