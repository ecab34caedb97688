/**
 * A recurrence with row state, such as that of a delta rule. The threads of a row of the kernel run the steps in order, and
 * within a step compute reductions and new rows of the carried state. A step is a list of scalars, reductions and rows, each of which may
 * read those before it. All its rows have `width` elements, at index `column`. After the last step the carried rows may be
 * read at any index. Numbers are carried too, and give one element per step, or their value after the last step.
 */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import { type MonoidName, monoid } from '../monoids.js'
import type { Check, Construct, Defined } from './construct.js'

/** Largest length of a carried row: the state before and after a step, of four rows, fits the shared memory of a block. */
export const longestCarried = 1024

/** Largest number of carried rows. */
export const mostCarried = 4

/** One field of the carried state. */
export interface StateField {
  readonly is: 'row' | 'number'
  /** Name of the result after the steps: a row, or the row of its numbers, or the last of them. */
  readonly result: string
  /** Name of its value before a step, and the statement of the step that computes the new one. */
  readonly before: string
  readonly after: string
}

/** A statement of the step, without its expression. */
export interface StepPart {
  readonly does: 'let' | 'reduce' | 'row'
  readonly name: string
  readonly type: ScalarType
  /** Reductions only. */
  readonly monoid?: MonoidName
}

export interface FoldState {
  readonly kind: 'foldState'
  readonly fields: readonly StateField[]
  /** True if numbers give one element per step. */
  readonly each: boolean
  /** Number of steps, and the index of a step. */
  readonly length: Expr
  readonly index: string
  readonly width: Expr
  readonly column: string
  /** State before the first step; for a row, its element. */
  readonly starts: readonly Expr[]
  readonly step: readonly StepPart[]
  /** Expressions of the step's statements. */
  readonly values: readonly Expr[]
}

/** Result of a field: a row with one element per step, or the scalar after the last step; a carried row gives its last value. */
const resultOf = ({ is, result }: StateField, each: boolean): Defined => ({
  kind: is === 'row' || each ? 'row' : 'local',
  name: result,
  type: 'f32',
})

/** Rows that have one element per step. */
export const stepRows = (body: readonly (FoldState | { readonly kind: string })[]): ReadonlySet<string> =>
  new Set(
    body
      .filter((s): s is FoldState => s.kind === 'foldState')
      .flatMap(({ fields, each }) => (each ? fields : []).flatMap(({ is, result }) => (is === 'number' ? [result] : []))),
  )

const beforeOf = ({ is, before }: StateField): Defined => ({ kind: is === 'row' ? 'row' : 'local', name: before, type: 'f32' })

const madeBy = ({ does, name, type }: StepPart): Defined => ({ kind: does === 'row' ? 'row' : 'local', name, type })

/** Checks the rules of a step, for kernels and schedules. @param check `element` checks an expression at `column` */
export function verifySteps(
  { fields, index, column, starts, step, values }: Pick<FoldState, 'fields' | 'index' | 'column' | 'starts' | 'step' | 'values'>,
  check: Check,
): void {
  if (starts.length !== fields.length) check.fail(`${fields.length} fields are carried, and ${starts.length} start`)
  if (values.length !== step.length) check.fail(`a step of ${step.length} statements has ${values.length} values`)
  fields.forEach(({ is, result }, i) => {
    const start = starts[i]
    if (start !== undefined) check.says(result, 'f32', is === 'row' ? check.element(column, start) : check.type(start))
  })
  let inside = check.within([{ kind: 'index', name: index, type: 'i32' }, ...fields.map(beforeOf)])
  step.forEach((part, i) => {
    const value = values[i]
    if (value === undefined) return
    const type = part.does === 'let' ? inside.type(value) : inside.element(column, value)
    const made = part.does === 'reduce' && part.monoid !== undefined ? inside.combined(part.monoid, type) : type
    check.says(part.name, part.type, made)
    inside = inside.within([madeBy(part)])
  })
  for (const { is, after } of fields) {
    const made = step.find(({ name }) => name === after)
    if (made === undefined || (made.does === 'row') !== (is === 'row') || made.type !== 'f32')
      check.fail(`no statement of the step makes ${after}`)
  }
}

