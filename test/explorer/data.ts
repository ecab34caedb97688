/** Data of a page with every view, from chosen numbers: a plan of five steps and one of three, a kernel, runs with known differences. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { kernelView } from '../../src/explorer/kernel_view.js'
import { type ExplorerData, explorerSchema } from '../../src/explorer/model.js'
import { drawPlan } from '../../src/explorer/plan_view.js'
import { type AnyRun, readRun } from '../../src/explorer/runs/read.js'
import { benchView, measuredKernels, predictedTimeline, runTimelines } from '../../src/explorer/runs/view.js'
import type { PlanEdge, PlanReport, PlanStep } from '../../src/search/explain.js'
import { benchResult, peerTimes, planTimes } from '../bench/results.js'

export const step = (
  kernel: string,
  nodes: readonly string[],
  microseconds: number,
  kind: PlanStep['kind'] = 'row program',
): PlanStep => ({
  kind,
  kernel,
  nodes,
  covers: nodes,
  bytesRead: 4e6,
  bytesWritten: 2e6,
  flops: kind === 'row program' ? 0 : 9e9,
  rereads: false,
  launches: 1,
  microseconds,
  parts: [],
})

export const edge = (producer: string, consumer: string, gain?: number): PlanEdge => ({
  producer,
  consumer,
  legal: gain !== undefined,
  gain,
  reason:
    gain === undefined
      ? 'nodes scores and projection cannot be one kernel: a kernel holds one matmul'
      : 'legal, the plan leaves it',
})

export function report(plan: string, steps: readonly PlanStep[], edges: readonly PlanEdge[]): PlanReport {
  const sum = (of: (step: PlanStep) => number): number => steps.reduce((total, each) => total + of(each), 0)
  const totals = {
    kernels: steps.length,
    matmuls: 0,
    launches: steps.length,
    bytes: sum(({ bytesRead, bytesWritten }) => bytesRead + bytesWritten),
    flops: sum(({ flops }) => flops),
    microseconds: sum(({ microseconds }) => microseconds),
  }
  return { plan, graph: 'layer', steps, totals, edges }
}

export const unfused = report(
  'unfused',
  [
    step('product', ['product'], 30, 'library matmul'),
    step('add_bias', ['bias'], 4),
    step('gelu', ['activation'], 13),
    step('add', ['residual'], 5.6),
    step('layer_norm', ['norm'], 4.2),
  ],
  [
    edge('product', 'bias', 3),
    edge('bias', 'activation', 8),
    edge('activation', 'residual', 4),
    edge('residual', 'norm', 3),
    edge('product', 'residual'),
  ],
)

const repository = fileURLToPath(new URL('../..', import.meta.url))

const long = ['product', 'bias', 'activation', 'aNodeWithAVeryLongNameThatNoBoxCanHoldOnOneLine', 'another']
export const fused = report(
  'fused',
  [
    step('matmul_bias_gelu_and_more_than_fits_in_a_box', long, 31, 'matmul'),
    step('attention', ['residual'], 9, 'attention'),
    step('layer_norm', ['norm'], 4.2),
  ],
  [edge('activation', 'residual'), edge('residual', 'norm')],
)

const norm = (): ExplorerData['kernels'][number] => {
  const read = (path: string): string => readFileSync(join(repository, path), 'utf8')
  const source = read('specs/ops/layer_norm.ts')
  const header = 'kernel layer_norm<T: f32 | f16 | bf16>(m, n)\nfor m1 < m\n'
  const ir = [
    '  row v: f32 = [c < n: x[m1, c]]',
    '  let sum0: f32 = sum(c1 < n: v[c1])',
    '  let mean: f32 = sum0 / toFloat(n)',
    '  let sum1: f32 = sum(c2 < n: square(v[c2] - mean))',
    '  let variance: f32 = sum1 / toFloat(n)',
    '  y[m1, c3] = (v[c3] - mean) * rsqrt(variance + eps) * gamma[c3] + beta[c3] for c3 < n',
  ]
  const lineOf = (said: string): string =>
    `specs/ops/layer_norm.ts:${source.split('\n').findIndex((line) => line.includes(said)) + 1}`
  const [v, mean, variance, y] = ['const v =', 'const mean =', 'const variance =', 'return {'].map(lineOf)
  /** Source lines as the compiler traces them for this op, which test/emit/traced.test.ts tests. */
  const placesOf = (text: string): string[][] =>
    text.split('\n').map((line) => {
      if (/sum0|float mean/.test(line)) return [mean ?? '']
      if (/sum1|let variance|float variance/.test(line)) return [variance ?? '']
      if (/row v|load_row.*x,/.test(line)) return [v ?? '']
      return /y\[m1|y_c.* =|row_rsqrt/.test(line) ? [y ?? ''] : []
    })
  const simplified = [...ir, '  let row_rsqrt = rsqrt(variance + eps)'].join('\n')
  const cuda = read('generated/cuda/layer_norm__f16.cu')
  const add = cuda.split('\n').findIndex((line) => line.includes('sum1_lanes.add('))
  const resource = {
    kernel: 'layer_norm_kept<WarpTeam<32, 4>, 4>',
    arch: 'sm_90',
    threads: 128,
    registers: 64,
    sharedBytes: 0,
    stackBytes: 0,
  }
  return kernelView(
    {
      key: 'layer_norm__f16',
      source: { file: 'specs/ops/layer_norm.ts', line: 4 },
      body: source.slice(source.indexOf('export const')),
      ir: header + ir.join('\n'),
      others: [],
      cuda: { file: 'generated/cuda/layer_norm__f16.cu', text: cuda, places: placesOf(cuda) },
      sass: {
        from: 'nvdisasm, release 13.0, sm_90',
        kernels: [
          {
            kernel: 'layer_norm_kept<WarpTeam<32, 4>, 4>',
            text: '    LDC R1, c[0x0][0x28] ;\n    FADD R7, R7, R9 ;\n.L_x_1:\n    EXIT ;',
            lines: [[], [add + 1], [], []],
          },
          { kernel: 'layer_norm_reread<BlockTeam<512>>', text: '    EXIT ;', lines: [[]] },
        ],
      },
      schedules: [
        { kernel: 'layer_norm__f16_warp', schedule: 'a warp a row, 4 rows a block', when: 'rows of at most 256 elements' },
      ],
      notes: ['a note on what it costs'],
      resources: [{ ...resource, spillStoreBytes: 0, spillLoadBytes: 0 }],
      resourcesFrom: { from: 'record', detail: 'release 13.0', dynamicShared: false },
    },
    ['x', 'gamma', 'beta', 'y', 'eps', 'v', 'sum0', 'mean', 'sum1', 'variance'],
    [
      { pass: 'lowering or deriving', text: header + ir.join('\n'), places: placesOf(header + ir.join('\n')) },
      { pass: 'simplifying, rows kept', text: simplified, places: placesOf(simplified) },
    ],
  )
}

