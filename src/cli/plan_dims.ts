/** Sizes for which costs of a graph are predicted: its defaults, or options of `heddle plan`. */
import { graphs as shipped } from '../../specs/index.js'
import { benchConfig } from '../bench/synthetic.js'
import type { Pricing } from '../cost/step.js'
import { usageError } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import { bertDims } from '../models/encoder/bert.js'
import type { PlanSetting } from './plan_text.js'

/** Sizes of a BERT, by dimension name of its graphs. @throws usage `plan.config` for any other graph */
async function ofConfig(name: string, graph: Graph, root: string): Promise<Pricing['dims']> {
  if (!Object.hasOwn(shipped, graph.name)) {
    throw usageError('plan.config', `${graph.name} is not one of the graphs of a BERT`, {
      hint: 'give its dimensions: --dim m=512',
    })
  }
  // Only sizes from the configuration are not 0.
  const sizes = bertDims(await benchConfig(name, root), { batch: 0, seq: 0 })
  return Object.fromEntries(Object.entries(sizes).filter(([, extent]) => extent > 0))
}

/** Extents of the first dimensions in the graph's `typical`, in its order. @throws usage `plan.shape` */
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

/** Sizes that override the graph's defaults. @throws usage `plan.dim` for an unknown dimension */
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

/** @throws usage `graph.dim`, naming the option, for dimensions without an extent */
export function expectDims(graph: Graph, dims: Pricing['dims']): void {
  const missing = dimsIn(graph).filter((dim) => dims[dim] === undefined)
  if (missing.length === 0) return
  throw usageError('graph.dim', `${graph.name} has no usual size of ${missing.join(', ')}`, {
    hint: `give one here, --dim ${missing.map((dim) => `${dim}=512`).join(',')}, or with the graph, typical: { ${missing.map((dim) => `${dim}: 512`).join(', ')} }`,
  })
}
