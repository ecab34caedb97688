/**
 * Abstract interpretation of bodies over values with errors (error.ts). A row program is run once for all elements together, a matmul as
 * its epilogue over sums of products. accuracy.ts classifies the outputs.
 */
import type { Stmt, StmtOf } from '../constructs/index.js'
import { teamOf } from '../constructs/team_call.js'
import { dtypeInfo } from '../dtype.js'
import type { Expr } from '../expr.js'
import type { Kernel, TensorParam } from '../kernel.js'
import type { MatmulKernel } from '../product.js'
import { factorParam } from '../product.js'
import type { MonoidField } from '../user_monoid.js'
import { visitUp } from '../walk.js'
import { constantsOnly, countOf } from './counts.js'
import { applied, decided, inForm, longSum, mean, summed } from './error.js'
import type { Count, Domain, Facts } from './facts.js'
import { noFacts } from './facts.js'
import { constant, either, integer, leaf, type Value } from './value.js'

/** Maximum of counts, as a count. */
export const longest = ([first, ...others]: readonly Count[]): Count | undefined =>
  first === undefined ? undefined : others.reduce<Count>((a, b) => ['maximum', a, b], first)

/** Powers of two that scale the other operand to about 1. If the divisor depends on sizes, that of the longest sums is used. */
function steps(divide: Count): Value {
  const step = 2 ** -Math.round(Math.log2(typeof divide === 'number' ? divide : longSum) / 2)
  return { ...leaf([step, 2 * step], 1), factor: step }
}

