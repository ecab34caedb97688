/** A page of a history: two plans over fourteen runs, of which one is slower since the tenth. */
import type { HistoryEntry } from '../../src/bench/history/entry.js'
import { changesOf, seriesOf } from '../../src/bench/history/regressions.js'
import { type ExplorerData, explorerSchema } from '../../src/explorer/model.js'
import { historyViews } from '../../src/explorer/runs/history.js'
import { normal, random } from '../../src/verify/random.js'

const runs = 14

export function entries(): HistoryEntry[] {
  const next = random('history of a page')
  const samples = (median: number): number[] => Array.from({ length: 9 }, () => median * Math.exp(0.01 * normal(next)))
  return Array.from({ length: runs }, (_, i): HistoryEntry => {
    const places = [16, 4096].flatMap((m) => (['f32', 'f16'] as const).map((dtype) => ({ m, dtype })))
    return {
      version: 1,
      at: `2026-01-${String(i + 1).padStart(2, '0')}T08:00:00.000Z`,
      commit: { id: (i + 10).toString(16).repeat(40).slice(0, 40), changed: i === runs - 1 },
      versions: { heddle: '0.1.0', node: '20.20.2' },
      suite: 'feed_forward',
      subject: 'feed_forward',
      file: 'bench.ts',
      clock: 'cuda',
      device: { name: 'cuda NVIDIA H100', facts: { driver: 13000, multiprocessors: 132 } },
      state: { smMHz: 1755 },
      cells: places.flatMap(({ m, dtype }) =>
        ['unfused', 'fused'].map((plan) => {
          const time = (m / 4096) * (plan === 'fused' ? 0.1 : 0.13) * (plan === 'fused' && i >= 9 ? 1.2 : 1) + 0.01
          return { plan, dtype, dims: { m, n: 1024 }, samples: samples(time), kernels: [['matmul_bias_gelu__f16', 1, time]] }
        }),
      ),
    }
  })
}

export const historyPage = (): ExplorerData =>
  explorerSchema.parse({
    version: 1,
    title: 'heddle bench history',
    command: 'heddle bench history',
    opens: 'history',
    kernels: [],
    timelines: [],
    history: historyViews(entries(), changesOf(seriesOf(entries()), 1.05)),
  })
