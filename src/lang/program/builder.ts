/**
 * Builder of programs: implements `Programming` of types.ts, and checks names and shapes in each call. A refused call
 * returns unknown values and the build continues, so that its author sees all errors at once.
 */
import { concerning, together, usageError, type Written } from '../../errors.js'
import { getOwn, isInherited } from '../../ir/get_own.js'
import type { GraphValue } from '../../ir/graph.js'
import type { Program, ProgramNode, RaggedAxis } from '../../ir/program.js'
import { expectArguments, expectParts, type Given } from '../arguments.js'
import type { GraphDecl } from '../graph.js'
import { Unknowns } from '../graph_unknown.js'
import { UsedLayouts } from '../layout.js'
import type { StateDecl, TensorDecl } from '../types.js'
import { writtenAt } from '../written.js'
import { argumentsOf, expectApplication } from './arguments.js'
import { missing } from './checks.js'
import { withoutViewsOfInputs } from './inputs.js'
import { matchGraph, substituteShape, substituteType } from './match.js'
import { expectRagged, type RaggedOptions, raggedAxis, rowsShape } from './ragged.js'
import { Regions } from './regions.js'
import { ProgramStates } from './states.js'
import type { ApplyOptions, Layer, ProgramResult, ProgramTensor, ProgramWeights } from './types.js'
import { ProgramValues } from './values.js'
import { WeightNames, weightsBelow } from './weights.js'

type Handles = Readonly<Record<string, ProgramTensor>>
type Carried = ProgramTensor | Handles

export class ProgramBuilder {
  readonly #name: string
  readonly #values: ProgramValues
  readonly #nodes: ProgramNode[] = []
  readonly #declared: ProgramStates
  readonly #weights = new WeightNames()
  readonly #ragged: RaggedAxis[] = []
  readonly #regions: Regions
  readonly #graphs = new Map<string, GraphDecl>()
  readonly #unknowns = new Unknowns(true)
  /** Layouts of its inputs and states, and of the graphs that it applies. */
  readonly layouts = new UsedLayouts()
  /** Source location of the program. */
  readonly #written: Written

  constructor(name: string, dims: Readonly<Record<string, number>>, written: Written = {}) {
    this.#name = name
    this.#written = written
    this.#values = new ProgramValues(name, dims)
    this.#declared = new ProgramStates(name, this.#values)
    this.#regions = new Regions(name, this.#unknowns, this.#values.all)
  }

  /** Applied graphs, each once. */
  get graphs(): readonly GraphDecl[] {
    return [...this.#graphs.values()]
  }

  /** Declares the inputs of the program. */
  inputs(decls: Readonly<Record<string, TensorDecl>>): Readonly<Record<string, ProgramResult>> {
    return this.#eachDeclared(decls, (name, decl) => this.#declared.input(name, this.#laid(decl)))
  }

  /** Declares the states of the program. */
  states(decls: Readonly<Record<string, StateDecl>>): Readonly<Record<string, ProgramResult>> {
    return this.#eachDeclared(decls, (name, decl) => this.#declared.state(name, this.#laid(decl), decl))
  }

  /** Registers the layout of a declaration. */
  #laid<D extends TensorDecl>(decl: D): D {
    this.layouts.nameOf(decl.layout)
    return decl
  }

