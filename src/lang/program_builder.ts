/**
 * Builds a program: what `Programming` in program.ts promises, over names and shapes that are checked as each call is made. What is refused
 * leaves values that nothing is known of, and the build goes on: its author is told of all that is wrong at once.
 */
import { concerning, together, usageError, type Written } from '../errors.js'
import { isDType } from '../ir/dtype.js'
import type { GraphValue } from '../ir/graph.js'
import { isInherited, own } from '../ir/own.js'
import type { Program, ProgramNode, ProgramStateDecl, ProgramValue, RaggedAxis } from '../ir/program.js'
import { multiplyExtents, parseShape, printShape, type Shape, sameExtent } from '../ir/shape.js'
import type { GraphDecl } from './graph.js'
import { Unknowns } from './graph_unknown.js'
import { argumentsOf } from './program_arguments.js'
import { describe, missing, valueAt } from './program_checks.js'
import { withoutViewsOfInputs } from './program_inputs.js'
import { matchGraph, substituteShape, substituteType } from './program_match.js'
import { type RaggedOptions, raggedAxis, rowsShape } from './program_ragged.js'
import { Regions } from './program_regions.js'
import type { ApplyOptions, Layer, ProgramResult, ProgramTensor, ProgramWeights } from './program_types.js'
import { WeightNames } from './program_weights.js'
import type { StateDecl, TensorDecl } from './types.js'
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
  readonly #unknowns = new Unknowns(true)
  /** Where the program is declared. */
  readonly #written: Written

  constructor(name: string, dims: Readonly<Record<string, number>>, written: Written = {}) {
    this.#name = name
    this.#written = written
    this.#dims = dims
    this.#regions = new Regions(name, this.#unknowns, this.#values)
  }

  /** The graphs that were applied, each once. */
  get graphs(): readonly GraphDecl[] {
    return [...this.#graphs.values()]
  }

  /** The inputs that the program declares. */
  inputs(decls: Readonly<Record<string, TensorDecl>>): Readonly<Record<string, ProgramResult>> {
    return this.#eachDeclared(decls, (name, decl) => {
      const handle = this.#declare(name, decl)
      this.#inputs[name] = handle.value
      return handle
    })
  }

  /** The states that the program declares. */
  states(decls: Readonly<Record<string, StateDecl>>): Readonly<Record<string, ProgramResult>> {
    return this.#eachDeclared(decls, (name, decl) => this.#state(name, decl, decl))
  }

  #eachDeclared<D>(decls: Readonly<Record<string, D>>, declare: (name: string, decl: D) => ProgramResult) {
    const made = ([name, decl]: [string, D]): [string, ProgramResult] => [
      name,
      this.#refusable(() => concerning({ written: this.#written }, () => declare(name, decl))),
    ]
    return Object.fromEntries(Object.entries(decls).map(made))
  }

  /** What a call gives; unknown where it is refused. */
  readonly #refusable = (action: () => ProgramResult): ProgramResult => this.#unknowns.attempt(action, this.#unknowns.make)

  /** What the author's function returns. @throws what it ends in, behind what was refused before */
  run<T>(build: () => T): T {
    return this.#unknowns.ending(build)
  }

  apply(
    decl: GraphDecl,
    inputs: Handles,
    weights: ProgramWeights | Readonly<Record<string, string>> = {},
    attrs: Readonly<Record<string, number>> = {},
    options: ApplyOptions = {},
  ): Readonly<Record<string, ProgramResult>> {
    const { graph } = decl
    this.#graphs.set(graph.name, decl)
    return this.#unknowns.attempt(
      () => this.#applied(decl, inputs, weights, attrs, options),
      (because) => Object.fromEntries(Object.keys(graph.outputs).map((name) => [name, this.#unknowns.make(because)])),
    )
  }

  #applied(
    decl: GraphDecl,
    inputs: Handles,
    weights: ProgramWeights | Readonly<Record<string, string>>,
    attrs: Readonly<Record<string, number>>,
    { label, dims = {} }: ApplyOptions,
  ): Readonly<Record<string, ProgramResult>> {
    const { graph } = decl
    const where = this.#regions.label(label, graph.name)
    const at = `${this.#name}: ${where}`
    const { given, numbers } = argumentsOf(at, decl, { inputs, weights, attrs }, (handle, about) =>
      this.#unknowns.has(handle) ? undefined : this.#at(handle, about),
    )
    if (given === undefined) return Object.fromEntries(Object.keys(graph.outputs).map((name) => [name, this.#unknowns.make()]))
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
      attrs: numbers,
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
    return this.#regions.carry({ name, own: true }, count, carried, (now, index) =>
      build(now, { index, weights: weightsBelow(this.#regions.weights()) }),
    )
  }

  steps(
    name: string,
    count: number,
    carried: ProgramTensor | Handles,
    build: (carried: ProgramTensor | Handles, index: number) => ProgramTensor | Handles,
  ): ProgramTensor | Handles {
    return this.#regions.carry({ name, own: false }, count, carried, build)
  }

  view(handle: ProgramTensor, dims: string): ProgramResult {
    return this.#refusable(() => (this.#unknowns.has(handle) ? this.#unknowns.make() : this.#viewed(handle, dims)))
  }

  #viewed(handle: ProgramTensor, dims: string): ProgramResult {
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

  state(name: string, decl: TensorDecl, options: { readonly cleared?: boolean } = {}): ProgramResult {
    return this.#refusable(() => this.#state(name, decl, options))
  }

  #state(name: string, decl: TensorDecl, { cleared = false }: { readonly cleared?: boolean }): ProgramResult {
    const handle = this.#declare(name, decl)
    this.#states[name] = { value: handle.value, next: undefined, cleared }
    return handle
  }

  next(state: ProgramTensor, value: ProgramTensor): void {
    const isKnown = ![state, value].some(this.#unknowns.has)
    this.#unknowns.attempt(
      () => {
        if (isKnown) this.#followed(state, value)
      },
      () => undefined,
    )
  }

  #followed(state: ProgramTensor, value: ProgramTensor): void {
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

  ragged(options: RaggedOptions): (value: ProgramTensor) => ProgramResult {
    const { lengths } = options
    this.#unknowns.attempt(
      () => {
        if (this.#unknowns.has(lengths)) return
        this.#ragged.push(raggedAxis(this.#name, options, this.#at(lengths, `${this.#name}: ragged`)))
      },
      () => undefined,
    )
    return (value) =>
      this.#refusable(() => {
        if (this.#unknowns.has(value)) return this.#unknowns.make()
        const rows = rowsShape(this.#name, options, this.#at(value, `${this.#name}: ragged`))
        return rows === undefined ? { value: value.value } : this.#viewed(value, rows)
      })
  }

  /** The whole program. @throws what is wrong with it and with all that was declared in it */
  finish(outputs: Handles): Program {
    const named = Object.entries(outputs).map(([name, handle]): [string, number] => {
      const check = (): void => {
        if (isInherited(name) || Object.hasOwn(this.#inputs, name) || Object.hasOwn(this.#states, name))
          throw usageError('program.name', `${this.#name}: output ${name} is called like an input or a state`, {
            hint: 'choose another name',
          })
        if (!this.#unknowns.has(handle)) this.#at(handle, `${this.#name}: output ${name}`)
      }
      this.#unknowns.attempt(
        () => concerning({ written: this.#written }, check),
        () => undefined,
      )
      return [name, handle.value]
    })
    if (this.#unknowns.refused.length > 0) throw together(this.#unknowns.refused)
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
