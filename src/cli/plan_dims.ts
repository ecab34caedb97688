/** The sizes that a graph is priced for: as it is usually run, or as options of `heddle plan` say instead. */
import { graphs as shipped } from '../../specs/index.js'
import { benchConfig } from '../bench/synthetic.js'
import { usageError } from '../errors.js'
import type { Pricing } from '../fuse/search/cost.js'
import type { Graph } from '../ir/graph.js'
import { bertDims } from '../models/encoder/bert.js'
import type { PlanSetting } from './plan_text.js'

/** Sizes of a BERT by the dimensions its graphs call them. @throws usage `plan.config` for a graph that is none of those */
async function ofConfig(name: string, graph: Graph, root: string): Promise<Pricing['dims']> {
  if (!Object.hasOwn(shipped, graph.name)) {
    throw usageError('plan.config', `${graph.name} is not one of the graphs that a BERT is made of`, {
      hint: 'give its dimensions: --dim m=512',
    })
  }
  // Nothing but the configuration says what is not 0.
  const sizes = bertDims(await benchConfig(name, root), { batch: 0, seq: 0 })
  return Object.fromEntries(Object.entries(sizes).filter(([, extent]) => extent > 0))
}

/** Extents of the first dimensions the graph says it is usually run with, in its order. @throws usage `plan.shape` */
function ofShape(shape: readonly number[], { name, typical = {} }: Graph): Pricing['dims'] {
  const first = Object.keys(typical).slice(0, shape.length)
  if (first.length < shape.length) {
    throw usageError(
      'plan.shape',
      `--shape ${shape.join('x')} has ${shape.length} extents, ${name} names ${first.length} typical ones`,
      {
        hint: 'give dimensions by name: --dim m=512',
      },
    )
  }
  return Object.fromEntries(first.map((dim, at) => [dim, shape[at] ?? 1]))
}

/** What is asked for instead of the sizes that the graph is usually run with. @throws usage `plan.dim` for what is no dimension of it */
export async function givenDims(
  { shape, config, dims = {} }: PlanSetting,
  graph: Graph,
  tokens: readonly string[],
  root: string,
) {
  const known = [...dimsIn(graph), ...tokens]
  const unknown = Object.keys(dims).find((dim) => !known.includes(dim))
  if (unknown !== undefined) {
    throw usageError('plan.dim', `${graph.name} has no dimension ${unknown}`, { hint: `dimensions are ${known.join(', ')}` })
  }
  const sizes = config === undefined ? {} : await ofConfig(config, graph, root)
  return { ...sizes, ...(shape === undefined ? {} : ofShape(shape, graph)), ...dims }
}

const dimsIn = ({ values }: Graph): readonly string[] => [
  ...new Set(values.flatMap(({ shape }) => shape.flatMap((extent) => extent.dims))),
]

/** @throws usage `graph.dim` naming the option for dimensions that nothing gives an extent */
export function expectDims(graph: Graph, dims: Pricing['dims']): void {
  const missing = dimsIn(graph).filter((dim) => dims[dim] === undefined)
  if (missing.length === 0) return
  throw usageError('graph.dim', `${graph.name} does not say how large it usually is: ${missing.join(', ')}`, {
    hint: `give it here, --dim ${missing.map((dim) => `${dim}=512`).join(',')}, or with the graph, typical: { ${missing.map((dim) => `${dim}: 512`).join(', ')} }`,
  })
}
