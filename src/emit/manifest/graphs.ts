/**
 * Graphs as data: the schema of planned graphs in the manifest. Plans are applied when CUDA is generated, so that the runtime needs neither the
 * front end nor src/fuse.
 */
import { z } from 'zod'
import { dtypes } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { foldChannel, type Graph } from '../../ir/graph.js'

const valueId = z.number().int().nonnegative()
const dtypeRef = z.union([z.enum(dtypes), z.strictObject({ param: z.string() })])
const ids = z.record(z.string(), valueId)
const extent = z.strictObject({ factor: z.number().int().positive(), dims: z.array(z.string()) })
const names = z.record(z.string(), z.string())
const axes = z.array(z.string())

/** Index of the weight's element that a channel comes from: integer arithmetic over the channel and extents. */
const element: z.ZodType<Expr> = z.lazy(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('const'), type: z.literal('i32'), value: z.number().int() }),
    z.strictObject({ kind: z.literal('dim'), type: z.literal('i32'), name: z.string() }),
    z.strictObject({ kind: z.literal('index'), type: z.literal('i32'), name: z.literal(foldChannel) }),
    z.strictObject({
      kind: z.literal('call'),
      type: z.literal('i32'),
      fn: z.enum(['add', 'sub', 'mul', 'idiv', 'mod']),
      args: z.array(element).length(2),
    }),
  ]),
)
const axis = { weight: z.string(), axis: z.number().int().nonnegative() }

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

const oneGraph = z.strictObject({
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
  folds: z
    .array(
      z.strictObject({
        value: z.string(),
        shape: z.array(extent),
        readers: z.array(z.strictObject(axis)),
        makers: z.array(z.strictObject({ ...axis, element })),
      }),
    )
    .optional(),
})

const fewRows = z.strictObject({ most: z.number().int().positive(), plan: z.string(), graph: oneGraph })

export const graphSchema = oneGraph.extend({
  byRows: z.strictObject({ rows: extent, few: z.array(fewRows) }).optional(),
}) satisfies z.ZodType<Graph>

/** Graphs by name, by plan: the result of each plan for the graphs it groups. */
export const plannedGraphsSchema = z.record(z.string(), z.record(z.string(), graphSchema))

export type PlannedGraphs = Readonly<Record<string, Readonly<Record<string, Graph>>>>
