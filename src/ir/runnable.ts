/**
 * Expressions of a kernel as functions over tensors on the host. Their source (src/ir/javascript.ts) is compiled once per kernel, and
 * bound to data for each run. Kernels that differ only in names share the compiled code.
 */
import type { Run, Value } from './constructs/construct.js'
import { constructOf } from './constructs/index.js'
import { type HostTensor, known, type Numbers, position } from './evaluate_expr.js'
import type { Expr } from './expr.js'
import { intrinsics } from './intrinsics.js'
import { javascript, type Names, type Precision, type Root } from './javascript.js'
import type { Kernel, Stmt } from './kernel.js'
import { monoids } from './monoids.js'

/** Values of a kernel's names in a run. */
export interface Bound {
  readonly tensors: Readonly<Record<string, HostTensor>>
  readonly dims: Numbers
  readonly attrs: Numbers
  /** Strayed precision only: returns the float32 that a result becomes. The nearest by default. */
  readonly stray?: ((value: number) => number) | undefined
}

/** The part of a run that statements read from, without their stores. */
export type Reads = Omit<Run, 'write' | 'writeRow'>

export interface Running {
  readonly reads: Reads
  /** Returns the setter of an index. */
  readonly setValue: (name: string) => (value: Value) => void
}

interface Tensor {
  readonly data: Float64Array
  readonly shape: readonly number[]
  /** False if every access is refused: the tensor is missing, or has another rank. */
  readonly isWhole: boolean
}

/** Objects that the source of a kernel refers to, by number. */
interface Scope {
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
  readonly tensors: readonly Tensor[]
  readonly monoids: typeof monoids
  readonly intrinsics: typeof intrinsics
  /** Converts a double to a float32 near it. */
  readonly strayed: (value: number) => number
  /** Both throw. */
  readonly noElement: (row: number, at: number, values: readonly Value[]) => number
  readonly noLoad: (tensor: number, indices: readonly number[]) => number
}

type AtPlace = (at: number) => Value

interface Instance {
  readonly roots: readonly AtPlace[]
  readonly setValue: readonly ((value: Value) => void)[]
  readonly setRow: readonly ((values: readonly Value[]) => void)[]
}

type Factory = (scope: Scope) => Instance

const factories = new Map<string, Factory>()
const mostFactories = 2000

function factoryOf(text: string): Factory {
  const before = factories.get(text)
  if (before !== undefined) return before
  if (factories.size >= mostFactories) factories.clear()
  // The source consists of numbers and the compiler's own words only: see javascript.ts.
  const made = new Function('scope', `'use strict'\n${text}`) as Factory
  factories.set(text, made)
  return made
}

const made = {
  double: new WeakMap<Kernel, (bound: Bound) => Running>(),
  single: new WeakMap<Kernel, (bound: Bound) => Running>(),
  strayed: new WeakMap<Kernel, (bound: Bound) => Running>(),
} satisfies Record<Precision, unknown>

/** Compiles a kernel's expressions; the result binds them to data. */
export function runnable(kernel: Kernel, precision: Precision = 'double'): (bound: Bound) => Running {
  const before = made[precision].get(kernel)
  if (before !== undefined) return before
  const bind = compile(kernel, precision)
  made[precision].set(kernel, bind)
  return bind
}

const rootsOf = (stmt: Stmt): Root[] => {
  const construct = constructOf(stmt)
  const index = 'column' in stmt ? stmt.column : 'index' in stmt ? stmt.index : undefined
  return [
    ...construct.rowExprs(stmt).map((expr) => ({ expr })),
    ...construct.elementExprs(stmt).map((expr) => (index === undefined ? { expr } : { expr, index })),
  ]
}

