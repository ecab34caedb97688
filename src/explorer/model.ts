/**
 * What a page of `heddle explore` shows, as data: the contract between the commands that compute it and the script of the page, which is
 * given nothing else. It is also what `heddle explore --json` prints and what the server answers at `/data.json`. Fields are added, not
 * removed.
 */
import { z } from 'zod'

export const views = ['plan', 'kernel', 'bench', 'generation'] as const
export type View = (typeof views)[number]

const names = z.array(z.string())
const point = z.strictObject({ x: z.number(), y: z.number() })

/** By line of a text: lines of specs, `file:line`, that it was made of. Empty where that is not known of the text. */
const places = z.array(names)

/** A step of a plan, with its place in the drawing in pixels: `x`, `y` are its upper left corner. */
const box = z.strictObject({
  ...point.shape,
  width: z.number(),
  height: z.number(),
  kind: z.string(),
  kernel: z.string(),
  nodes: names,
  covers: names,
  bytes: z.number(),
  flops: z.number(),
  rereads: z.boolean(),
  /** Predicted. */
  microseconds: z.number(),
  /** Of one launch, the mean of all launches of the kernel in a measured pass; missing where no measurement names it. */
  measured: z.number().optional(),
})

/** What one step computes and another reads. `from` and `to` count boxes. */
const edge = z.strictObject({
  from: z.number().int(),
  to: z.number().int(),
  points: z.array(point),
  producer: z.string(),
  consumer: z.string(),
  legal: z.boolean(),
  /** Predicted microseconds that one kernel instead of two saves; missing where that is not legal. */
  gain: z.number().optional(),
  reason: z.string(),
})

const plan = z.strictObject({
  name: z.string(),
  width: z.number(),
  height: z.number(),
  launches: z.number(),
  bytes: z.number(),
  flops: z.number(),
  microseconds: z.number(),
  boxes: z.array(box),
  edges: z.array(edge),
})

const planView = z.strictObject({ graph: z.string(), setting: z.string(), plans: z.array(plan).min(1) })

const kernel = z.strictObject({
  key: z.string(),
  /** Where it was written, `file:line`. */
  source: z.string(),
  body: z.string(),
  /** What else it was made of: bodies of other ops of its group, and functions that bodies call. `source` is of the first line. */
  others: z.array(z.strictObject({ source: z.string(), text: z.string() })),
  /** The IR, and then what each pass leaves. */
  stages: z.array(z.strictObject({ pass: z.string(), text: z.string(), places })).min(1),
  cuda: z.strictObject({ file: z.string(), text: z.string(), places }),
  /** Machine code with the lines of the CUDA text, from 1, that each of its lines was made of; or why there is none. */
  sass: z.union([
    z.strictObject({
      from: z.string(),
      kernels: z.array(z.strictObject({ kernel: z.string(), text: z.string(), lines: z.array(z.array(z.number().int())) })),
    }),
    z.strictObject({ missing: z.string() }),
  ]),
  /** Tensors, attributes and values of the kernel: what the texts call by the same names. */
  names,
  schedules: z.array(z.strictObject({ kernel: z.string(), schedule: z.string(), when: z.string() })),
  /** What the schedule says of costs that the body brings. */
  notes: names,
  /** What the compiler reported, where that is known. */
  resources: z.array(
    z.strictObject({
      kernel: z.string(),
      arch: z.string(),
      registers: z.number(),
      sharedBytes: z.number(),
      stackBytes: z.number(),
      spillBytes: z.number(),
      /** The most of a block, where they are known. */
      threads: z.number().optional(),
      /** Of the GPUs whose limits are known: blocks of a multiprocessor, its warps that they are (1 is all), and what allows no more. */
      occupancy: z.strictObject({ blocks: z.number(), share: z.number(), limitedBy: names }).optional(),
    }),
  ),
  resourcesFrom: z.strictObject({
    from: z.enum(['record', 'build', 'nvcc', 'unknown']),
    /** The compiler; or why nothing is known. */
    detail: z.string(),
    /** True if launches may give blocks more shared memory, so that there is room for fewer. */
    dynamicShared: z.boolean(),
  }),
})

