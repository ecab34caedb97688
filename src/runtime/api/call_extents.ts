/** Extents of a call: from the shapes of its inputs, from the option `dims`, else from the facts of the op. */
import { usageError } from '../../errors.js'
import { type ExtentFact, namesOf } from '../../ir/facts/facts.js'
import { sizeText } from '../../ir/facts/size_text.js'
import { contradiction, fixedByFacts } from '../../ir/facts/solve.js'
import { dimFactsOf } from '../../lang/dim_facts.js'
import type { TensorDecl } from '../../lang/types.js'
import { checkRecord } from './call_record.js'
import type { AnyOp } from './call_types.js'
import { nameHint } from './names.js'

export const axesOf = ({ dims }: TensorDecl): readonly string[] => (dims === '' ? [] : dims.split(' '))
const shapeText = (shape: readonly number[]): string => `[${shape.join(', ')}]`

/** Extents of the op's dimensions, each with its origin. */
export class Extents {
  readonly #op: AnyOp
  readonly #found = new Map<string, { readonly extent: number; readonly by: string }>()

  constructor(op: AnyOp, given: unknown) {
    this.#op = op
    for (const [dim, extent] of Object.entries(checkRecord(op, 'dims', given))) {
      if (!op.dims.includes(dim)) {
        throw usageError('call.dims', `${op.name} has no dimension ${dim}`, { hint: nameHint('dimensions', op.dims, dim) })
      }
      if (!Number.isSafeInteger(extent) || extent < 0) {
        throw usageError('call.dims', `${op.name}: dimension ${dim}: expected an integer >= 0, got ${extent}`)
      }
      this.#found.set(dim, { extent, by: 'dims' })
    }
  }

  bind(name: string, decl: TensorDecl, shape: readonly number[]): void {
    const axes = axesOf(decl)
    if (axes.length !== shape.length) {
      const wanted = axes.length === 0 ? 'a scalar' : `"${decl.dims}", of rank ${axes.length}`
      throw usageError('call.rank', `${this.#op.name}: ${name}: expected ${wanted}, got shape ${shapeText(shape)}`, {
        hint: 'reshape the data',
      })
    }
    for (const [i, axis] of axes.entries()) {
      const extent = shape[i] ?? 0
      const known = this.#found.get(axis)
      if (known !== undefined && known.extent !== extent) {
        throw usageError(
          'call.extent',
          `${this.#op.name}: dimension ${axis} is ${extent} according to ${name} ${shapeText(shape)}, and ${known.extent} according to ${known.by}`,
          { hint: `${name} is "${decl.dims}"` },
        )
      }
      if (known === undefined) this.#found.set(axis, { extent, by: `${name} ${shapeText(shape)}` })
    }
  }

  /** Extents of all dimensions: those that neither an input nor the option fixes follow from the facts of the op. */
  all(attrs: Readonly<Record<string, number>>): Record<string, number> {
    const { name, dims } = this.#op
    const facts = dimFactsOf(this.#op)
    const given = Object.fromEntries([...this.#found].map(([dim, { extent }]) => [dim, extent]))
    const open = dims.filter((dim) => given[dim] === undefined)
    const extents: Record<string, number> = { ...given, ...fixedByFacts(facts, { ...attrs, ...given }, open) }
    this.#expectFulfilled(facts, { ...attrs, ...extents })
    const missing = dims.find((dim) => extents[dim] === undefined)
    if (missing !== undefined) {
      throw usageError('call.dims', `${name}: no input has dimension ${missing}: its extent must be given`, {
        hint: `call(${name}, { ... }, { dims: { ${missing}: ... } })`,
      })
    }
    for (const [dim, { multipleOf = 1 }] of Object.entries(facts)) this.#expectMultiple(dim, extents[dim] ?? 0, multipleOf)
    return Object.fromEntries(dims.map((dim) => [dim, extents[dim] ?? 0]))
  }

  #by(dim: string): string {
    const found = this.#found.get(dim)
    return found === undefined ? '' : ` according to ${found.by}`
  }

  /** Checks the facts about dimensions that no input has; for those of inputs, facts only state the usual sizes. */
  #expectFulfilled(facts: Readonly<Record<string, ExtentFact>>, sizes: Readonly<Record<string, number>>): void {
    const { name, dims, inputs } = this.#op
    const given = new Set(Object.values(inputs).flatMap(axesOf))
    const wrong = contradiction(
      facts,
      sizes,
      dims.filter((dim) => !given.has(dim)),
    )
    if (wrong === undefined) return
    const { dim, equal } = wrong
    const others = [...new Set(namesOf(equal))].flatMap((each) =>
      sizes[each] === undefined ? [] : [`${each} is ${sizes[each]}${this.#by(each)}`],
    )
    throw usageError(
      'call.extent',
      `${name}: dimension ${dim}: expected ${sizeText(equal)}, by the facts of the op, got ${sizes[dim]}${this.#by(dim)}`,
      { hint: others.length === 0 ? `no extent of ${namesOf(equal).join(', ')} gives this size` : others.join(', ') },
    )
  }

  #expectMultiple(dim: string, extent: number, of: number): void {
    if (extent % of === 0) return
    throw usageError(
      'call.extent',
      `${this.#op.name}: dimension ${dim}: expected a multiple of ${of}, by the facts of the op, got ${extent}${this.#by(dim)}`,
      { hint: `the next multiple is ${Math.ceil(extent / of) * of}` },
    )
  }
}
