/**
 * Common form of the declarations that `load` accepts: names and values of a graph, or of a program with a configuration, and its program under a
 * plan. A single graph is a program of one application.
 */
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { Graph, GraphValue, ValueId } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { parseShape } from '../../ir/shape.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { NamedLayouts } from '../../lang/layout.js'
import type { ProgramDecl } from '../../lang/program/program.js'
import { programOf } from '../../program/graph_program.js'
import { recordOf, refuse } from './load_checks.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

export type Values = Readonly<Record<string, GraphValue>>

/** Returns a graph under a plan; undefined if the plan does not cover it. */
export type Planned = (graph: string) => Graph | undefined

export interface Declared {
  readonly kind: 'graph' | 'program'
  readonly name: string
  /** Inputs as declared to callers: a program may read an input under another shape. */
  readonly inputs: Values
  readonly weights: Values
  /** All values whose storage type may be a parameter. */
  readonly values: readonly GraphValue[]
  readonly outputs: readonly string[]
  /** Layouts of its values, by name. */
  readonly layouts: NamedLayouts
  /** Names of the graphs that a plan has to cover: those of its repeated layers, or all applied graphs if none is repeated. */
  readonly covered: readonly string[]
  /** Typical sizes that it states. */
  readonly typical: Readonly<Record<string, number>>
  program(planned: Planned): Program
}

/** @throws usage `load.graph`, `load.attrs`, `load.config`, and `program.*` for a configuration with which the program is invalid */
export function declaredOf(decl: GraphDecl | ProgramDecl, attrs: unknown, config: unknown): Declared {
  if (isProgram(decl)) {
    if (attrs !== undefined) {
      throw refuse(decl, 'attrs', 'a program has no attributes', 'pass compile-time values as config: { ... }')
    }
    const given = recordOf(decl, 'config', config)
    const program = decl.of(given)
    return {
      kind: 'program',
      name: program.name,
      inputs: Object.fromEntries(
        Object.entries(program.inputs).map(([name, id]) => {
          const value = valueAt(program.values, id, name)
          const dims = getOwn(decl.inputs, name)?.dims
          return [name, dims === undefined ? value : { ...value, shape: parseShape(dims) }]
        }),
      ),
      weights: program.weights,
      values: [...program.values, ...Object.values(program.weights)],
      outputs: Object.keys(program.outputs),
      layouts: decl.layouts?.(given) ?? {},
      covered: coveredBy(program),
      typical: program.dims,
      program: () => program,
    }
  }
  if (typeof decl !== 'object' || decl === null || typeof decl.graph !== 'object') {
    throw usageError('load.graph', `first argument of load: expected a graph or a program, got ${typeName(decl)}`, {
      hint: "pass a graph, as graph('name', { ... }) returns it, or a program, as program('name', { ... }) returns it",
    })
  }
  const { graph } = decl
  if (config !== undefined) throw refuse(graph, 'config', 'a graph has no configuration', 'only programs have one')
  const numbers = checkAttrs(graph, attrs)
  const named = (ids: Readonly<Record<string, ValueId>>): Values =>
    Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, valueAt(graph.values, id, name)]))
  return {
    kind: 'graph',
    name: graph.name,
    inputs: named(graph.inputs),
    weights: named(graph.weights),
    values: graph.values,
    outputs: Object.keys(graph.outputs),
    layouts: decl.layouts ?? {},
    covered: [graph.name],
    typical: graph.typical ?? {},
    program: (planned) => programOf(graph, numbers, planned(graph.name)),
  }
}

/** Names of the graphs of repeated layers; of all applied graphs if nothing is repeated. */
function coveredBy({ nodes }: Program): readonly string[] {
  const applied = nodes.flatMap((node) => (node.kind === 'application' ? [node] : []))
  const layers = applied.filter(({ within }) => within.some((each) => each.own))
  return [...new Set((layers.length > 0 ? layers : applied).map(({ graph }) => graph.name))]
}

const isProgram = (decl: GraphDecl | ProgramDecl): decl is ProgramDecl =>
  typeof decl === 'object' && decl !== null && 'of' in decl && typeof decl.of === 'function'

function valueAt(values: readonly GraphValue[], id: number, name: string): GraphValue {
  const value = values[id]
  if (value === undefined) throw new Error(`internal: there is no value ${name}`)
  const { dtype, shape, layout } = value
  return { dtype, shape, layout }
}

function checkAttrs(graph: Graph, given: unknown): Record<string, number> {
  const attrs = recordOf(graph, 'attrs', given)
  // Scales have an option of their own.
  const names = graph.attrs.filter((name) => getOwn(graph.scales ?? {}, name) === undefined)
  const unknown = Object.keys(attrs).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw refuse(graph, 'attrs', `there is no attribute ${unknown}`, nameHint('attributes', names, unknown))
  return Object.fromEntries(
    names.map((name) => {
      const value = attrs[name]
      if (value === undefined) throw refuse(graph, 'attrs', `attribute ${name} is missing`, `attrs: { ${name}: ... }`)
      if (typeof value === 'number' && Number.isFinite(value)) return [name, value]
      const found = typeof value === 'number' ? value : typeName(value)
      throw refuse(graph, 'attrs', `attribute ${name}: expected a finite number, got ${found}`)
    }),
  )
}
