/** Builds a program: what `Programming` in program.ts promises, over names and shapes that are checked as each call is made. */
import { usageError } from '../errors.js'
import { isDType } from '../ir/dtype.js'
import type { GraphValue } from '../ir/graph.js'
import { isInherited, own } from '../ir/own.js'
import type { Program, ProgramNode, ProgramStateDecl, ProgramValue, RaggedAxis } from '../ir/program.js'
import { multiplyExtents, parseExtent, parseShape, printShape, type Shape, sameExtent } from '../ir/shape.js'
import type { GraphDecl } from './graph.js'
import { describe, missing, refuseOthers, sameCarried, valueAt } from './program_checks.js'
import { withoutViewsOfInputs } from './program_inputs.js'
import { matchGraph, printType, substituteShape, substituteType } from './program_match.js'
import { Regions } from './program_regions.js'
import type { ApplyOptions, Layer, ProgramResult, ProgramTensor, ProgramWeights } from './program_types.js'
import { isWeights, WeightNames } from './program_weights.js'
import type { TensorDecl } from './types.js'
import { writtenAt } from './written.js'

type Handles = Readonly<Record<string, ProgramTensor>>

const weightsBelow = (prefix: string): ProgramWeights => ({ prefix, of: (name) => weightsBelow(`${prefix}.${name}`) })

export class ProgramBuilder {
  readonly #name: string
  readonly #dims: Readonly<Record<string, number>>
  readonly #values: ProgramValue[] = []
  readonly #nodes: ProgramNode[] = []
  readonly #inputs: Record<string, number> = {}
  readonly #states: Record<string, ProgramStateDecl> = {}
  readonly #weights = new WeightNames()
  readonly #ragged: RaggedAxis[] = []
  readonly #regions: Regions
  readonly #graphs = new Map<string, GraphDecl>()

  constructor(name: string, dims: Readonly<Record<string, number>>) {
    this.#name = name
    this.#dims = dims
    this.#regions = new Regions(name)
  }

