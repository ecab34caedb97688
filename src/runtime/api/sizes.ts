/** Sizes of a model's dimensions, solved from the shapes of given tensors: an extent such as `b*s` fixes one dimension if the others are known. */
import { type ErrorCode, usageError, type WhatOf } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { type Extent, printExtent, printShape, type Shape } from '../../ir/shape.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

interface Known {
  readonly size: number
  /** Origin of the size, for messages. */
  readonly by: string
}

interface Equation {
  readonly extent: Extent
  readonly size: number
  readonly by: string
}

export class Sizes {
  readonly #model: string
  readonly #area: 'load' | 'run'
  readonly #known: Map<string, Known>
  readonly #open: Equation[] = []

  /** @param from sizes known so far */
  constructor(model: string, area: 'load' | 'run', from?: Sizes) {
    this.#model = model
    this.#area = area
    this.#known = new Map(from === undefined ? [] : from.#known)
    if (from !== undefined) this.#open.push(...from.#open)
  }

  /** Adds sizes given by name. @throws usage `<area>.dims` for an unknown dimension or an invalid size */
  give(dims: readonly string[], given: unknown): void {
    if (given === undefined) return
    if (typeof given !== 'object' || given === null) {
      throw this.#refuse('dims', `dims: expected an object, got ${typeName(given)}`, '{ name: size }')
    }
    for (const [dim, size] of Object.entries(given)) {
      if (!dims.includes(dim)) throw this.#refuse('dims', `there is no dimension ${dim}`, nameHint('dimensions', dims, dim))
      if (!Number.isSafeInteger(size) || size < 1)
        throw this.#refuse('dims', `dimension ${dim} cannot be ${size}`, 'sizes are integers >= 1')
      this.#learn(dim, size, 'dims')
    }
  }

  /** Adds the shape of a tensor. @throws usage `<area>.rank`, `<area>.extent` */
  bind(name: string, shape: Shape, given: readonly number[]): void {
    if (shape.length !== given.length) {
      const wanted = shape.length === 0 ? 'a scalar' : `"${printShape(shape)}", of rank ${shape.length}`
      throw this.#refuse('rank', `${name}: expected ${wanted}, got shape [${given.join(', ')}]`, 'reshape the data')
    }
    const by = `${name} [${given.join(', ')}]`
    for (const [i, extent] of shape.entries()) {
      const size = given[i] ?? 0
      if (size === 0) throw this.#refuse('extent', `${by} has no elements`, 'sizes of a model are integers >= 1')
      this.#open.push({ extent, size, by })
    }
    this.#solve()
  }

  /** Size of a dimension, if known. */
  of(dim: string): number | undefined {
    this.#solve()
    return this.#known.get(dim)?.size
  }

  /** Sets unknown factors of a product to 1, one after the other, until the last of each product follows. */
  assume(factors: readonly string[]): void {
    for (const dim of factors) {
      this.#solve()
      const isOpen = this.#open.some(({ extent }) => extent.dims.includes(dim))
      if (isOpen && !this.#known.has(dim)) this.#learn(dim, 1, 'a product that it is only a factor of')
    }
  }

  /**
   * Sets the unknown factors of a product to their typical sizes, if these give the product. Otherwise the product stays unsolved, since any
   * factor may differ.
   */
  assumeTypical(typical: Readonly<Record<string, number>>): void {
    this.#solve()
    for (const { extent, size } of [...this.#open]) {
      const sizes = extent.dims.map((dim) => this.#known.get(dim)?.size ?? getOwn(typical, dim) ?? Number.NaN)
      if (sizes.reduce((product, each) => product * each, extent.factor) !== size) continue
      for (const [i, dim] of extent.dims.entries()) this.#learn(dim, sizes[i] ?? 1, 'its typical size')
    }
  }

  /** Sizes of all dimensions. @throws usage `<area>.dims` for one that is unknown */
  all(dims: readonly string[]): Record<string, number> {
    this.#solve()
    return Object.fromEntries(
      dims.map((dim) => {
        const known = this.#known.get(dim)
        if (known === undefined) throw this.#unknown(dim)
        return [dim, known.size]
      }),
    )
  }

  /** Error for an unknown size; at most a product with this factor is known. A run has no option for sizes: they are set at load. */
  #unknown(dim: string) {
    const product = this.#open.find(({ extent }) => extent.dims.includes(dim))
    const knownProduct =
      product === undefined ? '' : `: only ${printExtent(product.extent)} is ${product.size} according to ${product.by}`
    const dims = `{ dims: { ${dim}: ... } }`
    const hint = this.#area === 'run' ? `set it when ${this.#model} is loaded: load(${this.#model}, ${dims})` : `set it: ${dims}`
    return this.#refuse('dims', `the size of dimension ${dim} is unknown${knownProduct}`, hint)
  }

  /** Solves equations with one unknown, repeatedly until none is left. */
  #solve(): void {
    for (let before = -1; before !== this.#open.length; ) {
      before = this.#open.length
      const open = this.#open.splice(0)
      for (const equation of open) if (!this.#solved(equation)) this.#open.push(equation)
    }
  }

  #solved({ extent, size, by }: Equation): boolean {
    const unknown = extent.dims.filter((dim) => !this.#known.has(dim))
    const rest = extent.dims.reduce((product, dim) => product * (this.#known.get(dim)?.size ?? 1), extent.factor)
    const [dim, ...more] = unknown
    if (dim === undefined) {
      if (rest === size) return true
      const sizes = [...new Set(extent.dims)].flatMap((each) => {
        const known = this.#known.get(each)
        return known === undefined ? [] : [`${each} is ${known.size} according to ${known.by}`]
      })
      throw this.#refuse(
        'extent',
        `${printExtent(extent)} is ${size} according to ${by}, but ${sizes.join(', ') || `it is ${rest}`}`,
      )
    }
    if (more.length > 0) return false
    if (size % rest !== 0)
      throw this.#refuse('extent', `${printExtent(extent)} is ${size} according to ${by}, which ${rest} does not divide`)
    this.#learn(dim, size / rest, by)
    return true
  }

  #learn(dim: string, size: number, by: string): void {
    const known = this.#known.get(dim)
    if (known !== undefined && known.size !== size) {
      throw this.#refuse('extent', `dimension ${dim} is ${size} according to ${by}, and ${known.size} according to ${known.by}`)
    }
    this.#known.set(dim, known ?? { size, by })
  }

  #refuse(what: WhatOf<'load'> & WhatOf<'run'>, message: string, hint?: string) {
    const code: ErrorCode = `${this.#area}.${what}`
    return usageError(code, `${this.#model}: ${message}`, hint === undefined ? {} : { hint })
  }
}
