/**
 * Stacks that a search tries: matmuls of one factor whose results differ in width, as queries and the keys that several of them share do. A
 * kernel of several products has one width, so that only a stack makes one kernel of them. Ops that do the same behind each are stacked too.
 */
import type { Graph, NodeOf } from '../../ir/graph.js'
import { inputsOf, outputsOf } from '../../ir/graph.js'
import { freshName } from '../../ir/names.js'
import { printShape } from '../../ir/shape.js'
import type { PlanDecl } from '../../lang/plan.js'

type Stacks = NonNullable<PlanDecl['stacked']>
type Stackable = NodeOf<'matmul'> | NodeOf<'op'>

/** Stacks to try, the most of them first: with the ops behind, and of matmuls alone. None where widths do not differ. */
export function stacksOf(graph: Graph): readonly Stacks[] {
  const matmuls = graph.nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const factors = [...new Set(matmuls.map(({ a }) => a))]
  const uneven = factors
    .map((factor) => matmuls.filter(({ a }) => a === factor))
    .filter((readers) => new Set(readers.map(({ out }) => printShape(graph.values[out]?.shape ?? []))).size > 1)
  if (uneven.length === 0) return []
  const whole = uneven.flatMap((readers) => {
    const stacked: (readonly Stackable[])[] = [readers]
    for (let at = alikeBehind(graph, readers); at !== undefined; at = alikeBehind(graph, at)) stacked.push(at)
    return stacked
  })
  return whole.length === uneven.length ? [named(graph, whole)] : [named(graph, whole), named(graph, uneven)]
}

function named({ nodes }: Graph, stacks: readonly (readonly Stackable[])[]): Stacks {
  const taken = new Set(nodes.map(({ name }) => name))
  return stacks.map((stacked) => {
    const names = stacked.map(({ name }) => name)
    return { name: freshName(names.join('_'), taken, { separator: '_' }), nodes: names }
  })
}

/** Ops of one kind of which each reads the result of one of some nodes, in their order; undefined where there is not one for each. */
function alikeBehind({ nodes }: Graph, before: readonly Stackable[]): readonly NodeOf<'op'>[] | undefined {
  const found = before.map((node) =>
    nodes.filter((other) => other.kind === 'op' && inputsOf(other).some((id) => outputsOf(node).includes(id))),
  )
  const behind = found.flatMap(([reader, ...others]) => (others.length === 0 && reader?.kind === 'op' ? [reader] : []))
  const [first] = behind
  if (first === undefined || behind.length < before.length || new Set(behind).size < behind.length) return undefined
  return behind.every(({ op, attrs }) => op === first.op && JSON.stringify(attrs) === JSON.stringify(first.attrs))
    ? behind
    : undefined
}
