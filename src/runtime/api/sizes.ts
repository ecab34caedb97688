/**
 * Sizes of a model's dimensions from the shapes of what it is given: an extent such as `b*s` gives one dimension when the others are known.
 */
import { type ErrorCode, usageError, type WhatOf } from '../../errors.js'
import { type Extent, printExtent, printShape, type Shape } from '../../ir/shape.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

interface Known {
  readonly size: number
  /** What says so. */
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

  /** @param from sizes that are known already */
  constructor(model: string, area: 'load' | 'run', from?: Sizes) {
    this.#model = model
    this.#area = area
    this.#known = new Map(from === undefined ? [] : from.#known)
    if (from !== undefined) this.#open.push(...from.#open)
  }

  /** Takes sizes that were given by name. @throws usage `<area>.dims` for what is no dimension, or no size */
  give(dims: readonly string[], given: unknown): void {
    if (given === undefined) return
    if (typeof given !== 'object' || given === null) {
      throw this.#refuse('dims', `dims must be an object, got ${typeName(given)}`, '{ name: size }')
    }
    for (const [dim, size] of Object.entries(given)) {
      if (!dims.includes(dim)) throw this.#refuse('dims', `there is no dimension ${dim}`, nameHint('dimensions', dims, dim))
      if (!Number.isSafeInteger(size) || size < 1)
        throw this.#refuse('dims', `dimension ${dim} cannot be ${size}`, 'sizes are whole numbers from 1')
      this.#learn(dim, size, 'dims')
    }
  }

  /** Takes the shape of a tensor. @throws usage `<area>.rank`, `<area>.extent` */
  bind(name: string, shape: Shape, given: readonly number[]): void {
    if (shape.length !== given.length) {
      const wanted = shape.length === 0 ? 'a scalar' : `"${printShape(shape)}", of rank ${shape.length}`
      throw this.#refuse(
        'rank',
        `${name} is ${wanted}: the tensor given has shape [${given.join(', ')}]`,
        'give the same data with another shape',
      )
    }
    const by = `${name} [${given.join(', ')}]`
    for (const [i, extent] of shape.entries()) {
      const size = given[i] ?? 0
      if (size === 0) throw this.#refuse('extent', `${by} has no elements`, 'sizes of a model are whole numbers from 1')
      this.#open.push({ extent, size, by })
    }
    this.#solve()
  }

  /** The size of a dimension, where something says it. */
  of(dim: string): number | undefined {
    this.#solve()
    return this.#known.get(dim)?.size
  }

  /** Takes one of these that nothing says as 1, so that the others follow; again and again. */
  assume(factors: readonly string[]): void {
    for (const dim of factors) {
      this.#solve()
      const isOpen = this.#open.some(({ extent }) => extent.dims.includes(dim))
      if (isOpen && !this.#known.has(dim)) this.#learn(dim, 1, 'its product')
    }
  }

  /** Sizes of all dimensions. @throws usage `<area>.dims` for one that nothing says */
  all(dims: readonly string[]): Record<string, number> {
    this.#solve()
    return Object.fromEntries(
      dims.map((dim) => {
        const known = this.#known.get(dim)
        if (known === undefined) throw this.#unsaid(dim)
        return [dim, known.size]
      }),
    )
  }

  /** What is said of a dimension at most is a product that it is a factor of. A run has no option for it: sizes are given when a model is loaded. */
  #unsaid(dim: string) {
    const product = this.#open.find(({ extent }) => extent.dims.includes(dim))
    const alone = product === undefined ? '' : `: only ${printExtent(product.extent)} is ${product.size} by ${product.by}`
    const dims = `{ dims: { ${dim}: ... } }`
    const hint =
      this.#area === 'run' ? `give it where ${this.#model} is loaded: load(${this.#model}, ${dims})` : `give it: ${dims}`
    return this.#refuse('dims', `nothing says how large dimension ${dim} is${alone}`, hint)
  }

  /** Solves what has one unknown left, until there is nothing more to learn. */
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
        return known === undefined ? [] : [`${each} is ${known.size} by ${known.by}`]
      })
      throw this.#refuse('extent', `${printExtent(extent)} is ${size} by ${by}, but ${sizes.join(', ') || `it is ${rest}`}`)
    }
    if (more.length > 0) return false
    if (size % rest !== 0)
      throw this.#refuse('extent', `${printExtent(extent)} is ${size} by ${by}, which ${rest} does not divide`)
    this.#learn(dim, size / rest, by)
    return true
  }

  #learn(dim: string, size: number, by: string): void {
    const known = this.#known.get(dim)
    if (known !== undefined && known.size !== size) {
      throw this.#refuse('extent', `dimension ${dim} is ${size} by ${by}, and ${known.size} by ${known.by}`)
    }
    this.#known.set(dim, known ?? { size, by })
  }

  #refuse(what: WhatOf<'load'> & WhatOf<'run'>, message: string, hint?: string) {
    const code: ErrorCode = `${this.#area}.${what}`
    return usageError(code, `${this.#model}: ${message}`, hint === undefined ? {} : { hint })
  }
}
