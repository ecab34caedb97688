/**
 * A model under a chosen plan: graphs applied to named values, sizes as expressions, states. Names and forms are those of the declaration;
 * the compiled program converts values that the plan stores in another form.
 */
import type { Manifest } from '../../emit/manifest/manifest.js'
import { HeddleError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { getOwn } from '../../ir/get_own.js'
import type { Graph, GraphValue } from '../../ir/graph.js'
import { resolveDType } from '../../ir/instance.js'
import type { Extent } from '../../ir/shape.js'
import type { Conversion } from '../../lang/conversion.js'
import type { PlanDecl } from '../../lang/plan.js'
import { type CompiledProgram, compileProgram, defaultPlan, findPlan } from '../../program/index.js'
import type { GraphApplication } from '../application.js'
import { type ChosenPlan, chooseAmong } from '../default_plan.js'
import type { NativeDeviceInfo } from '../native.js'
import { wireProgram } from '../program_wiring.js'
import type { Declared, Planned, Values } from './declared.js'
import { dimensionsOf } from './dimensions.js'
import { refuse } from './load_checks.js'
import { nameHint } from './names.js'
import { scalesOf } from './scales.js'

/** A value that outlives runs. */
export interface SourceState {
  readonly value: GraphValue
  readonly cleared: boolean
  /** Program value that it holds after a run; unchanged if undefined. */
  readonly next?: string | undefined
}

/** A ragged axis: sequences of different lengths. */
export interface RaggedInput {
  readonly batch: Extent
  readonly seq: Extent
  /** Dimension of the packed rows (without padding). */
  readonly tokens: string
  /** Input with the lengths; undefined if they are computed or held in a state. */
  readonly lengths: string | undefined
}

export interface ModelSource {
  readonly name: string
  readonly plan: ChosenPlan
  /** Inputs of every run. */
  readonly inputs: Values
  /** Program value of each result. */
  readonly outputs: Readonly<Record<string, string>>
  readonly states: Readonly<Record<string, SourceState>>
  /** Values given once, when the model is loaded. */
  readonly weights: Values
  /** Names of all dimensions in use. */
  readonly dims: readonly string[]
  /** Dimensions that are used only as factors of one product: if their sizes are unknown, any sizes with this product will do. */
  readonly factors: readonly string[]
  /** Typical sizes of dimensions: the factors of a product that equals theirs. */
  readonly typical: Readonly<Record<string, number>>
  readonly ragged: readonly RaggedInput[]
  readonly applications: readonly GraphApplication[]
}

export interface SourceOptions {
  readonly plan: string | PlanDecl | undefined
  readonly manifest: Manifest
  readonly info: NativeDeviceInfo
  readonly types: Readonly<Record<string, DType>>
  /** Packed inputs and results (without padding), if the plan stores them packed. */
  readonly packed: boolean
  readonly conversions: readonly Conversion[]
  readonly scales: unknown
}

/**
 * Compiles a declaration under a plan: the requested one, else the one that suits device and storage type.
 * @throws usage `load.plan`, `load.stale`, `load.scales`, `plan.form`, `plan.ragged`, `program.*`
 */
export function sourceOf(declared: Declared, options: SourceOptions): ModelSource {
  const { name } = declared
  const plan = options.plan === undefined ? choose(declared, options) : requested(declared, options.plan, options.manifest)
  const compiled = compiledUnder(declared, plan.name, options)
  const { applications } = wireProgram(compiled, { amax: scalesOf(declared, plan.name, options.scales) })
  const inputs = compiled.inputs.map((input): [string, GraphValue] => {
    const [compiledInput, given] = [compiled.values[input], getOwn(declared.inputs, input)]
    if (compiledInput === undefined || (compiledInput.rows === 'padded' && given !== undefined))
      return [input, given ?? missingValue(input)]
    return [input, { dtype: compiledInput.dtype, shape: compiledInput.shape, layout: compiledInput.layout }]
  })
  const states = Object.entries(compiled.states).map(([state, { next, cleared }]): [string, SourceState] => [
    state,
    { value: compiled.values[state] ?? missingValue(state), cleared, next },
  ])
  return {
    name,
    plan,
    inputs: Object.fromEntries(inputs),
    outputs: compiled.outputs,
    states: Object.fromEntries(states),
    weights: compiled.weights,
    ...dimensionsOf(compiled),
    typical: declared.typical,
    ragged: compiled.ragged.map((axis) => ({
      ...axis,
      lengths: compiled.inputs.includes(axis.lengths) ? axis.lengths : undefined,
    })),
    applications,
  }
}

function missingValue(name: string): never {
  throw new Error(`internal: there is no value ${name}`)
}

function compiledUnder(declared: Declared, plan: string, { manifest, packed, conversions }: SourceOptions): CompiledProgram {
  const graphs = getOwn(manifest.plans ?? {}, plan) ?? {}
  const planned: Planned = (graph) => getOwn(graphs, graph)
  const program = declared.program(planned)
  for (const node of program.nodes) {
    const graph = node.kind === 'application' ? planned(node.graph.name) : undefined
    if (graph !== undefined && node.kind === 'application') expectFresh(plan, node.graph, graph)
  }
  return compileProgram(program, findPlan(plan, manifest.plans), { conversions, asDeclared: !packed })
}

/** Returns the requested plan, by name or declaration. @throws usage `load.plan` naming the existing plans */
function requested({ kind, name, covered }: Declared, plan: string | PlanDecl, { plans = {} }: Manifest): ChosenPlan {
  const planName = typeof plan === 'string' ? plan : plan.name
  if (typeof plan !== 'string' && kind === 'graph' && plan.graph !== name)
    throw refuse({ name }, 'plan', `plan ${planName} is for graph ${plan.graph}, not for ${name}`)
  const covers = (each: string): boolean => covered.some((graph) => getOwn(getOwn(plans, each) ?? {}, graph) !== undefined)
  if (planName === defaultPlan || covers(planName)) return { name: planName, reason: 'requested' }
  const known = [defaultPlan, ...Object.keys(plans).filter(covers)]
  throw refuse(
    { name },
    'plan',
    `there is no plan ${planName} for ${kind} ${name}`,
    `${nameHint('its plans', known, planName)}; add the plan to the list plans that the specs export, then run heddle gen`,
  )
}

/** Chooses the plan with the fewest launches among those under which the model compiles. */
function choose(declared: Declared, options: SourceOptions): ChosenPlan {
  const { manifest, info, types } = options
  const [dtype = 'f32'] = Object.values(types)
  const graphsOf = (plan: string) => {
    const graphs = getOwn(manifest.plans ?? {}, plan) ?? {}
    if (!declared.covered.every((name) => getOwn(graphs, name) !== undefined)) return undefined
    try {
      const compiled = compiledUnder(declared, plan, options)
      return compiled.steps.flatMap((step) => {
        const graph = compiled.graphs[step.graph]
        const resolved = Object.entries(step.types).map(([param, type]) => [param, resolveDType(type, types)] as const)
        return graph === undefined ? [] : [{ graph, types: { ...types, ...Object.fromEntries(resolved) } }]
      })
    } catch (error) {
      // A plan under which this model does not compile is not a candidate.
      if (error instanceof HeddleError) return undefined
      throw error
    }
  }
  const what = declared.kind === 'graph' ? declared.name : declared.covered.join(' and ')
  return chooseAmong(Object.keys(manifest.plans ?? {}), graphsOf, { manifest, info, dtype, what })
}

/** Checks that the graph has not changed since the plan was applied. @throws usage `load.stale` */
function expectFresh(plan: string, graph: Graph, planned: Graph): void {
  const names = <K extends 'inputs' | 'outputs'>(side: K) =>
    new Set([...Object.keys(graph[side]), ...Object.keys(planned.int8?.[side] ?? {})])
  const placed = Object.values({ ...planned.packing, batch: -1, seq: -1, tokens: -1 })
  const input = Object.entries(planned.inputs).find(([name, id]) => !names('inputs').has(name) && !placed.includes(id))
  const output = Object.keys(planned.outputs).find((name) => !names('outputs').has(name))
  const made = new Set([...Object.keys(planned.stacked ?? {}), ...Object.keys(planned.steps ?? {})])
  const weight = [...Object.keys(planned.weights), ...Object.values(planned.stacked ?? {}).flat()].find(
    (name) => !Object.hasOwn(graph.weights, name) && !made.has(name),
  )
  const attr = planned.attrs.find((name) => !graph.attrs.includes(name) && getOwn(planned.scales ?? {}, name) === undefined)
  const found = { input: input?.[0], output, weight, attribute: attr }
  for (const [what, name] of Object.entries(found)) {
    if (name === undefined) continue
    const message = `plan ${plan} of ${graph.name} has ${what === 'weight' ? 'a' : 'an'} ${what} ${name} that the graph does not have`
    throw refuse(graph, 'stale', message, 'run heddle gen')
  }
}
