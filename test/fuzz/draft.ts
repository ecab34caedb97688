/** An op under construction: expressions over the types of its names. */
import { call, type Expr, element, type InputDesc, load, named, num, type ScalarType, scalarOf, whole } from './describe.js'
import { bitsOfLoad, cutFloat } from './draw_bits.js'
import { Signature } from './signature.js'

/** Names that an expression may read. */
export interface Context {
  /** Index variables, and the dimensions that they run over. */
  readonly indices: readonly { readonly name: string; readonly dim: string }[]
  readonly numbers: readonly { readonly name: string; readonly type: ScalarType }[]
  /** Rows by name. One that is made in order is read at its own index. */
  readonly rows: readonly {
    readonly name: string
    readonly type: ScalarType
    readonly dim: string
    readonly ordered: boolean
  }[]
  /** Keeps indices unchanged. */
  readonly plain?: boolean
}

export const empty: Context = { indices: [], numbers: [], rows: [] }

/** Draws expressions over the names of the signature. */
export class OpDraft extends Signature {
  /** Leaves out discontinuous functions: if intermediate values are rounded, the side of a jump is unknown. */
  smooth = false

  /** Places of a dimension for an index that runs over it. */
  place(index: { readonly name: string; readonly dim: string }, twisted: boolean): Expr {
    const { random } = this
    const c = named(index.name)
    if (!twisted) return c
    const n = named(index.dim)
    const last = call('i32', 'sub', n, whole(1))
    switch (random.below(5)) {
      case 0:
        return call('i32', 'sub', last, c)
      case 1:
        return call('i32', 'mod', call('i32', 'add', c, whole(random.between(1, 3))), n)
      case 2:
        return call('i32', 'idiv', c, whole(random.between(2, 4)))
      case 3:
        return call('i32', 'minimum', call('i32', 'add', c, whole(1)), last)
      default:
        return call('i32', 'maximum', call('i32', 'sub', c, whole(1)), whole(0))
    }
  }

  /** A load of an input all of whose dimensions have an index here; of another, nothing. */
  loadOf({ name, dtype, dims }: InputDesc, at: Context): Expr | undefined {
    const twisted = at.plain !== true && this.random.chance(0.12)
    const places = dims.map((dim, axis) => {
      const index = at.indices.findLast((each) => each.dim === dim)
      return index === undefined ? undefined : this.place(index, twisted && axis === dims.length - 1)
    })
    const all = places.flatMap((place) => place ?? [])
    return all.length === dims.length ? load(scalarOf(dtype), name, ...all) : undefined
  }

  leaf(type: ScalarType, at: Context): Expr | undefined {
    const { random } = this
    const loads = this.inputs
      .filter(({ dtype, domain }) => scalarOf(dtype) === type && domain.kind !== 'bits')
      .map((each) => () => this.loadOf(each, at))
    const names = at.numbers.filter((each) => each.type === type).map((each) => () => named(each.name, type))
    const rows = at.rows.flatMap((row) => {
      const index = at.indices.findLast(({ dim }) => dim === row.dim)
      if (row.type !== type || index === undefined) return []
      return [() => element(type, row.name, this.place(index, !row.ordered && at.plain !== true && random.chance(0.06)))]
    })
    const all = [...loads, ...rows, ...rows, ...names]
    return all.length === 0 ? undefined : (random.pick(all)() ?? random.pick(all)())
  }

  /** An unchanged element of an input, whose bits are known. */
  loaded(at: Context): Expr | undefined {
    return this.leaf('f32', { ...at, numbers: [], rows: [], plain: true })
  }

  float(depth: number, at: Context): Expr {
    const { random } = this
    const inner = (): Expr => this.float(depth - 1, at)
    if (depth <= 0 || random.chance(0.15)) return this.#floatLeaf(at)
    const binary = (fn: string): Expr => call('f32', fn, inner(), this.#factor(inner(), fn))
    const jumps = this.smooth ? { choice: 1, whole: 0.3, raw: 0, bits: 0 } : { choice: 2, whole: 0.6, raw: 0.35, bits: 0.5 }
    switch (random.weighed({ arithmetic: 7, pair: 2, one: 3, smooth: 3, guarded: 2, ...jumps })) {
      case 'arithmetic':
        return binary(random.pick(['add', 'sub', 'mul', 'mul', 'add']))
      case 'pair':
        return call('f32', random.pick(['minimum', 'maximum']), inner(), this.#factor(inner(), 'minimum'))
      case 'one':
        return call(
          'f32',
          random.pick(this.smooth ? ['neg', 'abs', 'square'] : ['neg', 'abs', 'square', 'floor', 'ceil', 'trunc', 'round']),
          inner(),
        )
      case 'smooth':
        return call('f32', random.pick(['tanh', 'erf', 'gelu', 'sin', 'cos']), inner())
      case 'guarded':
        return this.#guarded(inner)
      case 'choice':
        return call('f32', 'select', this.boolean(depth - 1, at), inner(), this.#factor(inner(), 'select'))
      case 'whole':
        return call('f32', 'toFloat', this.integer(depth - 1, at))
      case 'raw':
        return random.chance(0.5)
          ? call('f32', random.pick(['sqrt', 'log', 'exp', 'rsqrt', 'log2', 'exp2', 'expm1', 'log1p']), inner())
          : call('f32', 'div', inner(), inner())
      case 'bits': {
        const loaded = this.loaded(at)
        return loaded === undefined ? inner() : cutFloat(random, loaded)
      }
    }
  }

  /** Functions whose argument is restricted to the range in which they are defined and well-conditioned. */
  #guarded(inner: () => Expr): Expr {
    const { random } = this
    const positive = (): Expr => call('f32', 'add', call('f32', 'abs', inner()), num(0.5))
    switch (random.below(8)) {
      case 0:
        return call('f32', 'div', inner(), positive())
      case 1:
        return call('f32', 'exp', call('f32', 'neg', call('f32', 'abs', inner())))
      case 2:
        return call('f32', random.pick(['log', 'log2', 'log10', 'log1p', 'sqrt', 'rsqrt']), positive())
      case 3:
        return call('f32', 'pow', positive(), num(random.pick([0.5, 1.5, -0.75, 2.5])))
      case 4:
        return call('f32', random.pick(['exp', 'exp2', 'expm1']), call('f32', 'minimum', inner(), num(2.5)))
      case 5:
        return call('f32', 'exp2', call('f32', 'neg', call('f32', 'abs', inner())))
      case 6:
        // A scale that is a power of two, as quantisers have them.
        return this.smooth
          ? inner()
          : call('f32', 'exp2', call('f32', random.pick(['ceil', 'floor', 'round']), call('f32', 'log2', positive())))
      default:
        return call('f32', 'div', inner(), num(random.pick([0.5, 2.5, 1.75, 0.3])))
    }
  }

  /** Sometimes an integer, if the other operand shows that floats are meant. */
  #factor(e: Expr, fn: string): Expr {
    const { random } = this
    if (!random.chance(0.15)) return e
    return num(fn === 'mul' ? random.pick([2, 3, 0.5, -1.5]) : random.pick([0, 1, 2, -1, 0.5]))
  }

  #floatLeaf(at: Context): Expr {
    const { random } = this
    if (random.chance(0.06)) return num(random.pick([0.5, 0.25, 1.5, -0.75, 0.1, 2.5, -3.125]))
    if (random.chance(0.04)) return this.attr('f32')
    return this.leaf('f32', at) ?? this.leaf('f32', { ...at, plain: true }) ?? call('f32', 'toFloat', this.integer(0, at))
  }

