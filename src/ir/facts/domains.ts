/**
 * Inference of the domains of integer inputs from a body. An input that indexes a tensor directly is within its extent; one that is
 * compared with numbers is a flag. An input that is only used in arithmetic is any number; one of which only bits are used is any integer.
 * For any other use the author has to state the domain.
 */
import { type DType, dtypeInfo } from '../dtype.js'
import type { Expr, ExprOf } from '../expr.js'
import type { DTypeRef, Kernel, TensorParam } from '../kernel.js'
import { operands, stmtExprs, visit } from '../walk.js'
import type { Count, Domain } from './facts.js'

/** Integers of this size span int8 when they are multiplied by small scales, and exceed it now and then. */
const numbers: Domain = { from: [-100], to: [100] }
const counts: Domain = { from: [0], to: [200] }
const small: Readonly<Partial<Record<DType, Domain>>> = {
  i8: { from: [-127], to: [127] },
  u8: { from: [0], to: [255] },
  bool: { from: [0], to: [1] },
  i16: { from: [-32_768], to: [32_767] },
}
/** Integers that bodies read from types of 32 bits and more. */
const all: Domain = { from: [-(2 ** 31)], to: [2 ** 31 - 1] }
const allWithoutSign: Domain = { from: [0], to: [2 ** 31 - 1] }
const isInteger = (dtype: DTypeRef): dtype is DType => typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'
const smallDomain = (dtype: DTypeRef): Domain | undefined => (typeof dtype === 'string' ? small[dtype] : undefined)

/** Uses of the elements of an integer tensor in a body. */
interface Use {
  readonly places: Count[]
  readonly flags: Set<number>
  /** True if arithmetic modulo 2 ** 32 reads it, whose result is the same for every integer on all devices. */
  wraps: boolean
  /** True if anything else reads it, or a value derived from it. */
  plain: boolean
  /** True if it is part of an index or of a number of elements, or is compared with anything but a number. */
  unclear: boolean
}

type Uses = Map<string, Use>

/** Tensors whose elements an expression passes on. `isElement` if the expression is just such an element. */
interface Carried {
  readonly tensors: ReadonlySet<string>
  readonly isElement: boolean
}

const nothing: Carried = { tensors: new Set(), isElement: false }
const comparisons: readonly string[] = ['lt', 'le', 'gt', 'ge', 'eq', 'ne']
const wrapping: readonly string[] = ['bitXor', 'bitAnd', 'bitOr', 'wrappingAdd', 'wrappingMul', 'floatOfBits']
const shifts: readonly string[] = ['shiftLeft', 'shiftRight', 'shiftRightUnsigned']
const counted: readonly string[] = ['idiv', 'mod']

/** Domains of those integer inputs of an op that its body determines. */
export function impliedDomains(kernel: Kernel): Readonly<Record<string, Domain>> {
  const inputs = kernel.tensors.filter(({ access }) => access === 'in')
  const integers = inputs.filter(({ dtype }) => isInteger(dtype))
  const uses: Uses = new Map(
    integers.map(({ name }) => [name, { places: [], flags: new Set(), wraps: false, plain: false, unclear: false }]),
  )
  new Reading(inputs, uses).read(kernel)
  return {
    ...Object.fromEntries(
      inputs.flatMap(({ name, dtype }) => {
        const domain = smallDomain(dtype)
        return domain === undefined ? [] : [[name, domain] as const]
      }),
    ),
    ...Object.fromEntries(integers.flatMap((param) => domainOf(param, uses).map((domain) => [param.name, domain]))),
  }
}

function domainOf({ name, dtype }: TensorParam, uses: Uses): Domain[] {
  const use = uses.get(name)
  if (use === undefined || use.unclear) return []
  if (use.wraps) {
    if (use.plain || use.places.length > 0 || use.flags.size > 0) return []
    return [smallDomain(dtype) ?? (dtype === 'u32' ? allWithoutSign : all)]
  }
  if (use.places.length > 0) return [{ from: [0], to: use.places.map((place): Count => ['sub', place, 1]) }]
  if (use.flags.size > 0) return [{ from: [Math.min(...use.flags)], to: [Math.max(...use.flags) + 1] }]
  return [smallDomain(dtype) ?? (dtype === 'u32' ? counts : numbers)]
}