/** Abstract value of an input, from its domain. */
export function inputValue(param: TensorParam, domain: Domain | undefined): Value {
  const { dtype } = param
  if (domain?.divide !== undefined) return steps(domain.divide)
  if (domain?.values !== undefined) {
    const values = [...domain.values, ...(domain.first === undefined ? [] : [domain.first])]
    return leaf(values, Math.max(...values.map(Math.abs), 2 ** -20))
  }
  const bounds = [...(domain?.from ?? []), ...(domain?.to ?? [])].flatMap((bound) => (typeof bound === 'number' ? [bound] : []))
  const isBounded = bounds.length === (domain?.from?.length ?? 0) + (domain?.to?.length ?? 0) && bounds.length > 0
  if (typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32')
    return isBounded ? { ...integer(largestOf(bounds), 1), factor: Math.max(1, largestOf(bounds)) } : integer(2 ** 14, 1)
  if (dtype === 'i8') return leaf([1, 127], 1)
  if (!isBounded) return leaf([1, 2], 1, false)
  const size = largestOf(bounds)
  return { ...leaf([0.1], size, Math.min(...bounds) >= 0) }
}

const largestOf = (bounds: readonly number[]): number => Math.max(...bounds.map(Math.abs))

/** Abstract value of every output of a row program, given those of some inputs. */
export function ofProgram(kernel: Kernel, facts: Facts, given: ReadonlyMap<string, Value>): Record<string, Value> {
  const inputs = new Map(
    kernel.tensors
      .filter(({ access }) => access === 'in')
      .map((param) => {
        const value = given.get(param.name) ?? inputValue(param, facts.inputs[param.name])
        // Inputs without a domain have either sign.
        return [
          param.name,
          facts.inputs[param.name] === undefined ? { ...value, isPositive: given.get(param.name)?.isPositive ?? false } : value,
        ] as const
      }),
  )
  return new Program(kernel, facts, inputs).run()
}

/** Interprets a row program once, for all elements together. */
class Program {
  readonly #kernel: Kernel
  readonly #facts: Facts
  readonly #inputs: ReadonlyMap<string, Value>
  readonly #named = new Map<string, Value>()
  readonly #locals = new Map<string, Expr>()
  readonly #memo = new Map<Expr, Value>()

  constructor(kernel: Kernel, facts: Facts, inputs: ReadonlyMap<string, Value>) {
    this.#kernel = kernel
    this.#facts = facts
    this.#inputs = inputs
  }

  run(): Record<string, Value> {
    const made: Record<string, Value> = {}
    for (const stmt of this.#kernel.body) {
      const value = this.#statement(stmt)
      if (!('tensor' in stmt)) continue
      const before = made[stmt.tensor]
      made[stmt.tensor] = before === undefined ? value : either(before, value)
    }
    return made
  }

  #statement(stmt: Stmt): Value {
    if (stmt.kind === 'merge' || stmt.kind === 'mergeScan') return this.#merged(stmt, stmt.monoid.fields)
    if (stmt.kind === 'foldRow') return this.#merged({ ...stmt, values: [...stmt.starts, ...stmt.values] }, stmt.fold.fields)
    if (stmt.kind === 'foldState') return this.#carried(stmt)
    if (stmt.kind === 'team') return this.#ofTeam(stmt)
    const value = this.#value(stmt.value)
    switch (stmt.kind) {
      case 'let':
        this.#named.set(stmt.name, value)
        this.#locals.set(stmt.name, stmt.value)
        return value
      case 'row':
        this.#named.set(stmt.name, value)
        return value
      case 'reduce':
      case 'scan': {
        const reduced = this.#reduced(stmt.monoid, stmt.length, value)
        this.#named.set(stmt.name, reduced)
        return reduced
      }
      case 'topK':
        this.#named.set(stmt.name, value)
        this.#named.set(stmt.indices, decided([value]))
        return value
      case 'argsort':
      case 'counts':
        this.#named.set(stmt.name, decided([value]))
        return value
      case 'histogram':
        return decided([value])
      default:
        return value
    }
  }

  #ofTeam(stmt: StmtOf<'team'>): Value {
    const { of, as } = teamOf(stmt).error
    const elements = Object.entries(stmt.elements).map(([name, value]) => [name, this.#value(value)] as const)
    const own = elements.find(([name]) => name === of)?.[1] ?? constant(0)
    const value = as === 'sum' ? this.#reduced('sum', stmt.length, own) : own
    this.#named.set(stmt.name, value)
    return value
  }

  /** The error of a field is that of a sum over the whole row, of terms of either sign, through functions. Integers have no rounding error. */
  #merged(
    { names, length, values }: Pick<StmtOf<'merge'>, 'names' | 'length' | 'values'>,
    fields: readonly Pick<MonoidField, 'type'>[],
  ): Value {
    const elements = values.map((value) => this.#value(value))
    const count = countOf(length, this.#locals) ?? longestDim(this.#kernel)
    const [first = constant(0), ...others] = elements
    const any = {
      ...summed({ ...others.reduce(either, first), isPositive: false }, count),
      calls: true,
      exact: undefined,
      isStored: false,
    }
    for (const [i, name] of names.entries()) this.#named.set(name, fields[i]?.type === 'i32' ? decided(elements) : any)
    return any
  }

  /**
   * The error of carried state is that of a sum over all steps, of terms of either sign. A step is interpreted twice, since the first
   * may carry nothing yet.
   */
  #carried(stmt: StmtOf<'foldState'>): Value {
    const { fields, starts, step, values, length, width } = stmt
    let carried = starts.map((start) => this.#value(start))
    for (const _ of ['first', 'second']) {
      this.#memo.clear()
      for (const [i, { before }] of fields.entries()) this.#named.set(before, carried[i] ?? constant(0))
      step.forEach(({ does, name, monoid }, i) => {
        const given = values[i]
        if (given === undefined) return
        const value = this.#value(given)
        this.#named.set(name, does === 'reduce' && monoid !== undefined ? this.#reduced(monoid, width, value) : value)
        if (does === 'let') this.#locals.set(name, given)
      })
      carried = fields.map(({ after }, i) => either(carried[i] ?? constant(0), this.#named.get(after) ?? constant(0)))
    }
    const count = countOf(length, this.#locals) ?? longestDim(this.#kernel)
    const any = carried.map((each) => ({
      ...summed({ ...each, isPositive: false }, count),
      calls: true,
      exact: undefined,
      isStored: false,
    }))
    for (const [i, { result }] of fields.entries()) this.#named.set(result, any[i] ?? constant(0))
    return any.reduce(either, constant(0))
  }

  #reduced(monoid: string, length: Expr, value: Value): Value {
    if (monoid === 'argmax' || monoid === 'argmin') return decided([value])
    if (monoid !== 'sum') return value
    return summed(value, countOf(length, this.#locals) ?? longestDim(this.#kernel))
  }

  /** Not recursive, so that expressions of any depth work. */
  #value(expr: Expr): Value {
    visitUp(expr, (node) => {
      if (!this.#memo.has(node)) this.#memo.set(node, this.#node(node))
    })
    return this.#memo.get(expr) ?? constant(0)
  }

  #node(expr: Expr): Value {
    const known = (operand: Expr): Value => this.#memo.get(operand) ?? constant(0)
    switch (expr.kind) {
      case 'const':
        return constant(typeof expr.value === 'number' ? expr.value : 0)
      case 'dim':
        return integer(2 ** 14, 1)
      case 'index':
        return { ...integer(2 ** 14, 1), factorRoots: 2 }
      case 'attr':
        return this.#attr(expr.name)
      case 'local':
        return this.#named.get(expr.name) ?? constant(0)
      case 'element':
        return this.#named.get(expr.row) ?? constant(0)
      case 'load':
        return this.#inputs.get(expr.tensor) ?? constant(0)
      case 'fold':
        return this.#reduced(expr.monoid, expr.length, known(expr.value))
      case 'call': {
        const args = expr.args.map(known)
        const [a, b] = expr.args
        if (expr.fn === 'div' && b !== undefined && constantsOnly(b)) return inForm(expr, mean(args[0] ?? constant(0)), args)
        const value = inForm(expr, applied(expr.fn, args, a === b), args)
        // A choice that a rounding may flip is not exact.
        return expr.fn === 'select' && args[0]?.isStored === false
          ? { ...value, isStored: false, isMoved: false, exact: undefined }
          : value
      }
    }
  }

  #attr(name: string): Value {
    const attr = this.#kernel.attrs.find((each) => each.name === name)
    if (attr?.type === 'i32') return integer(2 ** 14, 1)
    // It is chosen with one decimal, and scales results to the range of int8.
    if (this.#facts.attrs[name] !== undefined) return { ...leaf([127.5], 1), factors: 0 }
    return { ...leaf([attr?.default ?? 1], Math.abs(attr?.default ?? 1), (attr?.default ?? 0) > 0), factors: 0 }
  }
}

/** Fallback for the length of a sum: the longest of a kernel's dimensions. */
const longestDim = ({ dims }: Pick<Kernel, 'dims'>): Count => longest(dims) ?? 1

export function ofMatmul(kernel: MatmulKernel): ReadonlyMap<string, Value> {
  const facts = kernel.facts ?? noFacts
  const factor = (each: MatmulKernel['a']): Value => {
    if (each.prologue === undefined) return inputValue(factorParam(kernel, each), facts.inputs[each.tensor])
    return ofProgram(each.prologue, facts, new Map())[each.tensor] ?? constant(1)
  }
  const a = factor(kernel.a)
  const sums = new Map(
    kernel.products.map(({ b, accumulator }) => {
      const value = factor(b)
      const product = applied('mul', [a, value], false)
      const isInteger = [kernel.a, b].every((each) => each.prologue === undefined && factorParam(kernel, each).dtype === 'i8')
      return [
        accumulator,
        isInteger ? integer(2 ** 16, 1) : { ...summed({ ...product, isPositive: false }, kernel.k), open: undefined },
      ] as const
    }),
  )
  const programs = [kernel.epilogue, ...(kernel.partials === undefined ? [] : [kernel.partials])]
  return new Map(programs.flatMap((program) => Object.entries(ofProgram(program, facts, sums))))
}
