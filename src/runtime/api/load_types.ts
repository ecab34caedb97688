/** Storage types of a model's type parameters: from the option, else from weights and states. */
import { type DType, dtypes, isDType } from '../../ir/dtype.js'
import type { GraphValue } from '../../ir/graph.js'
import type { Declared } from './declared.js'
import { recordOf, refuse } from './load_checks.js'
import { nameHint } from './names.js'

/** Storage types of the model's type parameters, each with its origin. */
export class TypeChoice {
  readonly #source: Declared
  readonly #params: readonly string[]
  readonly #found = new Map<string, { readonly dtype: DType; readonly by: string }>()

  constructor(source: Declared, given: unknown) {
    this.#source = source
    this.#params = [...new Set(source.values.flatMap(({ dtype }) => (typeof dtype === 'string' ? [] : [dtype.param])))]
    if (given === undefined) return
    const named = typeof given === 'string' ? Object.fromEntries(this.#params.map((param) => [param, given])) : given
    for (const [param, dtype] of Object.entries(recordOf(source, 'dtype', named))) {
      if (!this.#params.includes(param)) {
        throw refuse(source, 'dtype', `there is no type parameter ${param}`, nameHint('type parameters', this.#params, param))
      }
      if (typeof dtype !== 'string' || !isDType(dtype)) {
        throw refuse(source, 'dtype', `${param} cannot be ${String(dtype)}`, nameHint('storage types', dtypes, String(dtype)))
      }
      this.#found.set(param, { dtype, by: 'the option dtype' })
    }
  }

  bind(name: string, { dtype: wanted }: GraphValue, dtype: DType): void {
    if (typeof wanted === 'string') {
      if (dtype !== wanted) throw refuse(this.#source, 'dtype', `${name}: expected ${wanted}, got ${dtype}`)
      return
    }
    const known = this.#found.get(wanted.param)
    if (known !== undefined && known.dtype !== dtype) {
      throw refuse(
        this.#source,
        'dtype',
        `${name} is ${dtype}, but ${wanted.param} is ${known.dtype} according to ${known.by}`,
        'tensor(dtype, shape, toNumbers(given)) converts',
      )
    }
    this.#found.set(wanted.param, known ?? { dtype, by: name })
  }

  all(): Record<string, DType> {
    return Object.fromEntries(
      this.#params.map((param) => {
        const found = this.#found.get(param)
        if (found !== undefined) return [param, found.dtype]
        throw refuse(this.#source, 'dtype', `no weight has type ${param}: its storage type must be given`, "dtype: 'f32'")
      }),
    )
  }
}
