/** The signature of an op under construction, and the statements of its body so far. */
import {
  type AttrDesc,
  type DimDesc,
  type Domain,
  type DType,
  type Expr,
  type InputDesc,
  type MonoidDesc,
  named,
  type Stmt,
  scalarOf,
} from './describe.js'
import type { Random } from './random.js'

const floatTypes = { f32: 5, f16: 3, bf16: 2, i8: 0.8, f8e4m3: 0.5, f8e5m2: 0.5 } as const
const intTypes = { i32: 4, u8: 1, i16: 1, u32: 0.6, i64: 0.6 } as const

function domainOf(dtype: DType): Domain {
  switch (scalarOf(dtype)) {
    case 'f32':
      return { kind: 'float' }
    case 'i32':
      return { kind: 'int', from: dtype === 'u8' || dtype === 'u32' ? 0 : -100, to: 100 }
    case 'bool':
      return { kind: 'flag' }
  }
}

/** Dimensions, inputs and attributes, added on demand. */
export class Signature {
  readonly random: Random
  readonly dims: DimDesc[] = []
  readonly inputs: InputDesc[] = []
  readonly attrs: AttrDesc[] = []
  readonly monoids: MonoidDesc[] = []
  readonly body: Stmt[] = []
  readonly #main: DType
  #names = 0

  constructor(random: Random) {
    this.random = random
    this.#main = random.weighed(floatTypes)
  }

  fresh(prefix: string): string {
    return `${prefix}${++this.#names}`
  }

  dim(name: string, size: 'rows' | 'row' | 'few' | 'ranked' | 'carried' = 'rows'): string {
    if (!this.dims.some((dim) => dim.name === name)) this.dims.push({ name, size })
    return name
  }

  /** No longer than that. */
  limit(name: string, most: number): void {
    const at = this.dims.findIndex((dim) => dim.name === name)
    const dim = this.dims[at]
    if (dim !== undefined && dim.size !== 'derived' && dim.size !== 'fixed') this.dims[at] = { ...dim, most }
  }

  /** A length that the op states. */
  fixed(name: string, at: number): string {
    if (!this.dims.some((dim) => dim.name === name)) this.dims.push({ name, size: 'fixed', at })
    return name
  }

  derived(name: string, of: string, times: number, plus: number): string {
    if (!this.dims.some((dim) => dim.name === name)) this.dims.push({ name, size: 'derived', of, times, plus })
    return name
  }

  floatType(): DType {
    return this.random.chance(0.6) ? this.#main : this.random.weighed(floatTypes)
  }

  intType(): DType {
    return this.random.weighed(intTypes)
  }

  input(dims: readonly string[], given: { readonly dtype?: DType; readonly domain?: Domain } = {}): string {
    const dtype = given.dtype ?? this.floatType()
    const domain = given.domain ?? domainOf(dtype)
    const name = this.fresh('x')
    this.inputs.push({ name, dtype, dims, domain, ...this.layoutOf(dims) })
    return name
  }

  layoutOf(dims: readonly string[]): { readonly layout?: 'column' | 'padded' } {
    return dims.length === 2 && this.random.chance(0.08) ? { layout: this.random.pick(['column', 'padded'] as const) } : {}
  }

  attr(type: 'f32' | 'i32'): Expr {
    const { random } = this
    const name = this.fresh('a')
    const value = (): number => (type === 'i32' ? random.between(0, 5) : random.between(-12, 12) / 8)
    this.attrs.push({ name, type, initial: value(), given: value() })
    return named(name, type)
  }
}
