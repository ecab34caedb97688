/**
 * Files of `heddle bench`: output of `--json` for an encoder, decoding, a LLaMA or a named kernel, graph or program, and files of `--save`.
 * The kind follows from the content. Schemas cover only fields that the page shows, since fields are added to these files.
 */
import { z } from 'zod'
import { usageError } from '../../errors.js'
import { dtypes } from '../../ir/dtype.js'

const dims = z.record(z.string(), z.number())
const number = z.number()
const summary = z.object({ median: number, low: number, high: number, best: number, samples: number })
const share = z.object({ kernel: z.string(), count: number, milliseconds: number })
const profile = z.array(share).optional()
const workload = z.object({ bytes: number, flops: number.optional() })
const floor = z.object({ milliseconds: number, bound: z.enum(['arithmetic', 'bandwidth']) }).optional()
const device = z.object({ kind: z.string(), name: z.string(), cacheBytes: number.optional() })
const ceilings = z
  .object({
    bandwidth: number,
    peak: z.partialRecord(z.enum(['f32', 'f16', 'bf16', 'i8']), number),
    measured: z.boolean().optional(),
  })
  .optional()
const dtype = z.enum(['f32', 'f16', 'bf16'])
const memory = z.object({
  arenaBytes: number,
  weightBytes: number,
  peakBytes: number,
  twoLargestBytes: number,
  ratio: number,
})
const shape = { batch: number, seq: number }
const peerTime = { way: z.string(), milliseconds: summary.optional(), error: z.string().optional() }
const peersOf = <T extends z.ZodType>(times: T) =>
  z.object({ framework: z.string(), about: z.record(z.string(), z.string()), times, problem: z.string().optional() }).optional()

const encoder = z.object({
  device,
  ceilings,
  config: z.string(),
  dtype,
  lengths: z.string(),
  results: z.array(
    z.object({
      ...shape,
      plan: z.string(),
      meanLength: number,
      milliseconds: summary,
      kernels: number,
      matmuls: number,
      captured: z.boolean(),
      memory,
      workload: workload.required(),
      floor,
      fraction: number.optional(),
      rotation: z.object({ passes: number, bytes: number, evicts: z.boolean().optional() }),
      profile,
    }),
  ),
  peers: peersOf(z.array(z.object({ ...shape, ...peerTime }))),
  ratios: z.array(z.object({ ...shape, plan: z.string(), way: z.string(), ratio: number })),
})

const target = z.object({
  subject: z.string(),
  kind: z.enum(['kernel', 'graph', 'program']),
  dtype,
  device,
  ceilings,
  sizes: z.array(
    z.array(
      z.object({
        plan: z.string(),
        dims,
        samples: z.array(number).min(1),
        milliseconds: summary,
        launches: number,
        captured: z.boolean(),
        workload,
        floor,
        fraction: number.optional(),
        predicted: number.optional(),
        profile,
      }),
    ),
  ),
})

const decoding = z.object({
  device,
  results: z.array(
    z.object({
      plan: z.string(),
      batch: number,
      width: number,
      steps: number,
      milliseconds: summary,
      step: summary,
      kernels: number,
      matmuls: number,
      captured: z.boolean(),
      profile,
    }),
  ),
})

const llama = z.object({
  device,
  shape: z.string(),
  dtype,
  weights: z.string(),
  plans: z.array(
    z.object({
      plan: z.string(),
      times: z.array(
        z.object({
          ...shape,
          what: z.enum(['step', 'prompt']),
          plan: z.string(),
          milliseconds: summary,
          samples: z.array(number).min(1),
          device: summary.optional(),
          tokensPerSecond: number,
          floor,
          fraction: number.optional(),
          launches: number,
          captured: z.boolean(),
          profile,
        }),
      ),
    }),
  ),
  peers: peersOf(z.array(z.object({ ...shape, ...peerTime, what: z.enum(['step', 'prompt']), products: z.string() }))),
})

const saved = z.object({
  version: z.literal(1),
  subject: z.string(),
  device: z.string(),
  dtype: z.enum(dtypes),
  results: z.array(z.object({ plan: z.string(), dims, samples: z.array(number).min(1) })),
})

/** Runs of one subject on several machines, as `bench NAME --on a,b --json` prints them. Machines that failed have no result. */
const machines = z.object({ machines: z.array(z.object({ on: z.string(), result: target.optional() })) })

export type MachinesRun = z.infer<typeof machines>
export type EncoderRun = z.infer<typeof encoder>
export type TargetRun = z.infer<typeof target>
export type DecodingRun = z.infer<typeof decoding>
export type LlamaRun = z.infer<typeof llama>
export type SavedRun = z.infer<typeof saved>

export type AnyRun =
  | { readonly kind: 'encoder'; readonly run: EncoderRun }
  | { readonly kind: 'target'; readonly run: TargetRun }
  | { readonly kind: 'decoding'; readonly run: DecodingRun }
  | { readonly kind: 'llama'; readonly run: LlamaRun }
  | { readonly kind: 'saved'; readonly run: SavedRun }
  | { readonly kind: 'machines'; readonly run: MachinesRun }

/** Replaces null by undefined: JSON has neither infinities nor undefined, and prints them as null. */
const withoutNull = (_: string, value: unknown): unknown => (value === null ? undefined : value)

/** @throws usage `explore.bench` for anything but a result of `heddle bench` */
export function readRun(text: string, file: string): AnyRun {
  let parsed: unknown
  try {
    parsed = JSON.parse(text, withoutNull)
  } catch (cause) {
    throw refused(file, 'is not JSON', cause)
  }
  // A packed bench wraps its result.
  if (typeof parsed === 'object' && parsed !== null && 'heddle' in parsed && 'result' in parsed) parsed = parsed.result
  const has = (field: string): boolean => typeof parsed === 'object' && parsed !== null && field in parsed
  try {
    if (has('machines')) return { kind: 'machines', run: machines.parse(parsed) }
    if (has('version')) return { kind: 'saved', run: saved.parse(parsed) }
    if (has('sizes')) return { kind: 'target', run: target.parse(parsed) }
    if (has('plans')) return { kind: 'llama', run: llama.parse(parsed) }
    if (has('config')) return { kind: 'encoder', run: encoder.parse(parsed) }
    return { kind: 'decoding', run: decoding.parse(parsed) }
  } catch (cause) {
    const [issue] = cause instanceof z.ZodError ? cause.issues : []
    const where = issue === undefined ? '' : `: ${issue.path.join('.') || 'the file'}: ${issue.message}`
    throw refused(file, `is not a result of heddle bench${where}`, cause)
  }
}

const refused = (file: string, problem: string, cause: unknown) =>
  usageError('explore.bench', `${file} ${problem}`, {
    hint: 'give a file that `heddle bench ... --json` printed, or that `--save` or a packed bench wrote',
    cause,
  })
