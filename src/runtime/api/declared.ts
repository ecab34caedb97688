/**
 * What `load` was given, whatever it was declared as: the names and values that a graph or a program of a configuration has, and the
 * program that it is under a plan. A graph by itself is a program of one application.
 */
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { Graph, GraphValue, ValueId } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { parseShape } from '../../ir/shape.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { NamedLayouts } from '../../lang/layout.js'
import type { ProgramDecl } from '../../lang/program.js'
import { programOf } from '../../program/graph_program.js'
import { recordOf, refuse } from './load_checks.js'
import { nameHint } from './names.js'
import { typeName } from './tensor.js'

export type Values = Readonly<Record<string, GraphValue>>

/** A graph as a plan has it; undefined where the plan says nothing of it. */
export type Planned = (graph: string) => Graph | undefined

export interface Declared {
  readonly kind: 'graph' | 'program'
  readonly name: string
  /** As a caller gives them: a program may read an input under another shape. */
  readonly inputs: Values
  readonly weights: Values
  /** Everything whose storage type may be a parameter. */
  readonly values: readonly GraphValue[]
  readonly outputs: readonly string[]
  /** Those of its values, by name. */
  readonly layouts: NamedLayouts
  /** The graphs that it applies, those of layers first of all where it repeats any: what a plan has to say something of. */
  readonly covered: readonly string[]
  program(planned: Planned): Program
}

/** @throws usage `load.graph`, `load.attrs`, `load.config`, and `program.*` for a configuration that cannot be put together */
export function declaredOf(decl: GraphDecl | ProgramDecl, attrs: unknown, config: unknown): Declared {
  if (isProgram(decl)) {
    if (attrs !== undefined) {
      throw refuse(decl, 'attrs', 'a program has no attributes', 'what is known when it is compiled is its config: { ... }')
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
      program: () => program,
    }
  }
  if (typeof decl !== 'object' || decl === null || typeof decl.graph !== 'object') {
    throw usageError('load.graph', `the first argument of load must be a graph or a program, got ${typeName(decl)}`, {
      hint: "a graph is what graph('name', { ... }) returns, a program what program('name', { ... }) does",
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
    program: (planned) => programOf(graph, numbers, planned(graph.name)),
  }
}

/** Names of the graphs that layers repeat; of all that are applied where nothing is repeated. */
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
  // Scales are given as such.
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
      throw refuse(graph, 'attrs', `attribute ${name} must be a finite number, got ${found}`)
    }),
  )
}
