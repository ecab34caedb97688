/** Facts of a kernel as stored in the manifest, for machines without the front end (src/ir/facts/facts.ts defines their meaning). */
import { z } from 'zod'
import { accuracyOf } from '../../ir/facts/accuracy.js'
import { type Count, errorClasses, integerOperations, noFacts, packedRoles } from '../../ir/facts/facts.js'
import { acrossDims, loopDims } from '../../ir/facts/loops.js'
import type { Kernel } from '../../ir/kernel.js'
import type { TemplateKernel } from '../../ir/template.js'

/** A count as data. */
export const countSchema: z.ZodType<Count> = z.lazy(() =>
  z.union([z.number(), z.string(), z.tuple([z.enum(integerOperations)], countSchema)]),
)

const count = countSchema

const domain = z.strictObject({
  from: z.array(count).optional(),
  to: z.array(count).optional(),
  values: z.array(z.number()).optional(),
  first: z.number().optional(),
  also: z.array(z.number()).optional(),
  order: z.enum(['ascending', 'distinct']).optional(),
  packed: z.strictObject({ role: z.enum(packedRoles), batch: count, rows: count, seq: count.optional() }).optional(),
  divide: count.optional(),
  scales: z.string().optional(),
})

const extent = z.strictObject({
  equal: count.optional(),
  atLeast: count.optional(),
  atMost: count.optional(),
  multipleOf: z.number().int().positive().optional(),
  upTo: z.number().optional(),
  swept: z.literal(true).optional(),
})

const accuracy = z.strictObject({
  class: z.enum(errorClasses),
  integers: z.boolean(),
  length: count.optional(),
  scale: z.number().optional(),
  roots: z.number().optional(),
  rounded: z.strictObject({ rms: z.number(), roots: z.number(), degree: z.number() }).optional(),
  steep: z.literal(true).optional(),
})

export const factsSchema = z.strictObject({
  inputs: z.record(z.string(), domain),
  dims: z.record(z.string(), extent),
  attrs: z.record(z.string(), z.strictObject({ fills: z.string() })),
  results: z.record(z.string(), accuracy),
  /** Dimensions that loops run over. */
  loops: z.array(z.string()),
  /** Those of them that are dimensions of outputs which reductions run across. */
  across: z.array(z.string()).optional(),
})

export type ManifestFacts = z.infer<typeof factsSchema>

/** Facts about a kernel's arguments and results. */
export function manifestFacts(kernel: Kernel | TemplateKernel): ManifestFacts {
  const { inputs, dims, attrs } = kernel.facts ?? noFacts
  // Plain copies: the types of the IR are read-only, those of zod are not.
  const across = acrossDims(kernel)
  const own = { inputs, dims, attrs, results: accuracyOf(kernel), loops: loopDims(kernel) }
  return factsSchema.parse(structuredClone(across.length === 0 ? own : { ...own, across }))
}