/** Samples around a median, each a little different. */
export const samples = (median: number): number[] => Array.from({ length: 20 }, (_, i) => median * (1 + (i - 9.5) / 1000))

const summary = (median: number) => ({ median, low: 0.98 * median, high: 1.03 * median, best: 0.97 * median, samples: 20 })

const device = { kind: 'cuda', name: 'NVIDIA H200' }

const timed = (plan: string, median: number, predicted: number, profile: readonly object[]): object => ({
  plan,
  dims: { batch: 32, seq: 128 },
  samples: samples(median),
  milliseconds: summary(median),
  launches: profile.length,
  captured: true,
  workload: { bytes: 6e7, flops: 3e10 },
  floor: { milliseconds: 0.05, bound: 'arithmetic' },
  fraction: 0.05 / median,
  predicted,
  profile,
})

/** A run on the graph that the plans rewrite, in the format of `heddle bench layer --json`. */
export const target = (fusedMedian: number): AnyRun =>
  readRun(
    JSON.stringify({
      subject: 'layer',
      kind: 'graph',
      dtype: 'f16',
      device,
      ceilings: { bandwidth: 4e12, peak: { f16: 800e12 }, measured: true },
      sizes: [
        [
          timed('unfused', 0.061, 0.057, [
            { kernel: 'matmul product', count: 1, milliseconds: 0.028 },
            { kernel: 'gelu__f16', count: 1, milliseconds: 0.015 },
            { kernel: 'layer_norm__f16', count: 1, milliseconds: 0.005 },
          ]),
          timed('fused', fusedMedian, 0.044, [
            { kernel: 'matmul_bias_gelu_and_more_than_fits_in_a_box__f16', count: 1, milliseconds: 0.034 },
            { kernel: 'attention__f16', count: 1, milliseconds: 0.011 },
          ]),
        ],
      ],
    }),
    'layer.json',
  )

