/**
 * What storing values between kernels costs a graph's results, element by element: where terms are large and cancel (scores beside -10000 in a
 * row that is masked whole), a rounding in the storage type is more than any bound that knows steps and sizes alone. Asked where a
 * result is not within such a bound.
 */
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { type Graph, inputsOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { resolveDType } from '../../ir/instance.js'
import { random, uniform } from '../random.js'
import { roundTo } from '../storage.js'
import { strayedRuns, unitRoundoff } from '../tolerance.js'

type Data = ArrayLike<number>

/** What becomes of a value that a node has computed. */
type Store = (id: ValueId, made: Data) => Data

export interface Storing {
  readonly graph: Graph
  /** Names of nodes that are one kernel, by groups: what only they read is stored nowhere. */
  readonly groups: readonly (readonly string[])[]
  readonly types: Readonly<Record<string, DType>>
  readonly seed: string
  /** Runs the nodes with what becomes of each value. */
  readonly run: (store: Store) => ReadonlyMap<ValueId, Data>
}

/**
 * The largest error of each element of some values, of several runs whose stored values are rounded, and rounded otherwise. Infinity where a
 * value on the way is beyond what its type holds, so that no number is left.
 */
export function storedError(
  { graph, groups, types, seed, run }: Storing,
  wanted: ReadonlyMap<ValueId, Data>,
): (id: ValueId) => Data {
  const stored = storedIn(graph, groups)
  const next = random(`${seed} stored`)
  const storing =
    (stray: () => number): Store =>
    (id, made) => {
      const dtype = stored.has(id) ? resolveDType(graph.values[id]?.dtype ?? 'f32', types) : 'i32'
      if (dtypeInfo[dtype].scalar === 'i32') return made
      return roundTo(
        dtype,
        Float64Array.from(made, (value) => value * (1 + 2 * unitRoundoff[dtype] * stray())),
      )
    }
  const strays = [() => 0, ...Array.from({ length: strayedRuns }, () => () => uniform(next, -1, 1))]
  const runs = strays.map((stray) => run(storing(stray)))
  const [rounded] = runs
  return (id) =>
    Float64Array.from(wanted.get(id) ?? [], (value, i) => {
      const isBeyond = Number.isFinite(value) && !Number.isFinite(rounded?.get(id)?.[i])
      return runs.reduce(
        (largest, found) => {
          const error = Math.abs((found.get(id)?.[i] ?? Number.NaN) - value)
          return Number.isFinite(error) ? Math.max(largest, error) : largest
        },
        isBeyond ? Number.POSITIVE_INFINITY : 0,
      )
    })
}

/** Values that a kernel leaves in memory. */
function storedIn({ nodes, outputs }: Graph, groups: readonly (readonly string[])[]): ReadonlySet<ValueId> {
  const kept = new Set(Object.values(outputs))
  const readers = (id: ValueId): readonly string[] =>
    nodes.flatMap((node) => {
      if (!inputsOf(node).includes(id)) return []
      return node.kind === 'view' ? outputsOf(node).flatMap(readers) : [node.name]
    })
  const isWithin = (name: string, id: ValueId): boolean =>
    !kept.has(id) && groups.some((group) => group.includes(name) && readers(id).every((reader) => group.includes(reader)))
  return new Set(nodes.flatMap((node) => (node.kind === 'view' ? [] : outputsOf(node).filter((id) => !isWithin(node.name, id)))))
}

/** What `make` returns, made once and where it is asked for. */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
