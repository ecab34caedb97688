/**
 * Error of a graph's results by storing values between kernels, per element: if terms are large and cancel (scores next to -10000 in a
 * fully masked row), a rounding in the storage type exceeds any bound that depends on steps and sizes alone. Used if a
 * result is not within such a bound.
 */
import { type DType, dtypeInfo } from '../../ir/dtype.js'
import { type Graph, inputsOf, outputsOf, type ValueId } from '../../ir/graph.js'
import { resolveDType } from '../../ir/instance.js'
import { roundTo } from '../../runtime/numbers.js'
import { random, uniform } from '../random.js'
import { strayedRuns, unitRoundoff } from '../tolerance.js'

type Data = ArrayLike<number>

/** Rounds the result of a node to storage, or returns it unchanged. */
type Store = (id: ValueId, made: Data) => Data

export interface Storing {
  readonly graph: Graph
  /** Names of the nodes of each kernel: values that only they read are not stored. */
  readonly groups: readonly (readonly string[])[]
  readonly types: Readonly<Record<string, DType>>
  readonly seed: string
  /** Runs the nodes, with each result passed through `store`. */
  readonly run: (store: Store) => ReadonlyMap<ValueId, Data>
}

/**
 * The largest error of each element over one run with rounded stored values, and several with perturbed roundings. Infinity if an
 * intermediate value exceeds the range of its type, so that the element is not a number.
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

/** Values that kernels store in memory. */
function storedIn({ nodes, outputs }: Graph, groups: readonly (readonly string[])[]): ReadonlySet<ValueId> {
  const results = new Set(Object.values(outputs))
  const readers = (id: ValueId): readonly string[] =>
    nodes.flatMap((node) => {
      if (!inputsOf(node).includes(id)) return []
      return node.kind === 'view' ? outputsOf(node).flatMap(readers) : [node.name]
    })
  const isWithin = (name: string, id: ValueId): boolean =>
    !results.has(id) && groups.some((group) => group.includes(name) && readers(id).every((reader) => group.includes(reader)))
  return new Set(nodes.flatMap((node) => (node.kind === 'view' ? [] : outputsOf(node).filter((id) => !isWithin(node.name, id)))))
}

/** Memoises `make`: it runs at the first call. */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
