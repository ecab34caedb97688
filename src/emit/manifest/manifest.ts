/**
 * The manifest: contents of `generated/`, in the terms that the runtime needs to launch them. Written by `heddle gen`, read by the build and the
 * runtime. Launchers take buffers, dims and attrs in exactly the order listed here.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type ErrorCode, usageError } from '../../errors.js'
import { dtypes } from '../../ir/dtype.js'
import { tunedMatmulSchema } from '../../schedule/tuning/library.js'
import { factsSchema } from './facts.js'
import { plannedGraphsSchema } from './graphs.js'
import { layoutFormSchema } from './layout_forms.js'
import { shippedManifest } from './shipped.js'

const dtype = z.enum(dtypes)
const extent = z.number().int().positive()

export const kernelEntrySchema = z.strictObject({
  /** The instance key: `layer_norm__f16`. It is a C++ name in the registry of a library. */
  key: z.string().regex(/^[A-Za-z_]\w*$/),
  op: z.string(),
  types: z.record(z.string(), dtype),
  fixedDims: z.record(z.string(), z.number().int().positive()),
  /** Path of the generated source below `generated/`: a manifest cannot cause other files to be read or compiled. */
  file: z.string().regex(/^(?!.*(^|\/)\.\.(\/|$))[^/\\\0][^\\\0]*$/, 'expected a path below the folder of the manifest'),
  /** sha256 of the generated source. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  buffers: z.array(
    z.strictObject({
      name: z.string(),
      access: z.enum(['in', 'out']),
      dtype,
      dims: z.array(z.string()),
      layout: z.string(),
      /** For an output: the input whose memory it shares, and of which it replaces elements. */
      updates: z.string().optional(),
      /** For an input: it is read as a constant, so no step of a program that runs the kernel may write it. */
      constant: z.literal(true).optional(),
    }),
  ),
  dims: z.array(z.string()),
  attrs: z.array(z.strictObject({ name: z.string(), type: z.enum(['f32', 'i32']), default: z.number() })),
  /** Facts that tests and measurements need about the arguments and the error of results. */
  facts: factsSchema.optional(),
  /** For a template kernel: the sizes for which its tiles were measured. At these it replaces a library call that computes the same. */
  measured: z
    .array(
      z.strictObject({
        architecture: z.string(),
        length: extent,
        depth: extent.optional(),
        fromRows: extent,
        toRows: extent.optional(),
      }),
    )
    .optional(),
  /** Kernels in the file, each with its schedule, in the words of `heddle inspect`. */
  variants: z.array(z.strictObject({ kernel: z.string(), schedule: z.string(), when: z.string() })),
})

export const manifestSchema = z.strictObject({
  version: z.literal(1),
  kernels: z.array(kernelEntrySchema),
  /** Results of each fusion plan for the graphs it groups: plan name, then graph name. */
  plans: plannedGraphsSchema.optional(),
  /** Layouts of the kernels' buffers by name, except row-major ones, with the memory that each needs. */
  layouts: z.record(z.string(), layoutFormSchema).optional(),
  /** Measured algorithms of matmul libraries, as in the tuning file. */
  matmuls: z.array(tunedMatmulSchema).optional(),
})

export type KernelEntry = z.infer<typeof kernelEntrySchema>
export type Manifest = z.infer<typeof manifestSchema>

/**
 * Parses a manifest; `path` is used in messages.
 * @param shipped digest of a source that is known to be a valid manifest
 * @throws usage `code` for anything else
 */
export function parseManifest(
  text: string,
  path: string,
  code: ErrorCode = 'manifest.invalid',
  shipped = shippedManifest,
): Manifest {
  const refuse = (what: string, cause?: unknown) =>
    usageError(code, `${path} is not a manifest: ${what}`, { hint: 'run `heddle gen` again', cause })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw refuse('it is not JSON', cause)
  }
  if (isShipped(shipped, text, value)) return value
  const parsed = manifestSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refuse(`${issue?.path.map(String).join('.') || 'the file'}: ${issue?.message ?? 'is invalid'}`)
}

/** True if a manifest is the one shipped with this code, which needs no schema. */
const isShipped = (shipped: string | undefined, text: string, _value: unknown): _value is Manifest =>
  shipped !== undefined && createHash('sha256').update(text).digest('hex') === shipped