function compile(kernel: Kernel, precision: Precision): (bound: Bound) => Running {
  const roots = kernel.body.flatMap(rootsOf)
  const defined = kernel.body.flatMap((stmt) => constructOf(stmt).defines(stmt))
  // The index of a step is set like a scalar, in addition to that of an element.
  const ofSteps = kernel.body.flatMap((stmt) => ('column' in stmt ? [stmt.index] : []))
  const values = [...kernel.rows.map(({ index }) => index), ...ofSteps, ...namesOf(defined, 'local')]
  const { text, names } = javascript(roots, { values, rows: namesOf(defined, 'row') }, precision)
  const factory = factoryOf(text)
  return (bound) => running(factory(scopeOf(names, bound)), names, roots)
}

const namesOf = (defined: readonly { readonly kind: 'local' | 'row'; readonly name: string }[], wanted: 'local' | 'row') =>
  defined.flatMap(({ kind, name }) => (kind === wanted ? [name] : []))

function scopeOf({ dims, attrs, tensors, rows }: Names, bound: Bound): Scope {
  return {
    dims: dims.map((name) => known(bound.dims[name], 'dimension', name)),
    attrs: attrs.map((name) => known(bound.attrs[name], 'attribute', name)),
    tensors: tensors.map(({ name, rank }) => wholeTensor(bound.tensors[name], rank)),
    monoids,
    intrinsics,
    strayed: bound.stray ?? Math.fround,
    noElement: (row, at, values) => outside(rows[row] ?? '', [Number(at)], [values.length]),
    noLoad: (tensor, indices) => {
      const { name = '', rank = 0 } = tensors[tensor] ?? {}
      const { shape } = known(bound.tensors[name], 'tensor', name)
      if (shape.length !== rank) throw new Error(`internal: evaluate: tensor ${name} has ${shape.length} dimensions, not ${rank}`)
      return outside(name, indices.map(Number), shape)
    },
  }
}

/** Elements that a tensor lacks are NaN. */
function wholeTensor(tensor: HostTensor | undefined, rank: number): Tensor {
  if (tensor === undefined || tensor.shape.length !== rank) return { data: new Float64Array(0), shape: [], isWhole: false }
  const { data, shape } = tensor
  const size = shape.reduce((product, extent) => product * extent, 1)
  if (data instanceof Float64Array && data.length >= size) return { data, shape, isWhole: true }
  const whole = new Float64Array(size).fill(Number.NaN)
  for (let at = 0; at < Math.min(size, data.length); at++) whole[at] = data[at] ?? Number.NaN
  return { data: whole, shape, isWhole: true }
}

/** @throws finding `evaluate.bounds` */
function outside(name: string, indices: readonly number[], shape: readonly number[]): never {
  position(name, indices, shape)
  throw new Error(`internal: evaluate: ${name}[${indices.join(', ')}] is inside its shape (${shape.join(', ')})`)
}

function running({ roots: functions, setValue, setRow }: Instance, names: Names, roots: readonly Root[]): Running {
  // An expression may be evaluated under the indices of several loops.
  const byIndex = new Map<string | undefined, Map<Expr, AtPlace>>()
  roots.forEach(({ expr, index }, i) => {
    const those = byIndex.get(index) ?? new Map<Expr, AtPlace>()
    byIndex.set(index, those.set(expr, known(functions[i], 'expression', index ?? 'of a row')))
  })
  const find = (index: string | undefined, expr: Expr): AtPlace =>
    known(byIndex.get(index)?.get(expr), 'expression', index ?? 'of a row')
  const setters = new Map(names.values.map((name, i) => [name, known(setValue[i], 'value', name)]))
  const rowSetters = new Map(names.rows.map((name, i) => [name, known(setRow[i], 'row', name)]))
  const setterOf = (name: string) => known(setters.get(name), 'value', name)
  return {
    setValue: setterOf,
    reads: {
      value: (expr) => find(undefined, expr)(0),
      number: (expr) => Number(find(undefined, expr)(0)),
      element: find,
      elementNumber: (index, expr) => {
        const element = find(index, expr)
        return (at) => Number(element(at))
      },
      setLocal: (name, value) => setterOf(name)(value),
      setRow: (name, values) => known(rowSetters.get(name), 'row', name)(values),
    },
  }
}