/** True for a masked value: an integer up to the mask, for any other bits. */
const isMasked = (expr: Expr): boolean =>
  expr.kind === 'call' &&
  expr.fn === 'bitAnd' &&
  expr.args.some((arg) => arg.kind === 'const' && typeof arg.value === 'number' && arg.value >= 0)

class Reading {
  readonly #inputs: readonly TensorParam[]
  readonly #uses: Uses
  readonly #named = new Map<string, Carried>()

  constructor(inputs: readonly TensorParam[], uses: Uses) {
    this.#inputs = inputs
    this.#uses = uses
  }

  read(kernel: Kernel): void {
    for (const stmt of kernel.body) {
      for (const expr of stmtExprs(stmt)) visit(expr, (node) => this.#see(node))
      if ('length' in stmt) this.#unclear(this.#carried(stmt.length))
      if ('name' in stmt && 'value' in stmt) this.#named.set(stmt.name, this.#carried(stmt.value))
    }
  }

  #see(node: Expr): void {
    if (node.kind === 'fold') this.#unclear(this.#carried(node.length))
    if (node.kind === 'element') this.#unclear(this.#carried(node.index))
    if (node.kind === 'load') this.#seeLoad(node)
    if (node.kind === 'call' && (wrapping.includes(node.fn) || shifts.includes(node.fn))) {
      this.#seeBits(node)
      return
    }
    for (const operand of operands(node)) for (const use of this.#usesOf(operand)) use.plain = true
    if (node.kind !== 'call') return
    if (counted.includes(node.fn)) for (const arg of node.args) this.#unclear(this.#carried(arg))
    if (comparisons.includes(node.fn)) this.#compare(node)
  }

  /** A shift count must be less than the number of bits, so its domain is unclear. */
  #seeBits({ fn, args: [value, ...others] }: ExprOf<'call'>): void {
    const moved = shifts.includes(fn)
    if (value !== undefined) for (const use of this.#usesOf(value)) use.wraps = true
    for (const other of others) {
      if (moved) this.#unclear(this.#carried(other))
      else for (const use of this.#usesOf(other)) use.wraps = true
    }
  }

  #usesOf(expr: Expr): readonly Use[] {
    return [...this.#carried(expr).tensors].flatMap((name) => this.#uses.get(name) ?? [])
  }

  #seeLoad({ tensor, indices }: ExprOf<'load'>): void {
    const dims = this.#inputs.find(({ name }) => name === tensor)?.dims ?? []
    for (const [axis, place] of indices.entries()) {
      const carried = this.#carried(place)
      const dim = dims[axis]
      if (!carried.isElement || dim === undefined) this.#unclear(carried)
      else for (const name of carried.tensors) this.#uses.get(name)?.places.push(dim)
    }
  }

  #compare({ args }: ExprOf<'call'>): void {
    for (const [i, arg] of args.entries()) {
      const carried = this.#carried(arg)
      const other = args[1 - i]
      if (carried.isElement && other?.kind === 'const' && typeof other.value === 'number')
        for (const name of carried.tensors) this.#uses.get(name)?.flags.add(other.value)
      else this.#unclear(carried)
    }
  }

  #unclear({ tensors }: Carried): void {
    for (const name of tensors) {
      const use = this.#uses.get(name)
      if (use !== undefined) use.unclear = true
    }
  }

  /** Integers only: a value converted to float is not an index. */
  #carried(expr: Expr): Carried {
    if (expr.type !== 'i32') return nothing
    if (expr.kind === 'load') return { tensors: new Set(this.#uses.has(expr.tensor) ? [expr.tensor] : []), isElement: true }
    if (expr.kind === 'local') return this.#named.get(expr.name) ?? nothing
    if (expr.kind === 'element') return this.#named.get(expr.row) ?? nothing
    if (expr.kind === 'fold') return { ...this.#carried(expr.value), isElement: false }
    if (isMasked(expr)) return nothing
    const found = operands(expr).flatMap((operand) => [...this.#carried(operand).tensors])
    return { tensors: new Set(found), isElement: false }
  }
}