  /** The graphs that were applied, each once. */
  get graphs(): readonly GraphDecl[] {
    return [...this.#graphs.values()]
  }

  input(name: string, decl: TensorDecl): ProgramResult {
    const handle = this.#declare(name, decl)
    this.#inputs[name] = handle.value
    return handle
  }

  apply(
    decl: GraphDecl,
    inputs: Handles,
    weights: ProgramWeights | Readonly<Record<string, string>> = {},
    attrs: Readonly<Record<string, number>> = {},
    { label, dims = {} }: ApplyOptions = {},
  ): Readonly<Record<string, ProgramResult>> {
    const { graph } = decl
    this.#graphs.set(graph.name, decl)
    const where = this.#regions.label(label, graph.name)
    const at = `${this.#name}: ${where}`
    const given = Object.fromEntries(
      decl.inputs.map((name) => [name, this.#at(own(inputs, name) ?? missing(at, 'input', name), `${at}: input ${name}`)]),
    )
    refuseOthers(at, 'input', Object.keys(inputs), decl.inputs)
    const matched = matchGraph(at, graph, given, dims)
    this.#expectDims(at, Object.values(matched.dims))
    const form = ({ dtype, shape, layout }: GraphValue): GraphValue => ({
      dtype: substituteType(dtype, matched.types),
      shape: substituteShape(shape, matched.dims),
      layout,
    })
    const graphValue = (id: number): GraphValue => form(graph.values[id] ?? missing(at, 'value', String(id)))
    const names = Object.entries(graph.weights).map(([name, id]): [string, string] => [
      name,
      this.#weights.take(at, graph.name, name, weights, graphValue(id)),
    ])
    if (!isWeights(weights)) refuseOthers(at, 'weight', Object.keys(weights), Object.keys(graph.weights))
    const numbers = graph.attrs.map((name): [string, number] => {
      const value = own(attrs, name) ?? missing(at, 'attribute', name)
      if (!Number.isFinite(value)) throw usageError('program.attr', `${at}: attribute ${name} is ${value}`)
      return [name, value]
    })
    refuseOthers(at, 'attribute', Object.keys(attrs), graph.attrs)
    const outputs = Object.entries(graph.outputs).map(([name, id]): [string, ProgramResult] => [
      name,
      this.#push({ ...graphValue(id), name: `${where}.${name}` }),
    ])
    this.#nodes.push({
      kind: 'application',
      label: where,
      graph,
      inputs: Object.fromEntries(decl.inputs.map((name) => [name, own(inputs, name)?.value ?? -1])),
      weights: Object.fromEntries(names),
      outputs: Object.fromEntries(outputs.map(([name, { value }]) => [name, value])),
      attrs: Object.fromEntries(numbers),
      ...matched,
      within: this.#regions.within,
      written: writtenAt(this.apply),
    })
    return Object.fromEntries(outputs)
  }

  repeat(
    name: string,
    count: number,
    carried: ProgramTensor | Handles,
    build: (carried: ProgramTensor | Handles, layer: Layer) => ProgramTensor | Handles,
  ): ProgramTensor | Handles {
    const at = `${this.#name}: ${name}`
    return this.#regions.again({ name, own: true }, count, carried, (now, index) =>
      sameCarried(at, now, build(now, { index, weights: weightsBelow(this.#regions.weights()) }), this.#values),
    )
  }

  steps(
    name: string,
    count: number,
    carried: ProgramTensor | Handles,
    build: (carried: ProgramTensor | Handles, index: number) => ProgramTensor | Handles,
  ): ProgramTensor | Handles {
    const at = `${this.#name}: ${name}`
    return this.#regions.again({ name, own: false }, count, carried, (now, index) =>
      sameCarried(at, now, build(now, index), this.#values),
    )
  }

  view(handle: ProgramTensor, dims: string): ProgramResult {
    const from = this.#at(handle, `${this.#name}: view`)
    const shape = parseShape(dims)
    const at = `${this.#name}: ${from.name}`
    if (!sameExtent(multiplyExtents(from.shape), multiplyExtents(shape)) || from.layout !== 'row') {
      const what = from.layout === 'row' ? `"${printShape(from.shape)}"` : `in layout ${from.layout}`
      throw usageError('program.shape', `${at} is ${what}: it cannot be viewed as "${dims}"`, {
        hint: 'a view has the same number of elements, in rows',
      })
    }
    const out = this.#push({ ...from, shape, name: `${from.name} as ${printShape(shape)}` })
    this.#nodes.push({ kind: 'view', input: handle.value, out: out.value })
    return out
  }

  weights(prefix: string): ProgramWeights {
    return weightsBelow(this.#regions.weights(prefix))
  }

  state(name: string, decl: TensorDecl, { cleared = false }: { readonly cleared?: boolean } = {}): ProgramResult {
    const handle = this.#declare(name, decl)
    this.#states[name] = { value: handle.value, next: undefined, cleared }
    return handle
  }

  next(state: ProgramTensor, value: ProgramTensor): void {
    const before = this.#at(state, `${this.#name}: next`)
    const decl = own(this.#states, before.name)
    const at = `${this.#name}: ${before.name}`
    if (decl === undefined || decl.value !== state.value)
      throw usageError('program.state', `${at} is no state`, { hint: 'declare it by p.state()' })
    const after = this.#at(value, at)
    if (describe(before) !== describe(after))
      throw usageError('program.state', `${at} is ${describe(before)}, its next value ${after.name} is ${describe(after)}`)
    this.#states[before.name] = { ...decl, next: value.value }
  }

  ragged({
    batch,
    seq,
    lengths,
    tokens = 'tokens',
  }: {
    readonly batch: string
    readonly seq: string
    readonly lengths: ProgramTensor
    readonly tokens?: string
  }): (value: ProgramTensor) => ProgramResult {
    const axis = { batch: parseExtent(batch), seq: parseExtent(seq), tokens, lengths: lengths.value }
    const rows = multiplyExtents([axis.batch, axis.seq])
    const { name, dtype, shape } = this.#at(lengths, `${this.#name}: ragged`)
    if (dtype !== 'i32' || printShape(shape) !== printShape([axis.batch]))
      throw usageError(
        'program.ragged',
        `${this.#name}: lengths are i32 "${batch}", ${name} is ${printType(dtype)} "${printShape(shape)}"`,
      )
    this.#ragged.push(axis)
    return (value) => {
      const { shape, name } = this.#at(value, `${this.#name}: ragged`)
      const [first, second, ...rest] = shape
      if (first !== undefined && sameExtent(first, rows)) return { value: value.value }
      if (first === undefined || second === undefined || !sameExtent(multiplyExtents([first, second]), rows))
        throw usageError(
          'program.ragged',
          `${this.#name}: ${name} is "${printShape(shape)}", which does not begin with ${batch} ${seq}`,
        )
      return this.view(value, printShape([rows, ...rest]))
    }
  }

  finish(outputs: Handles): Program {
    const named = Object.entries(outputs).map(([name, handle]): [string, number] => {
      if (isInherited(name) || Object.hasOwn(this.#inputs, name) || Object.hasOwn(this.#states, name))
        throw usageError('program.name', `${this.#name}: output ${name} is called like an input or a state`, {
          hint: 'choose another name',
        })
      this.#at(handle, `${this.#name}: output ${name}`)
      return [name, handle.value]
    })
    return withoutViewsOfInputs({
      name: this.#name,
      dims: this.#dims,
      values: this.#values,
      nodes: this.#nodes,
      inputs: this.#inputs,
      outputs: Object.fromEntries(named),
      states: this.#states,
      weights: this.#weights.all,
      ragged: this.#ragged,
    })
  }

  #declare(name: string, { type, dims, layout }: TensorDecl): ProgramResult {
    const at = `${this.#name}: ${name}`
    if (isInherited(name) || Object.hasOwn(this.#inputs, name) || Object.hasOwn(this.#states, name))
      throw usageError('program.name', `${at} is declared twice, or is no name`, { hint: 'choose another name' })
    const shape = parseShape(dims)
    this.#expectDims(at, shape)
    return this.#push({ name, dtype: isDType(type) ? type : { param: type }, shape, layout: layout?.name ?? 'row' })
  }

  #expectDims(at: string, shape: Shape): void {
    const unknown = shape.flatMap(({ dims }) => dims).find((dim) => !Object.hasOwn(this.#dims, dim))
    if (unknown === undefined) return
    throw usageError('program.dims', `${at}: dimension ${unknown} is none of the program`, {
      hint: `dimensions are ${Object.keys(this.#dims).join(', ')}; say what it is, { dims: { ${unknown}: '...' } }, or how large it usually is`,
    })
  }

  #push(value: ProgramValue): ProgramResult {
    this.#values.push(value)
    return { value: this.#values.length - 1 }
  }

  #at(handle: ProgramTensor, where: string): ProgramValue {
    return valueAt(this.#values, handle, where)
  }
}