const llama = readRun(
  JSON.stringify({
    device,
    shape: '7b',
    dtype: 'f16',
    weights: 'random',
    plans: [
      {
        plan: 'best-llama',
        times: [
          {
            what: 'step',
            plan: 'best-llama',
            batch: 1,
            seq: 512,
            milliseconds: summary(4),
            samples: samples(4),
            tokensPerSecond: 250,
            launches: 226,
            captured: true,
            profile: [
              { kernel: 'matmul gateUp', count: 32, milliseconds: 1.9 },
              { kernel: 'decode_attention__f16', count: 32, milliseconds: 0.4 },
              { kernel: 'rms_norm__f16', count: 65, milliseconds: 0.2 },
            ],
          },
        ],
      },
    ],
  }),
  'llama.json',
)

const encoder = readRun(
  JSON.stringify(
    benchResult(
      [
        planTimes('unfused', [1, 32], 0.8, 0.04, [{ kernel: 'gelu__f16', count: 12, milliseconds: 1.8 }]),
        planTimes('best-encoder', [1, 32], 0.4, 0.04, [
          { kernel: 'bias_gelu__f16', count: 12, milliseconds: 0.6 },
          { kernel: 'matmul fc1', count: 12, milliseconds: 0.3 },
        ]),
        planTimes('unfused', [32, 128], 8, 0.9, undefined),
      ],
      [
        peerTimes('graph', [1, 32], 0.6),
        peerTimes('compile, reduce-overhead', [1, 32], 0.5),
        peerTimes('packed', [32, 128], undefined),
      ],
    ),
  ),
  'encoder.json',
)

const common = { version: 1, title: 'heddle explore: layer', command: 'heddle explore layer --plan fused' } as const
const limit = 1.05

/** Plans, a kernel, and two runs over the plans' graph, of which the second is a third slower under `fused`. */
export function graphPage(): ExplorerData {
  const runs = [
    { file: 'before.json', any: target(0.045) },
    { file: 'now.json', any: target(0.06) },
  ]
  const reports = [unfused, fused]
  const bench = benchView(runs, reports, limit)
  return explorerSchema.parse({
    ...common,
    opens: 'plan',
    plan: {
      graph: 'layer',
      setting: 'layer, 32x128 f16, predicted for h200',
      plans: reports.map((each) => drawPlan(each, measuredKernels(bench?.runs ?? [], each.plan))),
    },
    kernels: [norm()],
    bench,
    timelines: [...runTimelines([{ any: llama }]), ...reports.map(predictedTimeline)],
  })
}

/** The page of `heddle bench encoder --report`, made in the same way. */
export const encoderPage = (): ExplorerData =>
  explorerSchema.parse({ ...common, opens: 'bench', kernels: [], bench: benchView([{ any: encoder }], [], limit), timelines: [] })
