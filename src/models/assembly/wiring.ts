/**
 * Wires graphs one behind the other under a plan. Graphs of one model may store the value they share differently: with or without
 * padding, as floats or int8, row-major or in COL32. Where they do, the step between the two forms is added, once for each value.
 */
import { fromCol32, fromInt8Col32, toCol32, toInt8, toInt8Col32 } from '../../../specs/graphs/int8.js'
import { packing, removePadding, restorePadding } from '../../../specs/graphs/padding.js'
import { usageError } from '../../errors.js'
import { type Graph, isQuantised, type PackedRows, type ValueId } from '../../ir/graph.js'
import { stepOf, stepsPerUnit } from '../../ir/int8_scale.js'
import { sameExtent } from '../../ir/shape.js'
import type { GraphDecl } from '../../lang/graph.js'
import { int8Name } from '../../lang/step_names.js'
import type { ModelPlan } from '../../program/plans.js'
import type { GraphApplication } from '../../runtime/program.js'

export interface Assembly {
  readonly applications: readonly GraphApplication[]
  readonly outputs: readonly string[]
  /** Whether ids are supplied, and results of tokens returned, in packed rows. */
  readonly packed: { readonly inputs: boolean; readonly outputs: boolean }
}

/** Whether weights are int8 under the plan. */
export const hasInt8Weights = ({ applications }: Pick<Assembly, 'applications'>): boolean =>
  applications.some(({ graph }) => isQuantised(graph))

type Names = Readonly<Record<string, string>>

/** The magnitude of a value that becomes 127; undefined where nothing says it. */
type Amax = (site: string) => number | undefined

/** A value a graph yields, and its scale where it can be quantised. */
export interface Result {
  readonly name: string
  readonly amax?: () => number | undefined
  /** Under this name with padding, whatever the plan: behind a packed graph padding is restored, and the packed value is `name.packed`. */
  readonly padded?: boolean
}

/** How a value is stored. */
interface Form {
  readonly packed: boolean
  readonly int8: boolean
  readonly layout: string
}

/** A form of a value that exists, and the program value it is. */
interface Made extends Form {
  readonly wire: string
}

interface Known {
  readonly made: Made[]
  readonly amax: () => number | undefined
}

/** Collects applications in order, and adds the steps between forms that the plan's choices ask for. */
export class Wiring {
  readonly #applications: GraphApplication[] = []
  readonly #plan: ModelPlan
  readonly #known = new Map<string, Known>()

  constructor(plan: ModelPlan) {
    this.#plan = plan
  }

  /**
   * @param inputs names of values; one with an int8 form beside it is given both
   * @param amax scales of the values the graph quantises, by site
   * @throws usage `run.scales` for a site without a scale
   */
  apply(
    label: string,
    decl: GraphDecl,
    inputs: Names,
    weights: Names,
    outputs: Readonly<Record<string, Result>>,
    attrs: Readonly<Record<string, number>> = {},
    amax: Amax = () => undefined,
  ): void {
    const graph = this.#plan.rewrite(decl.graph)
    const wired: Record<string, string> = {}
    for (const [name, id] of Object.entries(graph.inputs)) {
      const value = inputs[graph.int8?.inputs[name] ?? name]
      wired[name] = value === undefined ? this.#place(placingOf(graph, id) ?? name) : this.#inForm(value, formOf(graph, id))
    }
    const made: Record<string, string> = {}
    const toRestore: string[] = []
    for (const [output, id] of Object.entries(graph.outputs)) {
      const floats = graph.int8?.outputs[output]
      const result = outputs[floats ?? output]
      if (result === undefined) continue
      const known = this.#known.get(result.name) ?? { made: [], amax: result.amax ?? (() => undefined) }
      const form = formOf(graph, id)
      const restored = result.padded === true && form.packed
      const wire = floats !== undefined ? int8Name(result.name) : restored ? `${result.name}.packed` : result.name
      this.#known.set(result.name, { ...known, made: [...known.made, { ...form, wire }] })
      made[output] = wire
      if (restored) toRestore.push(result.name)
    }
    const values = { ...attrs, ...siteAttrs(label, this.#plan.name, graph, amax) }
    this.#applications.push({ label, graph, inputs: wired, weights, outputs: made, attrs: values })
    for (const name of toRestore) this.#inForm(name, { packed: false, int8: false, layout: 'row' }, name)
  }

  assembly(outputs: readonly [string, ...string[]]): Assembly {
    const inputs = this.#applications.some(({ graph, inputs: wired }) => {
      const name = Object.keys(wired).find((input) => wired[input] === 'ids')
      return name !== undefined && formOf(graph, graph.inputs[name]).packed
    })
    const returned = this.#known.get(outputs[0])?.made.find(({ wire }) => wire === outputs[0])
    return { applications: this.#applications, outputs, packed: { inputs, outputs: returned?.packed ?? false } }
  }

  /**
   * The program value that is `value` in the wanted form, called `made` if it has to be made; values the caller supplies come as the
   * graph wants them.
   */
  #inForm(value: string, wanted: Form, made = `${value}${suffixOf(wanted)}`): string {
    const known = this.#known.get(value)
    const [first] = known?.made ?? []
    if (known === undefined || first === undefined) return value
    const found = known.made.find((made) => same(made, wanted))
    if (found !== undefined) return found.wire
    const { step, from } = stepTo(wanted, first)
    const wire = this.#inForm(value, from)
    const output = Object.keys(step.graph.outputs)[0] ?? ''
    const again = this.#known.get(value) ?? known
    this.#known.set(value, { ...again, made: [...again.made, { ...wanted, wire: made }] })
    const label = `${step.name}(${value})`
    const inputs: Record<string, string> = {}
    for (const name of Object.keys(step.graph.inputs)) inputs[name] = name === 'x' ? wire : this.#place(name)
    const attrs = siteAttrs(label, this.#plan.name, step.graph, known.amax)
    this.#applications.push({ label, graph: step.graph, inputs, weights: {}, outputs: { [output]: made }, attrs })
    return made
  }

  /** Where tokens lie: computed from the lengths before it is first needed. */
  #place(name: string): string {
    if (name === 'lengths') return name
    if (!this.#applications.some(({ label }) => label === packing.name)) {
      const result = (value: string): Result => ({ name: value })
      const outputs = { starts: result('starts'), sequences: result('sequences'), positions: result('positions') }
      this.apply(packing.name, packing, { lengths: 'lengths' }, {}, outputs)
    }
    return name
  }
}

