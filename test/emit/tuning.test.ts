/** Measured variants in generated source: the launcher's conditions, and the template arguments if widths differ. */
import { describe, expect, it } from 'vitest'
import { generateCandidates } from '../../src/emit/candidates.js'
import { generateInstances } from '../../src/emit/generate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { ScheduleChoice } from '../../src/schedule/tuning/choice.js'
import type { TuningEntry } from '../../src/schedule/tuning/tuning.js'
import * as fixtures from '../schedule/fixtures.js'

const warp = (vec: number, chunks: number): ScheduleChoice => ({
  kind: 'rows',
  team: { kind: 'warp', lanes: 32, rowsPerBlock: 2 },
  chunks,
  vec,
})

const text = (kernel: Kernel, choice: ScheduleChoice, rows: { fromRows: number; toRows?: number } = { fromRows: 1 }): string => {
  const variant = { ...rows, choice, measured: [{ rows: 4096, rules: 6, choice: 5 }] }
  const about = { kernel: kernel.name, dtype: 'f16', length: 768, architecture: 'sm_90', device: 'a GPU' }
  const entries: TuningEntry[] = [{ ...about, variants: [variant] }]
  const files = generateInstances([{ kernel, types: { T: 'f16' }, dims: {} }], {}, [], { file: 'tuning.json', entries })
  return files.get(`cuda/${kernel.name}__f16.cu`) ?? ''
}

describe('row kernels', () => {
  it('test the measured limits before the rules', () => {
    const found = text(fixtures.softmax, warp(8, 3), { fromRows: 2000, toRows: 9000 })
    const tuned = found.indexOf(
      'if (length == 768 && rows >= 2000 && rows <= 9000 && heddle::runs_on(90)) return run(heddle::WarpTeam<32, 2>{}',
    )
    expect(tuned).toBeGreaterThan(0)
    expect(found.indexOf('if (length <= 16)')).toBeGreaterThan(tuned)
    expect(found).toContain('// Measured on a GPU: 5 us instead of 6 at 4096 rows.\n')
    expect(found).toContain('#include "tuned.cuh"\n')
    expect(found).toContain('constexpr int VEC = 8;\n')
  })

  it('take their width as an argument if a measured one differs', () => {
    const found = text(fixtures.softmax, warp(4, 6))
    expect(found).toContain('template <class Team, int CHUNKS, int VEC>')
    expect(found).toContain('softmax_kept<heddle::WarpTeam<32, 2>, 6, 4>')
    expect(found).toContain('softmax_kept<heddle::ThreadTeam<128>, 2, 8>')
    expect(found).toContain('softmax_reread<heddle::RowBlock<512>, 8>')
    const rows = found.slice(found.indexOf('namespace in_rows'), found.indexOf('namespace part1'))
    expect(rows).not.toContain('constexpr int VEC')
  })
})

it('elementwise kernels take width and block size as arguments', () => {
  const found = text(fixtures.pointwise, { kind: 'elementwise', vec: 4, threads: 128 }, { fromRows: 64 })
  expect(found).toContain('template <int VEC, int THREADS>\n__global__ void __launch_bounds__(THREADS, 1) gelu_elementwise(')
  expect(found).toContain(
    'if (length == 768 && rows >= 64 && heddle::runs_on(90)) return run(heddle::Width<4>{}, "gelu__f16_tuned_sm_90_768_64", 128, gelu_elementwise<4, 128>);',
  )
  expect(found).toContain('  return run(heddle::Width<8>{}, "gelu__f16", 256, gelu_elementwise<8, 256>);')
})

it('an untuned kernel does not mention tuning', () => {
  const found = generateInstances([{ kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} }]).get('cuda/softmax__f16.cu')
  expect(found).not.toMatch(/tuned|runs_on/)
})

describe('candidates', () => {
  const files = generateCandidates([
    { instance: { kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} }, choices: [warp(8, 3), warp(4, 6)] },
  ])

  it('share a file, each with a separate launcher and manifest entry', () => {
    expect([...files.keys()].sort()).toEqual(['cuda/softmax__f16.cu', 'manifest.json', 'registry.cpp'])
    const manifest = JSON.parse(files.get('manifest.json') ?? '')
    const keys = ['softmax__f16__rules', 'softmax__f16__warp32x2_c3_v8', 'softmax__f16__warp32x2_c6_v4']
    expect(manifest.kernels.map(({ key, op, file }: { key: string; op: string; file: string }) => [key, op, file])).toEqual(
      keys.map((key) => [key, 'softmax', 'cuda/softmax__f16.cu']),
    )
    for (const key of keys) expect(files.get('cuda/softmax__f16.cu')).toContain(`heddle_launch_${key}(`)
  })

  it('take every row, unlike the rules', () => {
    const launcher = files.get('cuda/softmax__f16.cu')?.split('heddle_launch_softmax__f16__warp32x2_c3_v8')[1] ?? ''
    expect(launcher.split('\n}\n')[0]).not.toContain('length')
  })
})