  /** Integers stay small: growing ones are reduced. */
  integer(depth: number, at: Context): Expr {
    const { random } = this
    const inner = (): Expr => this.integer(depth - 1, at)
    if (depth <= 0 || random.chance(0.2)) return this.#integerLeaf(at)
    switch (random.below(11)) {
      case 0:
      case 1:
        return call('i32', random.pick(['add', 'sub', 'minimum', 'maximum']), inner(), inner())
      case 2:
        return call('i32', 'mul', inner(), whole(random.between(2, 7)))
      case 3:
        return call(
          'i32',
          random.pick(['bitAnd', 'bitOr', 'bitXor']),
          inner(),
          random.chance(0.5) ? whole(random.pick([1, 3, 15, 63])) : inner(),
        )
      case 4:
        return call(
          'i32',
          random.pick(['shiftRight', 'shiftRightUnsigned']),
          call('i32', 'bitAnd', inner(), whole(1023)),
          whole(random.between(0, 4)),
        )
      case 5:
        return call('i32', 'shiftLeft', call('i32', 'bitAnd', inner(), whole(255)), whole(random.between(0, 4)))
      case 6:
        return call(
          'i32',
          random.pick(['idiv', 'mod']),
          inner(),
          random.chance(0.7)
            ? whole(random.between(2, 9))
            : call('i32', 'add', call('i32', 'abs', call('i32', 'mod', inner(), whole(5))), whole(1)),
        )
      case 7:
        return call('i32', 'select', this.boolean(depth - 1, at), inner(), inner())
      case 8:
        return this.smooth ? this.#integerLeaf(at) : call('i32', 'toInt', this.float(depth - 1, at))
      case 9: {
        const loaded = this.smooth ? undefined : this.loaded(at)
        return loaded === undefined ? this.#integerLeaf(at) : bitsOfLoad(random, loaded)
      }
      default:
        return call('i32', random.pick(['abs', 'neg']), call('i32', 'mod', inner(), whole(97)))
    }
  }

  #integerLeaf(at: Context): Expr {
    const { random } = this
    if (random.chance(0.1)) return whole(random.between(-3, 9))
    if (random.chance(0.05)) return this.attr('i32')
    if (random.chance(0.08) && at.indices.length > 0) return named(random.pick(at.indices).dim)
    const own = random.chance(0.6) ? this.leaf('i32', at) : undefined
    return own ?? (at.indices.length > 0 ? named(random.pick(at.indices).name) : whole(random.between(1, 9)))
  }

  boolean(depth: number, at: Context): Expr {
    const { random } = this
    if (depth > 1 && random.chance(0.2)) {
      if (random.chance(0.3)) return call('bool', 'not', this.boolean(depth - 1, at))
      return call('bool', random.pick(['and', 'or']), this.boolean(depth - 1, at), this.boolean(depth - 1, at))
    }
    const held = random.chance(0.25) ? this.leaf('bool', at) : undefined
    if (held !== undefined) {
      return random.chance(0.7) ? held : call('bool', random.pick(['eq', 'ne']), held, this.boolean(depth - 1, at))
    }
    const fn = random.pick(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])
    const type: ScalarType = !this.smooth && random.chance(0.5) ? 'f32' : 'i32'
    const d = Math.min(depth - 1, 1)
    return type === 'f32'
      ? call('bool', random.pick(['lt', 'le', 'gt', 'ge']), this.float(d, at), this.#factor(this.float(d, at), 'select'))
      : call('bool', fn, this.integer(d, at), this.integer(d, at))
  }

  number(depth: number, at: Context): Expr {
    return this.random.chance(0.82) ? this.float(depth, at) : this.integer(depth, at)
  }
}