const same = (a: Form, b: Form): boolean => a.packed === b.packed && a.int8 === b.int8 && a.layout === b.layout

const suffixOf = ({ packed, int8, layout }: Form): string =>
  `${packed ? '.packed' : '.padded'}${int8 ? '.int8' : ''}${layout === 'row' ? '' : `.${layout}`}`

/** What an input of a packed graph says of where rows lie; undefined for any other. */
const placingOf = ({ packing: rows }: Graph, id: ValueId): keyof PackedRows | undefined =>
  (['lengths', 'starts', 'sequences', 'positions'] as const).find((placing) => rows?.[placing] === id)

function formOf({ values, packing: rows }: Graph, id: ValueId | undefined): Form {
  const value = values[id ?? -1]
  const [first] = value?.shape ?? []
  return {
    packed: first !== undefined && rows !== undefined && sameExtent(first, rows.tokens),
    int8: value?.dtype === 'i8',
    layout: value?.layout ?? 'row',
  }
}

/** The last step on the way from one form to another, and the form before it. The way leads through row-major floats. */
function stepTo(wanted: Form, start: Form): { readonly step: GraphDecl; readonly from: Form } {
  const plain: Form = { ...wanted, int8: false, layout: 'row' }
  const of = (graphs: readonly GraphDecl[]): GraphDecl => {
    const found = graphs[wanted.packed ? 1 : 0]
    if (found === undefined) throw new Error('internal: a form without its two graphs')
    return found
  }
  if (!same(wanted, plain)) {
    if (wanted.layout === 'row') return { step: of(toInt8), from: plain }
    if (wanted.layout === 'col32') return { step: of(wanted.int8 ? toInt8Col32 : toCol32), from: plain }
  } else if (start.packed !== wanted.packed) {
    return { step: wanted.packed ? removePadding : restorePadding, from: { ...plain, packed: start.packed } }
  } else if (start.layout === 'col32') {
    return { step: of(start.int8 ? fromInt8Col32 : fromCol32), from: start }
  }
  throw usageError('plan.form', `no step leads to a value stored ${suffixOf(wanted)} from one stored ${suffixOf(start)}`, {
    hint: 'between graphs values are row-major, row-major int8 beside floats, or in layout col32',
  })
}

/** Attributes of quantising steps: 127 / amax and amax / 127 in float32, both 0 for an amax of 0. */
function siteAttrs(label: string, plan: string, { scales = {} }: Graph, amax: Amax): Record<string, number> {
  return Object.fromEntries(
    Object.entries(scales).map(([attr, { site, as }]) => {
      const value = amax(site)
      if (value === undefined || !Number.isFinite(value) || value < 0) {
        throw usageError(
          'run.scales',
          `plan ${plan} needs a scale for ${site} of ${label}, ${value === undefined ? 'there is none' : `found ${value}`}`,
          {
            hint: 'make scales with `heddle calibrate`, and name the file with --scales',
          },
        )
      }
      return [attr, as === 'step' ? stepOf(value) : stepsPerUnit(value)]
    }),
  )
}
