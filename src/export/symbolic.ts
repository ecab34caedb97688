/**
 * The steps of a flattened program in expressions of dimensions: a step is found in the graph that it is of by its label, and what its
 * kernel or product takes is read off the shapes there.
 */
import type { Manifest } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import type { NodeOf } from '../ir/graph.js'
import type { Extent } from '../ir/shape.js'
import type { GraphApplication } from '../runtime/application.js'
import type { FlatProgram } from '../runtime/program_flatten.js'
import type { FlatStep } from '../runtime/program_steps.js'
import { extentIn, type Form, formOf, type Known, type KnownLayouts, type Scope, scopeOf } from './forms.js'
import type { LoweredStep } from './lowered.js'
import { matmulNumbers } from './matmul_numbers.js'

export interface SymbolicOptions {
  readonly applications: readonly GraphApplication[]
  readonly manifest: Manifest
  readonly memory: KnownLayouts
  readonly fixed: Known
  readonly types: Readonly<Record<string, DType>>
}

/** Steps and storages of a flattened program in expressions. */
export class Symbolic {
  readonly #options: SymbolicOptions
  readonly #places = new Map<string, { readonly scope: Scope; readonly application: GraphApplication; readonly name: string }>()
  readonly #forms = new Map<number, Form>()
  readonly #flat: FlatProgram

  constructor(options: SymbolicOptions, flat: FlatProgram) {
    const { applications, fixed, types } = options
    this.#options = options
    this.#flat = flat
    for (const application of applications) {
      const scope = scopeOf(application, fixed, types)
      for (const { name } of application.graph.nodes) {
        const label = `${application.label}/${name}`
        if (this.#places.has(label)) throw new Error(`internal: two steps are called ${label}`)
        this.#places.set(label, { scope, application, name })
      }
    }
    for (const step of flat.steps) this.#learnFrom(step)
  }

  learn(storage: number, form: Form): void {
    if (!this.#forms.has(storage)) this.#forms.set(storage, form)
  }

  /** What copies move has one form. */
  spread(): void {
    for (const step of [...this.#flat.steps, ...this.#flat.steps.toReversed()]) {
      if (step.kind !== 'copy') continue
      const [from, to] = [this.#forms.get(step.from), this.#forms.get(step.to)]
      if (from !== undefined) this.learn(step.to, from)
      if (to !== undefined) this.learn(step.from, to)
    }
  }

  form(storage: number): Form {
    const form = this.#forms.get(storage)
    if (form === undefined) throw new Error(`internal: nothing says what storage ${storage} holds`)
    return form
  }

  #learnFrom(step: FlatStep): void {
    if (step.kind === 'copy') return
    const { scope, node } = this.#place(step.label)
    for (const { storage, form } of this.#values(step, scope, node)) this.learn(storage, form)
  }

  #values(step: Exclude<FlatStep, { kind: 'copy' }>, scope: Scope, node: NodeOf<'op'> | NodeOf<'matmul'>) {
    if (step.kind === 'kernel') {
      const ids = node.kind === 'op' ? { ...node.inputs, ...node.outputs } : {}
      return this.#entry(step.key).buffers.flatMap(({ name }, i) => {
        const [id, storage] = [ids[name], step.buffers[i]]
        return id === undefined || storage === undefined ? [] : [{ storage, form: formOf(scope, id) }]
      })
    }
    if (node.kind === 'op') throw new Error(`internal: ${step.label} is no product`)
    const { bias, residual } = node.epilogue ?? {}
    return [
      { storage: step.a, id: node.a },
      { storage: step.b, id: node.b },
      { storage: step.out, id: node.out },
      { storage: step.epilogue?.bias, id: bias },
      { storage: step.epilogue?.residual, id: residual },
    ].flatMap(({ storage, id }) => (storage === undefined || id === undefined ? [] : [{ storage, form: formOf(scope, id) }]))
  }

  #entry(key: string) {
    const entry = this.#options.manifest.kernels.find((each) => each.key === key)
    if (entry === undefined) throw new Error(`internal: there is no kernel ${key}`)
    return entry
  }

  #place(label: string) {
    const place = this.#places.get(label)
    const node = place?.application.graph.nodes.find(({ name }) => name === place.name)
    if (place === undefined || node === undefined || node.kind === 'view') throw new Error(`internal: there is no step ${label}`)
    return { ...place, node }
  }

  step(step: FlatStep): LoweredStep {
    const plain = { label: step.label, attrs: [], dtypes: [], relu: false, numbers: [] }
    if (step.kind === 'copy') return { ...plain, kind: 'copy', storages: [step.from, step.to] }
    const { scope, node } = this.#place(step.label)
    if (step.kind === 'matmul') {
      if (node.kind !== 'matmul') throw new Error(`internal: ${step.label} is no product`)
      expectOneWay(step.label, node)
      if (step.offsets !== undefined) {
        throw usageError('export.matmul', `${step.label} is several matmuls: no strides of one describe its axes`, {
          hint: 'make the matmul a group of the plan, or store its tensors in layouts that keep axes together',
        })
      }
      return {
        ...plain,
        kind: 'matmul',
        storages: [step.a, step.b, step.out],
        dtypes: step.dtypes,
        bias: step.epilogue?.bias,
        residual: step.epilogue?.residual,
        relu: step.epilogue?.relu ?? false,
        numbers: matmulNumbers(step.label, scope, node, this.#options.memory),
      }
    }
    if (node.kind === 'matmul') expectOneWay(step.label, node)
    const ids: Readonly<Record<string, number>> = node.kind === 'op' ? { ...node.inputs, ...node.outputs } : {}
    const attrs: Readonly<Record<string, unknown>> = node.kind === 'op' ? node.attrs : {}
    const entry = this.#entry(step.key)
    const numbers = entry.dims.map((dim) => {
      const buffer = entry.buffers.find(({ dims }) => dims.includes(dim))
      const extent = buffer === undefined ? undefined : formOf(scope, ids[buffer.name] ?? -1).shape[buffer.dims.indexOf(dim)]
      if (extent === undefined) throw new Error(`internal: nothing says ${dim} of ${step.key}`)
      return extent
    })
    return {
      ...plain,
      kind: 'kernel',
      key: step.key,
      storages: step.buffers,
      attrs: entry.attrs.map(({ name }, i) => sizedAttr(scope, attrs[name]) ?? step.attrs[i] ?? 0),
      numbers,
    }
  }
}

/** An attribute that is a dimension; undefined for a number. */
const sizedAttr = (scope: Scope, attr: unknown): Extent | undefined =>
  typeof attr === 'object' && attr !== null && 'dim' in attr && typeof attr.dim === 'string'
    ? extentIn(scope, { factor: 1, dims: [attr.dim] })
    : undefined

/** @throws usage `export.tuned` for a product that the runtime computes one way or another, as its size was measured */
function expectOneWay(label: string, { generated }: NodeOf<'matmul'>): void {
  if (generated === undefined) return
  throw usageError('export.tuned', `${label} is the library's product or ${generated}, by what was measured for its size`, {
    hint: 'export a plan that says which: a group of the plan, or one of its library',
  })
}
