/**
 * A compiled program: a program under a plan, as data. Its steps are graphs applied to values in order; sizes are expressions over the program's
 * dimensions, so that binding it to sizes compiles nothing. Values are identified by name. Names are opaque: they help a reader, and are never parsed.
 */
import { z } from 'zod'
import { graphSchema } from '../emit/manifest/graphs.js'
import { dtypes } from '../ir/dtype.js'
import type { Graph, GraphValue, ScaleForm } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import type { Extent } from '../ir/shape.js'

type Names = Readonly<Record<string, string>>

/** A value in device memory. Packed rows are those of a ragged axis, without padding. */
export interface CompiledValue extends GraphValue {
  readonly rows: 'padded' | 'packed'
  /** Position of the ragged axis, for packed rows. */
  readonly ragged?: number | undefined
}

/** A scale of a quantised value, which calibration measures at `site` of the application `at`. The caller that binds the program supplies it. */
export interface ScaleAttr {
  readonly at: string
  readonly site: string
  readonly as: ScaleForm
}

/** One application of a graph. */
export interface CompiledStep {
  readonly label: string
  /** Key into `graphs`. */
  readonly graph: string
  readonly inputs: Names
  readonly weights: Names
  readonly outputs: Names
  readonly attrs: Readonly<Record<string, number | ScaleAttr>>
  /** The graph's dimensions and type parameters in terms of the program's; those that map to the same name are omitted. */
  readonly dims: Readonly<Record<string, Extent>>
  readonly types: Readonly<Record<string, DTypeRef>>
}

export interface CompiledProgram {
  readonly name: string
  readonly plan: string
  /** Typical size of every dimension. */
  readonly dims: Readonly<Record<string, number>>
  /**
   * Axes of sequences of different lengths: `tokens` is the dimension that counts the rows without padding, `lengths` the name of the value with the
   * lengths.
   */
  readonly ragged: readonly { readonly batch: Extent; readonly seq: Extent; readonly tokens: string; readonly lengths: string }[]
  readonly graphs: Readonly<Record<string, Graph>>
  readonly values: Readonly<Record<string, CompiledValue>>
  /** Names of values that are supplied at each run. */
  readonly inputs: readonly string[]
  /** Values of the results, by name. */
  readonly outputs: Names
  /** `next` is the value of a state after a run; if undefined, the state is unchanged. `cleared` states start as zeros. */
  readonly states: Readonly<Record<string, { readonly next?: string | undefined; readonly cleared: boolean }>>
  /** Tensors that a loader of the program supplies. */
  readonly weights: Readonly<Record<string, GraphValue>>
  readonly steps: readonly CompiledStep[]
}

const names = z.record(z.string(), z.string())
const dtypeRef = z.union([z.enum(dtypes), z.strictObject({ param: z.string() })])
const extent = z.strictObject({ factor: z.number().int().positive(), dims: z.array(z.string()) })
const tensor = { dtype: dtypeRef, shape: z.array(extent), layout: z.string() }
const scale = z.strictObject({ at: z.string(), site: z.string(), as: z.enum(['step', 'inverse']) })

export const compiledProgramSchema = z.strictObject({
  name: z.string(),
  plan: z.string(),
  dims: z.record(z.string(), z.number().int().positive()),
  ragged: z.array(z.strictObject({ batch: extent, seq: extent, tokens: z.string(), lengths: z.string() })),
  graphs: z.record(z.string(), graphSchema),
  values: z.record(
    z.string(),
    z.strictObject({ ...tensor, rows: z.enum(['padded', 'packed']), ragged: z.number().int().nonnegative().optional() }),
  ),
  inputs: z.array(z.string()),
  outputs: names,
  states: z.record(z.string(), z.strictObject({ next: z.string().optional(), cleared: z.boolean() })),
  weights: z.record(z.string(), z.strictObject(tensor)),
  steps: z.array(
    z.strictObject({
      label: z.string(),
      graph: z.string(),
      inputs: names,
      weights: names,
      outputs: names,
      attrs: z.record(z.string(), z.union([z.number(), scale])),
      dims: z.record(z.string(), extent),
      types: z.record(z.string(), dtypeRef),
    }),
  ),
}) satisfies z.ZodType<CompiledProgram>
