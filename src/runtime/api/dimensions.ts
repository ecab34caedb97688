/** Dimensions on which the sizes of a model depend, and those that matter only as factors of one product. */
import { type Extent, madeOf } from '../../ir/shape.js'
import { substitute } from '../../lang/program/match.js'
import type { CompiledProgram } from '../../program/index.js'

export interface Dimensions {
  /** All dimensions in use; others that a program declares are unused in this configuration. */
  readonly dims: readonly string[]
  /** Dimensions that are used only as factors of one product. */
  readonly factors: readonly string[]
}

/** Splits an extent into its plain product and the operands of its sums and quotients: each of these is read separately. */
function summands({ factor, dims }: Extent): readonly Extent[] {
  const plain = dims.filter((dim) => madeOf(dim) === undefined)
  return [{ factor, dims: plain }, ...dims.flatMap((dim) => (madeOf(dim) ?? []).flatMap(summands))]
}

export function dimensionsOf({ values, weights, steps, graphs, ragged }: CompiledProgram): Dimensions {
  const extents: Extent[] = [...Object.values(values), ...Object.values(weights)].flatMap(({ shape }) => shape)
  for (const { graph: key, dims } of steps) {
    const graph = graphs[key]
    if (graph === undefined) continue
    const { packing } = graph
    const counted = packing === undefined ? [] : [packing.batch, packing.seq, packing.tokens]
    const read = graph.nodes.flatMap((node) => (node.kind === 'op' ? Object.values(node.attrs) : []))
    const single = read.flatMap((attr) => (typeof attr === 'object' && 'dim' in attr ? [{ factor: 1, dims: [attr.dim] }] : []))
    const all = [...graph.values.flatMap(({ shape }) => shape), ...counted, ...single]
    extents.push(...all.flatMap((extent) => summands(substitute(extent, dims))))
  }
  const found = [...new Set(extents.flatMap(({ dims }) => dims))]
  const axes = ragged.filter(({ tokens }) => found.includes(tokens)).flatMap(({ batch, seq }) => [batch, seq])
  const users = new Map<string, Set<string>>()
  for (const { dims } of [...extents, ...axes]) {
    const product = [...dims].sort().join('*')
    for (const dim of dims) users.set(dim, (users.get(dim) ?? new Set<string>()).add(product))
  }
  const dims = [...users.keys()]
  const factors = dims.filter((dim) => {
    const [product = dim, ...others] = users.get(dim) ?? []
    return others.length === 0 && product.split('*').filter((each) => each === dim).length === 1 && product !== dim
  })
  return { dims, factors }
}