  #eachDeclared<D>(decls: Readonly<Record<string, D>>, declare: (name: string, decl: D) => ProgramResult) {
    const made = ([name, decl]: [string, D]): [string, ProgramResult] => [
      name,
      this.#refusable(() => concerning({ written: this.#written }, () => declare(name, decl))),
    ]
    return Object.fromEntries(Object.entries(decls).map(made))
  }

  /** Result of a call; unknown if it is refused. */
  readonly #refusable = (action: () => ProgramResult): ProgramResult => this.#unknowns.attempt(action, this.#unknowns.make)

  /** Runs the author's function. @throws its error, after all earlier ones */
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
    expectApplication(this.#name, this.apply, decl, { inputs, weights, attrs }, options)
    const { graph } = decl
    this.#graphs.set(graph.name, decl)
    return this.#unknowns.attempt(
      () => {
        this.layouts.addAll(decl.layouts)
        return this.#applied(decl, inputs, weights, attrs, options)
      },
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
      this.#unknowns.has(handle) ? undefined : this.#values.at(handle, about),
    )
    if (given === undefined) return Object.fromEntries(Object.keys(graph.outputs).map((name) => [name, this.#unknowns.make()]))
    const matched = matchGraph(at, graph, given, dims)
    this.#values.expectDims(at, Object.values(matched.dims))
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
      this.#values.push({ ...graphValue(id), name: `${where}.${name}` }),
    ])
    this.#nodes.push({
      kind: 'application',
      label: where,
      graph,
      inputs: Object.fromEntries(decl.inputs.map((name) => [name, getOwn(inputs, name)?.value ?? -1])),
      weights: Object.fromEntries(names),
      outputs: Object.fromEntries(outputs.map(([name, { value }]) => [name, value])),
      attrs: numbers,
      ...matched,
      within: this.#regions.within,
      written: writtenAt(this.apply),
    })
    return Object.fromEntries(outputs)
  }

  repeat(name: string, count: number, carried: Carried, build: (carried: Carried, layer: Layer) => Carried): Carried {
    this.#expect(this.repeat, 'repeat', {
      name: [name, 'text'],
      'the carried value': [carried, 'record'],
      build: [build, 'function'],
    })
    const layer = (now: Carried, index: number): Carried => build(now, { index, weights: weightsBelow(this.#regions.weights()) })
    return this.#regions.carry({ name, own: true }, count, carried, layer, writtenAt(this.repeat))
  }

  steps(name: string, count: number, carried: Carried, build: (carried: Carried, index: number) => Carried): Carried {
    this.#expect(this.steps, 'steps', {
      name: [name, 'text'],
      'the carried value': [carried, 'record'],
      build: [build, 'function'],
    })
    return this.#regions.carry({ name, own: false }, count, carried, build, writtenAt(this.steps))
  }

  view(handle: ProgramTensor, dims: string): ProgramResult {
    this.#expect(this.view, 'view', { value: [handle, 'record'], dims: [dims, 'text'] })
    return this.#refusable(() => (this.#unknowns.has(handle) ? this.#unknowns.make() : this.#viewed(handle, dims)))
  }

  #viewed(handle: ProgramTensor, dims: string): ProgramResult {
    const out = this.#values.viewed(handle, dims)
    this.#nodes.push({ kind: 'view', input: handle.value, out: out.value })
    return out
  }

  weights(prefix: string): ProgramWeights {
    this.#expect(this.weights, 'weights', { prefix: [prefix, 'text'] })
    return weightsBelow(this.#regions.weights(prefix))
  }

  state(name: string, decl: TensorDecl, options: { readonly cleared?: boolean } = {}): ProgramResult {
    this.#expect(this.state, 'state', { name: [name, 'text'], tensor: [decl, 'tensor'], options: [options, 'record'] })
    expectParts('program.config', `${this.#name}: state`, this.state, ['cleared'], options)
    return this.#refusable(() => this.#declared.state(name, this.#laid(decl), options))
  }

  /** Checks types at run time. @throws usage `program.config` */
  #expect(callee: (...given: never[]) => unknown, method: string, given: Given): void {
    expectArguments('program.config', `${this.#name}: ${method}`, callee, given)
  }

  next(state: ProgramTensor, value: ProgramTensor): void {
    this.#expect(this.next, 'next', { state: [state, 'record'], value: [value, 'record'] })
    const isKnown = ![state, value].some(this.#unknowns.has)
    this.#unknowns.attempt(
      () => {
        if (isKnown) this.#declared.follow(state, value)
      },
      () => undefined,
    )
  }

  ragged(options: RaggedOptions): (value: ProgramTensor) => ProgramResult {
    expectRagged(this.#name, this.ragged, options)
    const { lengths } = options
    this.#unknowns.attempt(
      () => {
        if (this.#unknowns.has(lengths)) return
        this.#ragged.push(raggedAxis(this.#name, options, this.#values.at(lengths, `${this.#name}: ragged`)))
      },
      () => undefined,
    )
    return (value) =>
      this.#refusable(() => {
        if (this.#unknowns.has(value)) return this.#unknowns.make()
        const rows = rowsShape(this.#name, options, this.#values.at(value, `${this.#name}: ragged`))
        return rows === undefined ? { value: value.value } : this.#viewed(value, rows)
      })
  }

  /** The whole program. @throws all errors of its declarations together */
  finish(outputs: Handles): Program {
    const named = Object.entries(outputs).map(([name, handle]): [string, number] => {
      const check = (): void => {
        if (isInherited(name) || this.#declared.has(name))
          throw usageError('program.name', `${this.#name}: output ${name} has the name of an input or a state`, {
            hint: 'choose another name',
          })
        if (!this.#unknowns.has(handle)) this.#values.at(handle, `${this.#name}: output ${name}`)
      }
      this.#unknowns.attempt(
        () => concerning({ written: this.#written }, check),
        () => undefined,
      )
      // Anything but a handle was refused above.
      return [name, handle?.value ?? -1]
    })
    if (this.#unknowns.refused.length > 0) throw together(this.#unknowns.refused)
    return withoutViewsOfInputs({
      name: this.#name,
      dims: this.#values.dims,
      values: this.#values.all,
      nodes: this.#nodes,
      inputs: this.#declared.inputs,
      outputs: Object.fromEntries(named),
      states: this.#declared.states,
      weights: this.#weights.all,
      ragged: this.#ragged,
    })
  }
}