export const foldStateConstruct: Construct<FoldState> = {
  traits: { makes: 'rows', elements: 'combined', walk: 'own', alone: 'carries a row from step to step' },
  defines: ({ fields, each, step }) => [
    ...fields.map((field) => resultOf(field, each)),
    ...fields.map(beforeOf),
    ...step.map(madeBy),
  ],
  rename: (s, name) => ({
    ...s,
    fields: s.fields.map(({ is, result, before, after }) => ({
      is,
      result: name(result),
      before: name(before),
      after: name(after),
    })),
    step: s.step.map((part) => ({ ...part, name: name(part.name) })),
  }),
  rowExprs: ({ length, width }) => [length, width],
  elementExprs: ({ starts, values }) => [...starts, ...values],
  map: (s, map) => ({
    ...s,
    length: map(s.length),
    width: map(s.width),
    starts: s.starts.map(map),
    values: s.values.map(map),
  }),
  evaluate(s, run) {
    const [length, width] = [run.number(s.length), run.number(s.width)]
    const elements = (expr: Expr): number[] => Array.from({ length: width }, (_, at) => Number(run.element(s.column, expr)(at)))
    const once = (expr: Expr): number => Number(run.element(s.column, expr)(0))
    const carried = new Map<string, number | readonly number[]>()
    const set = (name: string, value: number | readonly number[]): void => {
      if (typeof value === 'number') run.setLocal(name, value)
      else run.setRow(name, value)
      carried.set(name, value)
    }
    const numbers = s.fields.map((): number[] => [])
    s.fields.forEach(({ is, before }, i) => {
      const start = s.starts[i]
      if (start !== undefined) set(before, is === 'row' ? elements(start) : once(start))
    })
    for (let at = 0; at < length; at++) {
      run.setLocal(s.index, at)
      s.step.forEach(({ does, name, monoid: by }, i) => {
        const value = s.values[i]
        if (value === undefined) return
        if (does === 'row') set(name, elements(value))
        else if (by === undefined) set(name, once(value))
        else set(name, monoid(by).evaluate(width, run.elementNumber(s.column, value)))
      })
      const made = s.fields.map(({ after }) => carried.get(after) ?? Number.NaN)
      s.fields.forEach(({ before }, i) => {
        const value = made[i] ?? Number.NaN
        if (typeof value === 'number') numbers[i]?.push(value)
        set(before, value)
      })
    }
    s.fields.forEach(({ is, result, before }, i) => {
      const last = carried.get(before) ?? Number.NaN
      if (is === 'number' && s.each) run.setRow(result, numbers[i] ?? [])
      else if (typeof last === 'number') run.setLocal(result, last)
      else run.setRow(result, last)
    })
  },
  print: ({ fields, starts, step, values, each, ...s }, text) => {
    const of = (expr: Expr | undefined): string => (expr === undefined ? '' : text.expr(expr))
    const loop = text.loop({ index: s.column, length: s.width })
    const from = fields.map(({ is, before }, i) => `${before} = ${is === 'row' ? `[${loop}: ${of(starts[i])}]` : of(starts[i])}`)
    const made = step.map(({ does, name, monoid: by }, i) => {
      if (does === 'let') return `${name} = ${of(values[i])}`
      return `${name} = ${does === 'row' ? '[' : `${by}(`}${loop}: ${of(values[i])}${does === 'row' ? ']' : ')'}`
    })
    const results = fields.map(({ result }) => result).join(', ')
    const next = fields.map(({ after }) => after).join(', ')
    return `fold ${each ? 'rows ' : ''}(${results}) = (${from.join(', ')}; ${text.loop(s)}: ${made.join('; ')}; ${next})`
  },
  verify(s, check) {
    check.index(s.length)
    check.index(s.width)
    verifySteps(s, check)
  },
}
