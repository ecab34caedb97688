/**
 * A recurrence that carries rows, such as the state of a delta rule: the threads of a row of the kernel make one step after the other, and
 * within a step reductions over what is carried and new rows of it. Its step is a list of scalars, reductions and rows, each of which may
 * read those before it. All its rows have `width` elements, at index `column`. Behind the last step the carried rows are rows that may be
 * read at any index; a number is carried too, and gives an element for every step, or what it is behind the last.
 */
import type { ScalarType } from '../dtype.js'
import type { Expr } from '../expr.js'
import { type MonoidName, monoid } from '../monoids.js'
import type { Check, Construct, Defined } from './construct.js'

/** Elements a carried row may have: what is carried, before and behind a step, fits the shared memory of a block with four rows. */
export const longestCarried = 1024

/** Rows that may be carried together. */
export const mostCarried = 4

/** What is carried. */
export interface StateField {
  readonly is: 'row' | 'number'
  /** What it is behind the steps: a row, or the row of its numbers, or the last of them. */
  readonly result: string
  /** What it is in front of a step, and the statement of the step that makes it anew. */
  readonly before: string
  readonly after: string
}

/** A statement of the step, without its expression. */
export interface StepPart {
  readonly does: 'let' | 'reduce' | 'row'
  readonly name: string
  readonly type: ScalarType
  /** Of a reduction. */
  readonly monoid?: MonoidName
}

export interface FoldState {
  readonly kind: 'foldState'
  readonly fields: readonly StateField[]
  /** True if numbers give an element for every step. */
  readonly each: boolean
  /** How many steps, and the index of one. */
  readonly length: Expr
  readonly index: string
  readonly width: Expr
  readonly column: string
  /** What is carried in front of the first step: of a row, its element. */
  readonly starts: readonly Expr[]
  readonly step: readonly StepPart[]
  /** The expressions of the step's statements. */
  readonly values: readonly Expr[]
}

/** The row that a field gives for every step, or the scalar behind the last; rows give their last. */
const resultOf = ({ is, result }: StateField, each: boolean): Defined => ({
  kind: is === 'row' || each ? 'row' : 'local',
  name: result,
  type: 'f32',
})

/** Rows that have an element for every step. */
export const stepRows = (body: readonly (FoldState | { readonly kind: string })[]): ReadonlySet<string> =>
  new Set(
    body
      .filter((s): s is FoldState => s.kind === 'foldState')
      .flatMap(({ fields, each }) => (each ? fields : []).flatMap(({ is, result }) => (is === 'number' ? [result] : []))),
  )

const beforeOf = ({ is, before }: StateField): Defined => ({ kind: is === 'row' ? 'row' : 'local', name: before, type: 'f32' })

const madeBy = ({ does, name, type }: StepPart): Defined => ({ kind: does === 'row' ? 'row' : 'local', name, type })

/** The rules of a step, which kernels and schedules share. @param element checks an expression at `column` */
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
