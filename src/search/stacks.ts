/**
 * Stacks that a search tries: matmuls of one factor that a stack multiplies faster than a kernel of several matmuls does. Such a kernel has one
 * width, which queries and the keys that several of them share do not have, and the fastest main loop only for two matmuls. Ops that do the same
 * after each are stacked too.
 */
import type { Graph, NodeOf } from '../ir/graph.js'
import { inputsOf, outputsOf } from '../ir/graph.js'
import { freshName } from '../ir/names.js'
import { printShape } from '../ir/shape.js'
import type { PlanDecl } from '../lang/plan.js'

type Stacks = NonNullable<PlanDecl['stacked']>
type Stackable = NodeOf<'matmul'> | NodeOf<'op'>

/** Stacks to try, the most of them first: with the ops after them, then of matmuls alone. Two matmuls of one width are not stacked. */
export function stacksOf(graph: Graph): readonly Stacks[] {
  const matmuls = graph.nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const factors = [...new Set(matmuls.map(({ a }) => a))]
  const tried = factors
    .map((factor) => matmuls.filter(({ a }) => a === factor))
    .filter(
      (readers) => readers.length > 2 || new Set(readers.map(({ out }) => printShape(graph.values[out]?.shape ?? []))).size > 1,
    )
  if (tried.length === 0) return []
  const whole = tried.flatMap((readers) => {
    const stacked: (readonly Stackable[])[] = [readers]
    for (let at = alikeAfter(graph, readers); at !== undefined; at = alikeAfter(graph, at)) stacked.push(at)
    return stacked
  })
  return whole.length === tried.length ? [named(graph, whole)] : [named(graph, whole), named(graph, tried)]
}

function named({ nodes }: Graph, stacks: readonly (readonly Stackable[])[]): Stacks {
  const taken = new Set(nodes.map(({ name }) => name))
  return stacks.map((stacked) => {
    const names = stacked.map(({ name }) => name)
    return { name: freshName(names.join('_'), taken, { separator: '_' }), nodes: names }
  })
}

/** Ops of one kind that read the results of the given nodes, one per node, in their order; undefined unless there is one for each. */
function alikeAfter({ nodes }: Graph, before: readonly Stackable[]): readonly NodeOf<'op'>[] | undefined {
  const found = before.map((node) =>
    nodes.filter((other) => other.kind === 'op' && inputsOf(other).some((id) => outputsOf(node).includes(id))),
  )
  const readers = found.flatMap(([reader, ...others]) => (others.length === 0 && reader?.kind === 'op' ? [reader] : []))
  const [first] = readers
  if (first === undefined || readers.length < before.length || new Set(readers).size < readers.length) return undefined
  return readers.every(({ op, attrs }) => op === first.op && JSON.stringify(attrs) === JSON.stringify(first.attrs))
    ? readers
    : undefined
}
