/**
 * Inserts conversions between the storage forms of a program's values. Graphs are those that the plan rewrote. If a graph reads a value in a form
 * that does not exist yet, the steps that convert the value are inserted; later readers share the result. By default, inputs have padding or not as
 * their first reader expects.
 */
import { concerning, usageError } from '../errors.js'
import type { Graph, ScaleForm, ValueId } from '../ir/graph.js'
import { printType } from '../ir/kernel.js'
import type { Application, Program, ProgramNode, ProgramValueId } from '../ir/program.js'
import { type Extent, printShape } from '../ir/shape.js'
import type { Conversion } from '../lang/conversion.js'
import { graph as declareGraph } from '../lang/graph.js'
import { tensor } from '../lang/tensor.js'
import type { CompiledProgram, CompiledStep, ScaleAttr } from './compiled.js'
import { cheapestPath, placingGraph, type Step, type StepInput } from './conversions.js'
import { Forms } from './forms.js'
import { PlanGraphs } from './plan_graphs.js'
import type { ModelPlan } from './plans.js'
import { scaleSite } from './scale_site.js'
import { formOf, printForm, raggedOf, type StorageForm, sameForm } from './storage_form.js'

export interface CompileOptions {
  /** Layout conversions of the project, for graphs that its plans store in different layouts. */
  readonly conversions?: readonly Conversion[]
  /** True for inputs and results in the declared form, with padding; otherwise they have the form in which graphs read and compute them. */
  readonly asDeclared?: boolean
}

type Rows = Readonly<Record<Exclude<StepInput, 'value'>, string>>

/** @throws usage `plan.form`, `plan.ragged`, `program.graph` naming value and application */
export function insertConversions(program: Program, plan: ModelPlan, options: CompileOptions): CompiledProgram {
  return new Insertion(program, plan, options).run()
}

class Insertion {
  readonly #program: Program
  readonly #plan: ModelPlan
  readonly #conversions: readonly Conversion[]
  readonly #asDeclared: boolean
  readonly #forms: Forms
  readonly #graphs: PlanGraphs
  readonly #steps: CompiledStep[] = []
  /** Row positions that are computed already, by ragged axis. */
  readonly #placed = new Map<number, Rows>()

  constructor(program: Program, plan: ModelPlan, { conversions = [], asDeclared = false }: CompileOptions) {
    this.#program = program
    this.#plan = plan
    this.#conversions = conversions
    this.#asDeclared = asDeclared
    this.#graphs = new PlanGraphs(program.name, plan)
    this.#forms = new Forms(program)
  }

