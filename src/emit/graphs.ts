/**
 * Graphs as data: the schema by which planned graphs travel in the manifest. Plans are applied when CUDA is generated, so
 * that what runs needs neither the front end nor the fusion room.
 */
import { z } from 'zod'
import { dtypes } from '../ir/dtype.js'
import type { Graph } from '../ir/graph.js'

const valueId = z.number().int().nonnegative()
const dtypeRef = z.union([z.enum(dtypes), z.strictObject({ param: z.string() })])
const ids = z.record(z.string(), valueId)
const extent = z.strictObject({ factor: z.number().int().positive(), dims: z.array(z.string()) })
const names = z.record(z.string(), z.string())
const axes = z.array(z.string())

const node = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('op'),
    name: z.string(),
    op: z.string(),
    types: z.record(z.string(), dtypeRef),
    inputs: ids,
    outputs: ids,
    attrs: z.record(z.string(), z.union([z.number(), z.strictObject({ attr: z.string() }), z.strictObject({ dim: z.string() })])),
  }),
  z.strictObject({
    kind: z.literal('matmul'),
    name: z.string(),
    a: valueId,
    b: valueId,
    out: valueId,
    subscripts: z.strictObject({ a: axes, b: axes, out: axes }),
    epilogue: z.strictObject({ bias: valueId.optional(), residual: valueId.optional(), relu: z.boolean() }).optional(),
    generated: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('view'), name: z.string(), input: valueId, out: valueId }),
])

export const graphSchema = z.strictObject({
  name: z.string(),
  values: z.array(
    z.strictObject({
      dtype: dtypeRef,
      shape: z.array(extent),
      layout: z.string(),
    }),
  ),
  nodes: z.array(node),
  inputs: ids,
  weights: ids,
  stacked: z.record(z.string(), z.array(z.string())).optional(),
  steps: z.record(z.string(), z.strictObject({ weight: z.string(), times: z.string().optional() })).optional(),
  outputs: ids,
  attrs: z.array(z.string()),
  typical: z.record(z.string(), z.number().int().positive()).optional(),
  packing: z
    .strictObject({
      batch: extent,
      seq: extent,
      tokens: extent,
      lengths: valueId.optional(),
      starts: valueId.optional(),
      sequences: valueId.optional(),
      positions: valueId.optional(),
    })
    .optional(),
  int8: z.strictObject({ inputs: names, outputs: names }).optional(),
  scales: z.record(z.string(), z.strictObject({ site: z.string(), as: z.enum(['step', 'inverse']) })).optional(),
}) satisfies z.ZodType<Graph>

/** Graphs by name, by plan: what each plan makes of the graphs it groups. */
export const plannedGraphsSchema = z.record(z.string(), z.record(z.string(), graphSchema))

export type PlannedGraphs = Readonly<Record<string, Readonly<Record<string, Graph>>>>
