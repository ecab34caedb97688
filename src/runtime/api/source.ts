/**
 * What a model is made of once its plan is chosen: graphs applied to named values, whatever they were declared as. A graph is one
 * application of itself; a program, compiled under a plan, is several.
 */
import type { Manifest } from '../../emit/manifest.js'
import { usageError } from '../../errors.js'
import type { Graph, GraphValue, ValueId } from '../../ir/graph.js'
import { printShape } from '../../ir/shape.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { GraphApplication } from '../application.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

type Values = Readonly<Record<string, GraphValue>>

export interface ModelSource {
  readonly name: string
  readonly plan: string
  /** What every run takes and gives, by the names of program values. */
  readonly inputs: Values
  readonly outputs: Values
  /** What is given once. */
  readonly weights: Values
  /** Names of every dimension, those of values in between too. */
  readonly dims: readonly string[]
  /** Names of attributes that whoever loads the model gives. */
  readonly attrs: readonly string[]
  applications(attrs: Readonly<Record<string, number>>): readonly GraphApplication[]
}

/** The plan that fuses nothing. */
export const unfused = 'unfused'

/** A graph under a plan. @throws usage `load.graph`, `load.plan`, `load.stale` */
export function graphSource(decl: GraphDecl, plan: string | PlanDecl, { plans = {} }: Manifest): ModelSource {
  if (typeof decl !== 'object' || decl === null || typeof decl.graph !== 'object') {
    throw usageError('load.graph', `the first argument of load must be a graph, got ${typeName(decl)}`, {
      hint: "a graph is what graph('name', { ... }) returns",
    })
  }
  const { name, graph } = decl
  const planName = typeof plan === 'string' ? plan : plan.name
  if (typeof plan !== 'string' && plan.graph !== name) {
    throw usageError('load.plan', `plan ${planName} is for graph ${plan.graph}, not for ${name}`)
  }
  const planned = planName === unfused ? graph : plans[planName]?.[name]
  if (planned === undefined) {
    const known = [unfused, ...Object.keys(plans).filter((each) => plans[each]?.[name] !== undefined)]
    throw usageError('load.plan', `there is no plan ${planName} for graph ${name}`, {
      hint: `${nameHint('its plans', known, planName)}; a plan is exported from specs/index.ts, and heddle gen applies it`,
    })
  }
  expectSameFace(planName, graph, planned)
  const same = (names: Readonly<Record<string, ValueId>>): Record<string, string> =>
    Object.fromEntries(Object.keys(names).map((each) => [each, each]))
  // Results have names of their own, since one may be called like an input.
  const outputs = Object.fromEntries(Object.keys(planned.outputs).map((each) => [each, resultName(each)]))
  return {
    name,
    plan: planName,
    inputs: valuesOf(graph, graph.inputs),
    outputs: valuesOf(graph, graph.outputs),
    weights: valuesOf(graph, graph.weights),
    dims: [...new Set(graph.values.flatMap(({ shape }) => shape.flatMap(({ dims }) => dims)))],
    attrs: graph.attrs,
    applications: (attrs) => [
      { label: name, graph: planned, inputs: same(planned.inputs), weights: same(graph.weights), outputs, attrs },
    ],
  }
}

/** The program value that an output is. */
export const resultName = (output: string): string => `result.${output}`

const valuesOf = (graph: Graph, ids: Readonly<Record<string, ValueId>>): Values =>
  Object.fromEntries(
    Object.entries(ids).flatMap(([name, id]) => {
      const value = graph.values[id]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** A plan must leave what goes in and comes out as it is: what it holds otherwise has to be converted by a program. */
function expectSameFace(plan: string, graph: Graph, planned: Graph): void {
  if (planned.steps !== undefined && Object.keys(planned.steps).length > 0) {
    throw usageError('load.plan', `plan ${plan} quantises the weights of ${graph.name}, which needs scales`, {
      hint: 'load it under a plan that stores floats',
    })
  }
  for (const side of ['inputs', 'outputs'] as const) {
    const [wanted, found] = [valuesOf(graph, graph[side]), valuesOf(planned, planned[side])]
    for (const name of new Set([...Object.keys(wanted), ...Object.keys(found)])) {
      const [declared, held] = [describe(wanted[name]), describe(found[name])]
      if (declared === held) continue
      throw usageError('load.plan', `plan ${plan} holds ${name} of ${graph.name} as ${held}, the graph has ${declared}`, {
        hint: 'where rows are held without padding or in another form, a program converts them: run heddle gen if the graph has changed',
      })
    }
  }
  const weights = new Set([...Object.keys(planned.weights), ...Object.values(planned.stacked ?? {}).flat()])
  const unknown = [...weights].find((name) => !Object.hasOwn(graph.weights, name) && planned.stacked?.[name] === undefined)
  if (unknown === undefined) return
  throw usageError('load.stale', `plan ${plan} of ${graph.name} has a weight ${unknown} that the graph has not`, {
    hint: 'run heddle gen',
  })
}

function describe(value: GraphValue | undefined): string {
  if (value === undefined) return 'nothing of that name'
  const dtype = typeof value.dtype === 'string' ? value.dtype : value.dtype.param
  return `${dtype} "${printShape(value.shape)}"${value.layout === 'row' ? '' : ` in layout ${value.layout}`}`
}