  run(): CompiledProgram {
    const { name, dims, nodes, inputs, outputs, states, ragged, weights } = this.#program
    for (const { value } of Object.values(states)) this.#forms.add(value, this.#forms.declared(value))
    if (this.#asDeclared) for (const value of Object.values(inputs)) this.#forms.add(value, this.#forms.declared(value))
    for (const node of nodes) {
      if (node.kind === 'view') this.#view(node)
      else concerning({ written: node.written }, () => this.#apply(node))
    }
    const results = Object.entries(outputs).map(([output, id]): [string, string] => [output, this.#result(id)])
    const nextValues = Object.entries(states).map(([state, { next, cleared }]): [string, CompiledProgram['states'][string]] => [
      state,
      { cleared, ...(next === undefined ? {} : { next: this.#inForm(next, this.#forms.declared(next), `state ${state}`) }) },
    ])
    return {
      name,
      plan: this.#plan.name,
      dims: { ...dims },
      ragged: ragged.map(({ lengths, ...axis }) => ({
        ...axis,
        lengths: this.#inForm(lengths, this.#forms.declared(lengths), name),
      })),
      graphs: this.#graphs.all,
      values: this.#forms.values,
      inputs: Object.keys(inputs),
      outputs: Object.fromEntries(results),
      states: Object.fromEntries(nextValues),
      weights,
      steps: this.#steps,
    }
  }

  #apply(application: Application): void {
    const graph = this.#graphs.planned(application.graph)
    const { label } = application
    const inputs: Record<string, string> = {}
    for (const [name, id] of Object.entries(graph.inputs)) {
      const value = application.inputs[graph.int8?.inputs[name] ?? name]
      inputs[name] =
        value === undefined
          ? this.#placing(application, graph, id, name)
          : this.#inForm(value, this.#formOf(application, graph, id), label)
    }
    const outputs: Record<string, string> = {}
    for (const [name, id] of Object.entries(graph.outputs)) {
      const value = application.outputs[graph.int8?.outputs[name] ?? name]
      if (value === undefined) throw new Error(`internal: ${label} has no output ${name}`)
      outputs[name] = this.#forms.add(value, this.#formOf(application, graph, id))
    }
    const scales = Object.entries(graph.scales ?? {}).map(([attr, { site, as }]) => [attr, { at: label, site, as }] as const)
    const attrs = { ...application.attrs, ...Object.fromEntries(scales) }
    this.#push(label, graph, inputs, outputs, attrs, {
      ...application,
      dims: { ...application.dims, ...this.#tokens(application, graph) },
    })
  }

  /** The plan's dimension of rows without padding, mapped to the program's. */
  #tokens(application: Application, graph: Graph): Readonly<Record<string, Extent>> {
    const [name] = graph.packing?.tokens.dims ?? []
    if (name === undefined) return {}
    const axis = this.#program.ragged[this.#ragged(application, graph)]
    return axis === undefined ? {} : { [name]: { factor: 1, dims: [axis.tokens] } }
  }

  /** Value of an input of row positions, which the plan added to the graph. */
  #placing(application: Application, graph: Graph, id: ValueId, name: string): string {
    const { packing } = graph
    const what = (['lengths', 'starts', 'sequences', 'positions'] as const).find((placing) => packing?.[placing] === id)
    if (packing === undefined || what === undefined) {
      throw usageError(
        'plan.form',
        `plan ${this.#plan.name}: ${graph.name} takes an input ${name}, which ${application.label} does not supply`,
      )
    }
    return this.#placedRows(this.#ragged(application, graph))[what]
  }

  #formOf(application: Application, graph: Graph, id: ValueId): StorageForm {
    const form = formOf(graph, id, application, this.#program.ragged)
    if (form.rows === 'packed') this.#ragged(application, graph)
    return form
  }

  #ragged(application: Application, { packing }: Graph): number {
    const found = packing === undefined ? -1 : raggedOf(packing, application, this.#program.ragged)
    if (found >= 0) return found
    throw usageError(
      'plan.ragged',
      `plan ${this.#plan.name} removes padding from ${application.label}, and ${this.#program.name} does not declare the lengths of its sequences`,
      { hint: "declare them in the program: p.ragged({ batch: 'b', seq: 's', lengths })" },
    )
  }

  /** Positions of the rows of a ragged axis, computed from the lengths before they are first needed. */
  #placedRows(ragged: number): Rows {
    const known = this.#placed.get(ragged)
    if (known !== undefined) return known
    const axis = this.#program.ragged[ragged]
    if (axis === undefined) throw new Error(`internal: there is no ragged axis ${ragged}`)
    const decl = placingGraph(axis)
    const label = ragged === 0 ? decl.name : `${decl.name}${ragged}`
    const lengths = this.#inForm(axis.lengths, this.#forms.declared(axis.lengths), label)
    const outputs = Object.fromEntries(
      Object.entries(decl.graph.outputs).map(([name, id]) => {
        const value = decl.graph.values[id]
        if (value === undefined) throw new Error(`internal: ${decl.name} has no ${name}`)
        const wire = `${label}.${name}`
        this.#forms.values[wire] = { ...value, rows: 'padded' }
        return [name, wire]
      }),
    )
    this.#push(label, decl.graph, { lengths }, outputs)
    const { starts = '', sequences = '', positions = '' } = outputs
    const placed = { lengths, starts, sequences, positions }
    this.#placed.set(ragged, placed)
    return placed
  }

  #view({ input, out }: Extract<ProgramNode, { kind: 'view' }>): void {
    const [from, to] = [this.#forms.value(input), this.#forms.value(out)]
    const decl = declareGraph('view', {
      inputs: { x: tensor(printType(from.dtype), printShape(from.shape)) },
      weights: {},
      build: (g, { x }) => ({ nodes: {}, outputs: { y: g.view(x, printShape(to.shape)) } }),
    })
    const x = this.#inForm(input, this.#forms.declared(input), to.name)
    this.#push(to.name, decl.graph, { x }, { y: this.#forms.add(out, this.#forms.declared(out)) })
  }

  /** A result in its declared type and layout: an existing form if there is one, else one with the rows of the first form. */
  #result(id: ProgramValueId): string {
    if (this.#asDeclared) return this.#inForm(id, this.#forms.declared(id), `the results of ${this.#program.name}`)
    const { store, layout } = this.#forms.declared(id)
    const made = this.#forms.of(id)
    const plain = made.find(({ form }) => form.layout === layout && printType(form.store) === printType(store))
    if (plain !== undefined) return plain.name
    const rows = made[0]?.form ?? this.#forms.declared(id)
    return this.#inForm(id, { ...rows, store, layout }, `the results of ${this.#program.name}`)
  }

  /** Name of a value in a form; inserts conversions if the form does not exist. */
  #inForm(id: ProgramValueId, wanted: StorageForm, reader: string): string {
    const value = this.#forms.value(id)
    const made = this.#forms.of(id)
    const found = made.find(({ form }) => sameForm(form, wanted))
    if (found !== undefined) return found.name
    if (made.length === 0) {
      // An input: its caller omits padding if its first reader does.
      this.#forms.add(id, { ...this.#forms.declared(id), rows: wanted.rows, ragged: wanted.ragged })
      return this.#inForm(id, wanted, reader)
    }
    const forms = made.map(({ form }) => form)
    const path = cheapestPath(value, forms, wanted, this.#program.ragged, this.#conversions)
    if (path === undefined) {
      throw usageError(
        'plan.form',
        `plan ${this.#plan.name}: ${reader} takes ${value.name} as ${printForm(wanted)}, got ${forms.map(printForm).join(' and ')}, and no step converts one to the other`,
        {
          hint: 'between graphs, padding is removed and restored, and values become int8 and floats; for other layouts a project declares conversions',
        },
      )
    }
    for (const [i, step] of path.steps.entries())
      this.#convert(id, i === 0 ? path.from : (path.steps[i - 1]?.to ?? path.from), step, reader)
    return this.#inForm(id, wanted, reader)
  }

  /** Inserts a step, unless its result exists. */
  #convert(id: ProgramValueId, from: StorageForm, { to, graph, inputs, scales }: Step, reader: string): void {
    const made = this.#forms.of(id)
    if (made.some(({ form }) => sameForm(form, to))) return
    const given = made.find(({ form }) => sameForm(form, from))
    if (given === undefined) throw new Error(`internal: ${this.#forms.value(id).name} is not ${printForm(from)}`)
    const rows = (what: keyof Rows): string => this.#placedRows(from.ragged ?? to.ragged ?? -1)[what]
    const wires = Object.entries(inputs).map(([name, what]): [string, string] => [
      name,
      what === 'value' ? given.name : rows(what),
    ])
    const scale = (as: ScaleForm): ScaleAttr => {
      const site = scaleSite(this.#program, this.#graphs, id)
      if (site !== undefined) return { ...site, as }
      const needs = `${reader} needs a scale of ${this.#forms.value(id).name}, and no graph quantises it`
      throw usageError('plan.form', `plan ${this.#plan.name}: ${needs}`)
    }
    const attrs = Object.entries(scales).map(([attr, as]): [string, ScaleAttr] => [attr, scale(as)])
    const label = `${graph.name}(${this.#forms.value(id).name})`
    this.#push(label, graph.graph, Object.fromEntries(wires), { y: this.#forms.add(id, to) }, Object.fromEntries(attrs))
  }

  #push(
    label: string,
    graph: Graph,
    inputs: Readonly<Record<string, string>>,
    outputs: Readonly<Record<string, string>>,
    attrs: CompiledStep['attrs'] = {},
    { weights = {}, dims = {}, types = {} }: Partial<Pick<Application, 'weights' | 'dims' | 'types'>> = {},
  ): void {
    const isOther = (is: unknown, same: unknown): boolean => JSON.stringify(is) !== JSON.stringify(same)
    this.#steps.push({
      label,
      graph: this.#graphs.keyOf(graph),
      inputs,
      weights,
      outputs,
      attrs,
      dims: Object.fromEntries(Object.entries(dims).filter(([dim, extent]) => isOther(extent, { factor: 1, dims: [dim] }))),
      types: Object.fromEntries(Object.entries(types).filter(([param, dtype]) => isOther(dtype, { param }))),
    })
  }
}
