/**
 * Data of a page of `heddle explore`: the contract between the commands that compute it and the script of the page, which has no other
 * input. Also printed by `heddle explore --json` and served at `/data.json`. Fields are added, not removed.
 */
import { z } from 'zod'

export const views = ['plan', 'kernel', 'bench', 'generation', 'history'] as const
export type View = (typeof views)[number]

const names = z.array(z.string())
const point = z.strictObject({ x: z.number(), y: z.number() })

/** Per line of a text: the spec lines, `file:line`, that it was compiled from. Empty if unknown for the text. */
const places = z.array(names)

/** A step of a plan, with its position in the drawing in pixels: `x`, `y` are its upper left corner. */
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
  /** Predicted time. */
  microseconds: z.number(),
  /** Measured microseconds per launch, the mean of all launches of the kernel in a pass; missing without a measurement. */
  measured: z.number().optional(),
})

/** A value from one step to another. `from` and `to` are indices of boxes. */
const edge = z.strictObject({
  from: z.number().int(),
  to: z.number().int(),
  points: z.array(point),
  producer: z.string(),
  consumer: z.string(),
  legal: z.boolean(),
  /** Predicted microseconds saved by one kernel instead of two; missing if fusion is illegal. */
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

const planView = z.strictObject({
  graph: z.string(),
  setting: z.string(),
  plans: z.array(plan).min(1),
  /** Names of the plans that are drawn first; missing if all are. */
  shown: names.optional(),
})

const kernel = z.strictObject({
  key: z.string(),
  /** Source location, `file:line`. */
  source: z.string(),
  body: z.string(),
  /** Other source texts: bodies of other ops of its group, and functions that bodies call. `source` is the first line. */
  others: z.array(z.strictObject({ source: z.string(), text: z.string() })),
  /** The IR, followed by the result of each pass. */
  stages: z.array(z.strictObject({ pass: z.string(), text: z.string(), places })).min(1),
  cuda: z.strictObject({ file: z.string(), text: z.string(), places }),
  /** Machine code, with the lines of CUDA source (from 1) for each of its lines; or the reason why it is missing. */
  sass: z.union([
    z.strictObject({
      from: z.string(),
      kernels: z.array(z.strictObject({ kernel: z.string(), text: z.string(), lines: z.array(z.array(z.number().int())) })),
    }),
    z.strictObject({ missing: z.string() }),
  ]),
  /** Names of tensors, attributes and values of the kernel, shared by its texts. */
  names,
  schedules: z.array(z.strictObject({ kernel: z.string(), schedule: z.string(), when: z.string() })),
  /** Performance warnings of the schedule about the body. */
  notes: names,
  /** Resources reported by the compiler, if known. */
  resources: z.array(
    z.strictObject({
      kernel: z.string(),
      arch: z.string(),
      registers: z.number(),
      sharedBytes: z.number(),
      stackBytes: z.number(),
      spillBytes: z.number(),
      /** Largest number of threads of a block, if known. */
      threads: z.number().optional(),
      /** Occupancy of GPUs with known limits: blocks per multiprocessor, share of its warps (1 is all), and limiting resources. */
      occupancy: z.strictObject({ blocks: z.number(), share: z.number(), limitedBy: names }).optional(),
    }),
  ),
  resourcesFrom: z.strictObject({
    from: z.enum(['record', 'build', 'nvcc', 'unknown']),
    /** The compiler, or the reason why nothing is known. */
    detail: z.string(),
    /** True if launches may use dynamic shared memory, so that fewer blocks may fit. */
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

/** A kernel of a measured pass: its number of runs, and their total milliseconds. */
const share = z.strictObject({ kernel: z.string(), count: z.number(), milliseconds: z.number() })

const row = z.strictObject({
  /** A plan, or the mode of a peer. */
  name: z.string(),
  peer: z.boolean(),
  shape: z.string(),
  milliseconds: summary,
  floor: z.number().optional(),
  /** Milliseconds by the cost model. */
  predicted: z.number().optional(),
  profile: z.array(share).optional(),
})

/** A point of the roofline chart: FLOP per byte, FLOP per second. */
const dot = z.strictObject({ name: z.string(), of: z.string(), peer: z.boolean(), intensity: z.number(), attained: z.number() })

const table = z.strictObject({ title: z.string(), columns: names, rows: z.array(names) })

const run = z.strictObject({
  title: z.string(),
  /** File of its numbers; missing for a run that has just ended. */
  file: z.string().optional(),
  facts: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  notes: names,
  rows: z.array(row),
  /** Largest bytes and FLOP per second; missing if the device's limits are unknown. */
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
  /** Probability of equally different ranks by chance; missing if a run has no samples. */
  chance: z.number().optional(),
  verdict: z.enum(['slower', 'faster', 'same', 'not tested']),
})

const bench = z.strictObject({
  runs: z.array(run).min(1),
  /** Comparison of the second run with the first; empty for a single run. */
  comparisons: z.array(comparison),
  /** Largest ratio of medians without a difference. */
  limit: z.number(),
  /** Steps whose time is both predicted and measured, in microseconds of one launch. */
  predictions: z.array(z.strictObject({ name: z.string(), plan: z.string(), predicted: z.number(), measured: z.number() })),
})

const timeline = z.strictObject({
  title: z.string(),
  /** True if spans are in execution order; otherwise the longest is first. */
  ordered: z.boolean(),
  source: z.enum(['predicted', 'measured']),
  /** Microseconds of the whole step, including time between spans. */
  total: z.number(),
  spans: z.array(z.strictObject({ name: z.string(), kind: z.string(), count: z.number(), microseconds: z.number() })),
})

/** Runs of a suite on one device, the oldest first. */
const history = z.strictObject({
  title: z.string(),
  facts: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  /** Commit, or time, of each run, and further facts of it. */
  runs: z.array(z.strictObject({ label: z.string(), about: z.string() })),
  series: z.array(
    z.strictObject({
      plan: z.string(),
      /** Type and shape: series of one panel. */
      panel: z.string(),
      /** Microseconds; `run` is an index of `runs`. */
      points: z.array(z.strictObject({ run: z.number().int(), median: z.number(), low: z.number(), high: z.number() })),
      /** Runs from which on times differ. */
      changes: z.array(z.strictObject({ run: z.number().int(), verdict: z.enum(['slower', 'faster']), ratio: z.number() })),
    }),
  ),
  /** Changes in words, the newest first. */
  changes: z.array(z.strictObject({ verdict: z.enum(['slower', 'faster']), text: z.string(), by: z.string() })),
})

/** State of a live page: of the last change of the specs. */
const live = z.strictObject({
  state: z.enum(['working', 'ready', 'failed']),
  /** Current work, or the results of checks and the errors of specs. */
  text: z.string(),
  /** Number of the page's data: another number is other data. */
  version: z.number().int(),
})

export const explorerSchema = z.strictObject({
  version: z.literal(1),
  title: z.string(),
  /** Command line that reproduces the page. */
  command: z.string(),
  opens: z.enum(views),
  plan: planView.optional(),
  kernels: z.array(kernel),
  bench: bench.optional(),
  timelines: z.array(timeline),
  history: z.array(history).optional(),
  /** Present if the page follows a server. */
  live: live.optional(),
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
export type LiveState = z.infer<typeof live>
export type HistoryView = z.infer<typeof history>
export type Timeline = z.infer<typeof timeline>
