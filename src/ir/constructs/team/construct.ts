/**
 * Interface of a team construct: a scalar that the threads of a row compute together, in loops of their own over the elements of a row. A file of this
 * folder holds everything about one: the function that authors call, its arguments and checks, its evaluation, its work for prices, and its call in
 * CUDA. Every room handles all of them alike, by the object that `teamConstruct` registers; src/ir/constructs/team/index.ts lists the files.
 */
import type { ScalarType } from '../../dtype.js'
import type { Expr } from '../../expr.js'
import type { Text } from '../construct.js'

/** A row value, as authors write it: element `c` of the row. */
export type Row = (index: number) => number

/** Expressions of a construct by name: once per row, or once per element. */
type Named<Names extends string, T = Expr> = { readonly [K in Names]: T }

/** A call of a construct. */
export interface TeamParts<Scalars extends string = string, Elements extends string = string> {
  readonly type: ScalarType
  /** Upper bound of the number of elements. */
  readonly length: Expr
  /** Usual number of elements, by which the threads per row are chosen, if it is not the length. It depends on sizes only. */
  readonly usual?: Expr
  readonly index: string
  readonly scalars: Named<Scalars>
  /** Values of the element `index`. */
  readonly elements: Named<Elements>
}

/** The arguments of a call while it is read. Each refuses an argument that is something else, at its place. */
export interface Arguments {
  /** A length, or another integer that is known once per row. `what` names it in messages. */
  integer(at: number, what: string): Expr
  float(at: number): Expr
  /** Elements of a row of `length`: all arguments read as rows share the index, which counts from the element `first`. */
  elements(at: number, length: Expr, as: 'floats' | 'numbers', first?: Expr): Expr
  /** The integer that a function of an index gives for one index. */
  integerOf(at: number, index: Expr): Expr
  /** Number of iterations of the loop, or rows of the kernel, whose index an expression is; undefined for other expressions. */
  extentOf(index: Expr): Expr | undefined
  /** Index of the elements. */
  readonly index: string
  /** Names a scalar. */
  scalar(name: string, value: Expr): Expr
}

/** Source of a call. */
export interface TeamWriter {
  expr(expr: Expr): string
  /** A function of the element's index. */
  element(value: Expr): string
  /** A function of the index and of the value of `known`, called `name`, which is not computed again. */
  elementOf(value: Expr, known: Expr, name: string): string
}

export interface TeamConstruct<Scalars extends string = string, Elements extends string = string> {
  /** `a threshold`. */
  readonly words: string
  /** Number of arguments. */
  readonly takes: number
  /** A call as authors write it. */
  readonly example: string
  read(args: Arguments): TeamParts<Scalars, Elements>
  /** Result for one row, from the values of its scalars and elements. */
  evaluate(length: number, scalars: Named<Scalars, number>, elements: Named<Elements, (at: number) => number>): number
  /** Types that it does not take, in words; undefined if it takes them. */
  mismatch(type: ScalarType, scalars: Named<Scalars, ScalarType>, elements: Named<Elements, ScalarType>): string | undefined
  print(parts: TeamParts<Scalars, Elements>, text: Text): string
  /** Error of the result: that of an element, or of the sum of all. */
  readonly error: { readonly of: NoInfer<Elements>; readonly as: 'element' | 'sum' }
  /** Work of the device function: its walks over the elements, and the instructions per element besides its values. */
  readonly work: { readonly walks: number; readonly instructions: number }
  /** Widest team that takes a row. Others than blocks take rows that are short enough for them. */
  readonly widest: 'block' | 'wide block'
  /** Device header that the source needs besides kernel.cuh. */
  readonly header?: string
  /** Source of the call, an expression. */
  source(parts: TeamParts<Scalars, Elements>, writer: TeamWriter): string
}

const registered = new WeakMap<object, TeamConstruct>()

/** The function that authors call, by which the front end recognises the construct. */
export type TeamFunction<Name extends string, F> = F & { readonly heddle: { readonly kind: 'team'; readonly name: Name } }

/** Makes the function that authors call, and registers the construct. */
export function teamConstruct<
  const Name extends string,
  F extends (...args: never[]) => number,
  S extends string,
  E extends string,
>(name: Name, called: F, construct: TeamConstruct<S, E>): TeamFunction<Name, F> {
  const made = Object.assign(called, { heddle: { kind: 'team', name } as const })
  registered.set(made, construct)
  return made
}

/** The construct of a function that `teamConstruct` made. */
export function constructOfFunction(called: object): TeamConstruct {
  const found = registered.get(called)
  if (found === undefined) throw new Error('internal: a function of no team construct')
  return found
}