const summary = z.strictObject({
  median: z.number(),
  low: z.number(),
  high: z.number(),
  best: z.number(),
  samples: z.number(),
})

/** A kernel of a measured pass: how often it runs, and milliseconds of all its runs. */
const share = z.strictObject({ kernel: z.string(), count: z.number(), milliseconds: z.number() })

const row = z.strictObject({
  /** A plan, or the way of a peer. */
  name: z.string(),
  peer: z.boolean(),
  shape: z.string(),
  milliseconds: summary,
  floor: z.number().optional(),
  /** By the cost model, in milliseconds. */
  predicted: z.number().optional(),
  profile: z.array(share).optional(),
})

/** A place under the roof: FLOP per byte, FLOP a second. */
const dot = z.strictObject({ name: z.string(), of: z.string(), peer: z.boolean(), intensity: z.number(), attained: z.number() })

const table = z.strictObject({ title: z.string(), columns: names, rows: z.array(names) })

const run = z.strictObject({
  title: z.string(),
  /** Where its numbers were read; missing of a run that has just ended. */
  file: z.string().optional(),
  facts: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  notes: names,
  rows: z.array(row),
  /** Bytes and FLOP a second at most; missing where the device's limits are not known. */
  roof: z.strictObject({ bandwidth: z.number(), peak: z.number() }).optional(),
  dots: z.array(dot),
  tables: z.array(table),
})

const comparison = z.strictObject({
  name: z.string(),
  shape: z.string(),
  /** Medians in milliseconds. */
  before: z.number(),
  now: z.number(),
  ratio: z.number(),
  /** How likely ranks as different are by chance; missing where a run does not hold its samples. */
  chance: z.number().optional(),
  verdict: z.enum(['slower', 'faster', 'same', 'not tested']),
})

const bench = z.strictObject({
  runs: z.array(run).min(1),
  /** The second run beside the first one; empty of a single run. */
  comparisons: z.array(comparison),
  /** Ratio of medians that is no difference yet. */
  limit: z.number(),
  /** Steps whose time is both predicted and measured, in microseconds of one launch. */
  predictions: z.array(z.strictObject({ name: z.string(), plan: z.string(), predicted: z.number(), measured: z.number() })),
})

const timeline = z.strictObject({
  title: z.string(),
  /** True if spans stand in the order in which they run; otherwise the longest is first. */
  ordered: z.boolean(),
  source: z.enum(['predicted', 'measured']),
  /** Microseconds of the whole step; more than its spans where something runs between them. */
  total: z.number(),
  spans: z.array(z.strictObject({ name: z.string(), kind: z.string(), count: z.number(), microseconds: z.number() })),
})

export const explorerSchema = z.strictObject({
  version: z.literal(1),
  title: z.string(),
  /** The command line that makes the page again. */
  command: z.string(),
  opens: z.enum(views),
  plan: planView.optional(),
  kernels: z.array(kernel),
  bench: bench.optional(),
  timelines: z.array(timeline),
})

export type ExplorerData = z.infer<typeof explorerSchema>
export type PlanView = z.infer<typeof planView>
export type DrawnPlan = z.infer<typeof plan>
export type Box = z.infer<typeof box>
export type Edge = z.infer<typeof edge>
export type KernelView = z.infer<typeof kernel>
export type BenchView = z.infer<typeof bench>
export type Run = z.infer<typeof run>
export type RunRow = z.infer<typeof row>
export type Dot = z.infer<typeof dot>
export type RunTable = z.infer<typeof table>
export type RunComparison = z.infer<typeof comparison>
export type Timeline = z.infer<typeof timeline>
