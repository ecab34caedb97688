/**
 * Steps of a flattened program as expressions of dimensions. A step is found in its graph by its label, and the numbers that its kernel or matmul
 * takes are derived from the shapes there.
 */
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import type { NodeOf } from '../ir/graph.js'
import type { Extent } from '../ir/shape.js'
import type { GraphApplication } from '../runtime/application.js'
import type { FlatProgram } from '../runtime/program_flatten.js'
import type { FlatStep } from '../runtime/program_steps.js'
import { extentIn, type Form, formOf, type Known, type KnownLayouts, type Scope, scopeOf } from './forms.js'
import type { Choice, LoweredStep } from './lowered.js'
import { matmulNumbers } from './matmul_numbers.js'
import { isExtent, type Size } from './sizes.js'

export interface SymbolicOptions {
  readonly applications: readonly GraphApplication[]
  readonly manifest: Manifest
  readonly memory: KnownLayouts
  readonly fixed: Known
  readonly types: Readonly<Record<string, DType>>
}

/** Steps and storages of a flattened program as expressions. */
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

  /** Propagates forms through copies: both sides of a copy have one form. */
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
    if (form === undefined) throw new Error(`internal: the form of storage ${storage} is unknown`)
    return form
  }

  #learnFrom(step: FlatStep): void {
    if (step.kind === 'copy') return
    const { scope, node } = this.#place(step.label)
    for (const { storage, form } of this.#values(step, scope, node)) this.learn(storage, form)
  }

  #values(step: Exclude<FlatStep, { kind: 'copy' }>, scope: Scope, node: NodeOf<'op'> | NodeOf<'matmul'>) {
    if (node.kind === 'op') {
      if (step.kind !== 'kernel') throw new Error(`internal: ${step.label} is not a matmul`)
      const ids: Readonly<Record<string, number>> = { ...node.inputs, ...node.outputs }
      return this.#entry(step.key).buffers.flatMap(({ name }, i) => {
        const [id, storage] = [ids[name], step.buffers[i]]
        return id === undefined || storage === undefined ? [] : [{ storage, form: formOf(scope, id) }]
      })
    }
    const { a, b, out, epilogue } = operandsOf(step)
    const { bias, residual } = node.epilogue ?? {}
    return [
      { storage: a, id: node.a },
      { storage: b, id: node.b },
      { storage: out, id: node.out },
      { storage: epilogue?.bias, id: bias },
      { storage: epilogue?.residual, id: residual },
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
    if (node.kind === 'matmul') {
      const { a, b, out, epilogue } = operandsOf(step)
      const dtypes = [node.a, node.b, node.out].map((id) => formOf(scope, id).dtype)
      const { manifest, memory } = this.#options
      const numbers = matmulNumbers(step.label, scope, node, memory)
      return {
        ...plain,
        kind: 'matmul',
        storages: [a, b, out],
        dtypes,
        bias: epilogue?.bias,
        residual: epilogue?.residual,
        relu: epilogue?.relu ?? false,
        choices: choicesOf(node, dtypes, numbers, manifest),
        numbers,
      }
    }
    if (step.kind !== 'kernel') throw new Error(`internal: ${step.label} is not a matmul`)
    const ids: Readonly<Record<string, number>> = { ...node.inputs, ...node.outputs }
    const entry = this.#entry(step.key)
    const numbers = entry.dims.map((dim) => {
      const buffer = entry.buffers.find(({ dims }) => dims.includes(dim))
      const extent = buffer === undefined ? undefined : formOf(scope, ids[buffer.name] ?? -1).shape[buffer.dims.indexOf(dim)]
      if (extent === undefined) throw new Error(`internal: ${dim} of ${step.key} is unknown`)
      return extent
    })
    return {
      ...plain,
      kind: 'kernel',
      key: step.key,
      storages: step.buffers,
      attrs: entry.attrs.map(({ name }, i) => sizedAttr(scope, node.attrs[name]) ?? step.attrs[i] ?? 0),
      numbers,
    }
  }
}

/** An attribute that is a dimension; undefined for a number. */
const sizedAttr = (scope: Scope, attr: unknown): Extent | undefined =>
  typeof attr === 'object' && attr !== null && 'dim' in attr && typeof attr.dim === 'string'
    ? extentIn(scope, { factor: 1, dims: [attr.dim] })
    : undefined

/**
 * Storages of a matmul's step. The step may be that of a kernel that replaces the library at the sizes of the flattening.
 * @throws usage `export.matmul` for one of several steps that make up a matmul
 */
function operandsOf(step: Exclude<FlatStep, { kind: 'copy' }>) {
  if (step.kind === 'matmul') {
    if (step.offsets === undefined) return step
    throw usageError('export.matmul', `${step.label} is several matmuls: its axes have no constant strides`, {
      hint: 'make the matmul a group of the plan, or store its tensors in layouts with contiguous axes',
    })
  }
  const [a, b, out] = step.buffers
  if (a === undefined || b === undefined || out === undefined) throw new Error(`internal: ${step.label} is not a matmul`)
  return { a, b, out, epilogue: undefined }
}

/** Sizes of these weights for which a kernel of the plan was measured to be faster than the library, on any architecture. */
function choicesOf(
  { generated }: NodeOf<'matmul'>,
  dtypes: readonly DType[],
  [, , n, k]: readonly Size[],
  { kernels }: Manifest,
): readonly Choice[] {
  const found = kernels.filter(({ op, buffers }) => op === generated && buffers.every(({ dtype }, i) => dtype === dtypes[i]))
  return found.flatMap(({ key, measured = [] }) =>
    measured.flatMap(({ depth, ...size }) =>
      depth !== undefined && mayBe(n, size.length) && mayBe(k, depth) ? [{ key, depth, ...size }] : [],
    ),
  )
}

/** True if a size can equal a number at some sizes of a run. */
const mayBe = (size: Size | undefined, value: number): boolean =>
  size !== undefined && (!isExtent(size) || size.dims.length > 0 || size.factor === value)
