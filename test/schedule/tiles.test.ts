/** Tiles of template kernels: the list shared with headers, tiles that a kernel supports, and the use of measured ones. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { planTuning } from '../../src/bench/tune_plan.js'
import { selectTiles, type TimesAtRows } from '../../src/bench/tune_select.js'
import { generateCandidates } from '../../src/emit/candidates.js'
import { generate } from '../../src/emit/generate.js'
import type { TemplateKernel } from '../../src/ir/template.js'
import { isTile, matmulTiles, type TileChoice, tileCandidates, tileName } from '../../src/schedule/tiles.js'
import { choiceName } from '../../src/schedule/tuning/choice.js'
import { tunedTiles } from '../../src/schedule/tuning/tuned_tiles.js'
import { formatTuning, parseTuning, type TuningEntry } from '../../src/schedule/tuning/tuning.js'
import { readKernels } from '../../src/verify/check/specs.js'
import { refusal } from '../refusal.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { templates } = await readKernels(root)

const template = (name: string): TemplateKernel => {
  const found = templates.find((kernel) => kernel.name === name)
  if (found === undefined) throw new Error(`there is no template kernel ${name}`)
  return found
}

const single: TileChoice = { kind: 'matmul', tile: 'single_128x64', split: 1 }
const halves: TileChoice = { kind: 'matmul', tile: 'cluster_64x96', split: 2 }
const wide: TileChoice = { kind: 'attention', queries: 128, keys: 64, warpgroups: true }

const entry = (choice: TileChoice, over: Partial<TuningEntry> = {}): TuningEntry => ({
  kernel: 'matmul_bias_gelu',
  dtype: 'f16',
  length: 3072,
  depth: 768,
  architecture: 'sm_90',
  device: 'NVIDIA H200',
  variants: [{ fromRows: 961, toRows: 1024, choice, measured: [{ rows: 1024, rules: 12.2, choice: 10.9 }] }],
  ...over,
})

const text = (kernel: string, ...entries: TuningEntry[]): string =>
  generate([], {}, [template(kernel)], { file: 'tuning.json', entries }).get(`cuda/${kernel}__f16.cu`) ?? ''

it('the device header has the same names in the same order', () => {
  const header = readFileSync(new URL('../../native/device/matmul_choice.cuh', import.meta.url), 'utf8')
  expect([...header.matchAll(/\btile\((\w+)\)/g)].map(([, name]) => name).filter((name) => name !== 'name')).toEqual(matmulTiles)
})

it('choices of template kernels are distinguished from schedules', () => {
  expect([single, wide].map(isTile)).toEqual([true, true])
  expect(isTile({ kind: 'elementwise' })).toBe(false)
  expect(choiceName(single)).toBe(tileName(single))
})

describe('measured tiles', () => {
  it('are those of the kernel and of the type it multiplies', () => {
    const tuning = {
      file: 'tuning.json',
      entries: [entry(single), entry(halves, { dtype: 'bf16' }), entry(wide, { kernel: 'attention' })],
    }
    const chosen = (dtype: 'f16' | 'bf16' | 'f32') =>
      tunedTiles(template('matmul_bias_gelu'), { T: dtype }, tuning).map(({ choice }) => choice)
    expect(chosen('f16')).toEqual([single])
    expect(chosen('bf16')).toEqual([halves])
    expect(chosen('f32')).toEqual([])
  })
})

describe('measured tiles in generated source', () => {
  it('take precedence over the rules of a matmul', () => {
    const found = text('matmul_bias_gelu', entry(single))
    expect(found).toContain('#include "tuned.cuh"\n')
    expect(found).toContain(
      '  // Measured on NVIDIA H200: 10.9 us instead of 12.2 at 1024 rows.\n' +
        '  if (n == 3072 && k == 768 && m >= 961 && m <= 1024 && heddle::runs_on(90)) measured = {heddle::MatmulTile::single_128x64, 1};\n',
    )
    expect(found).toMatch(/return heddle::launch_matmul<T>\(.*, arguments\.is_constant\(1\), measured\);\n/)
  })

  it('take precedence over the rules of attention, for heads of one size', () => {
    const found = text('attention', entry(wide, { kernel: 'attention', length: 64, depth: undefined }))
    expect(found).toContain(
      'if (d_extent == 64 && s_extent >= 961 && s_extent <= 1024 && heddle::runs_on(90) && heddle::in_words(',
    )
    expect(found).toContain('return heddle::launch_attention_as<64, heddle::AttentionTile<128, 64, true>, T>(')
    expect(found).toContain('return heddle::launch_attention<T>(')
  })

  it('are named in the manifest', () => {
    const files = generate([], {}, [template('matmul_bias_gelu')], { file: 'tuning.json', entries: [entry(halves)] })
    const { kernels } = JSON.parse(files.get('manifest.json') ?? '')
    expect(kernels.find(({ key }: { key: string }) => key === 'matmul_bias_gelu__f16').variants).toEqual([
      {
        kernel: 'matmul_bias_gelu__f16',
        schedule: 'cluster_64x96_k2',
        when: 'on sm_90 for 3072x768, 961 to 1024 rows: measured on NVIDIA H200: 10.9 us instead of 12.2 at 1024 rows',
      },
    ])
  })

  it('are absent without a measurement', () => {
    const kernels = ['matmul_bias', 'matmul_bias_gelu'].map(template)
    const files = generate([], {}, kernels, { file: 'tuning.json', entries: [entry(single)] })
    expect(files.get('cuda/matmul_bias__f16.cu')).not.toMatch(/measured|runs_on|tuned/)
    expect(files.get('cuda/matmul_bias_gelu__bf16.cu')).not.toMatch(/measured|runs_on|tuned/)
  })

  it.each<[string, TuningEntry, string]>([
    ['of another kind', entry(wide), 'queries128_keys64_warpgroups: the kernel is matmul'],
    ['without a depth', entry(single, { depth: undefined }), 'single_128x64: a matmul is measured for columns and depth'],
    [
      'for heads that no tensor core multiplies',
      entry(wide, { kernel: 'attention', length: 26, depth: undefined }),
      'tiles are for heads of 32, 64, 128 in 16 bits',
    ],
    [
      'that is none',
      entry({ ...wide, queries: 96 } as TileChoice, { kernel: 'attention', length: 64, depth: undefined }),
      'expected one of queries64_keys64_warpgroups, ',
    ],
  ])('%s are refused', (_, wrong, why) => {
    const error = refusal(() => text(wrong.kernel, wrong))
    expect(error.code).toBe('tuning.choice')
    expect(error.message).toMatch(/^tuning\.json: entries\[0\] \(/)
    expect(error.message).toContain(why)
  })

  it('need a kernel that is there', () => {
    expect(refusal(() => text('matmul_bias', entry(single, { kernel: 'matmul_gone' }))).code).toBe('tuning.kernel')
  })

  it('survive being written and read, keyed by depth too', () => {
    const entries = [entry(single), entry(single, { depth: 3072 })]
    expect(parseTuning(formatTuning(entries), 'tuning.json').entries).toEqual(entries)
  })
})

describe('candidates', () => {
  it('of a matmul are all tiles, of attention those that its heads can have', () => {
    const ofMatmul = tileCandidates(template('matmul_bias'), 'f16', { length: 768, depth: 768 }).map(tileName)
    expect(ofMatmul).toEqual(expect.arrayContaining(['mma_64x64_k8', 'cluster_64x64_k2', 'cluster_64x96_k6', 'turns_128x192']))
    expect(ofMatmul).not.toContain('simple')
    expect(ofMatmul).not.toContain('fma_64x64')
    expect(tileCandidates(template('matmul_bias'), 'f32', { length: 768, depth: 768 }).map(tileName)).toEqual(
      ['fma_16x64', 'fma_64x64', 'fma_64x128', 'fma_128x128'].flatMap((tile) =>
        (tile === 'fma_128x128' ? [''] : ['', '_k2', '_k4', '_k8']).map((split) => `${tile}${split}`),
      ),
    )
    expect(tileCandidates(template('attention'), 'f16', { length: 128 }).map(tileName)).toEqual([
      'queries64_keys64',
      'queries128_keys64',
      'queries64_keys32',
    ])
    expect(tileCandidates(template('attention'), 'f32', { length: 64 })).toEqual([])
    expect(tileCandidates(template('matmul_bias'), 'f16', { length: 768 })).toEqual([])
  })

  it('share a file with the rules, each with a separate launcher', () => {
    const request = { target: 'cuda', lengths: [{ length: 3072, depth: 768 }, { length: 64 }], dtype: 'f16' } as const
    const { plan, tiles } = planTuning([], templates, { ...request, kernels: ['attention', 'matmul_bias_gelu'] })
    expect(plan.kernels.map(({ kernel, kind, row, depth, outer }) => [kernel, kind, row, depth, outer])).toEqual([
      ['attention', 'attention', 'd_extent', undefined, ['b_extent', 'h_extent']],
      ['matmul_bias_gelu', 'matmul', 'n', 'k', ['m']],
    ])
    const found = generateCandidates([], tiles).get('cuda/matmul_bias_gelu__f16.cu') ?? ''
    expect(found).toContain('heddle_launch_matmul_bias_gelu__f16__rules(')
    expect(found).toContain('heddle_launch_matmul_bias_gelu__f16__mma_64x64_k8(')
    expect(found).toContain(
      'return heddle::launch_matmul_as<T>({heddle::MatmulTile::mma_64x64, 8}, launch, error, "matmul_bias_gelu__f16__mma_64x64_k8", ',
    )
  })

  it('are refused for lengths that suit no kernel of that name', () => {
    const request = { target: 'cuda', kernels: ['matmul_bias_gelu'], lengths: [{ length: 768 }], dtype: 'f16' } as const
    const error = refusal(() => planTuning([], templates, request))
    expect([error.code, error.message]).toEqual(['tune.kernel', expect.stringContaining('columns x depth, such as 3072x768')])
  })
})

describe('the selected tile', () => {
  const candidate = (key: string, choice: TileChoice) => ({ key, choice, keepsOrder: true })
  const candidates = [candidate('single', single), candidate('halves', halves)]
  const at = (rows: number, rules: number, times: Readonly<Record<string, number>>): TimesAtRows => ({
    rows,
    rules,
    candidates: new Map(Object.entries(times)),
  })
  const select = (...times: readonly TimesAtRows[]) =>
    selectTiles(times, candidates).map(({ choice, fromRows, toRows }) => [
      choice === single ? 'single' : 'halves',
      fromRows,
      toRows,
    ])

  it('one that saves more than measurements repeat to, for as many rows as make as many tiles', () => {
    expect(select(at(1024, 10, { single: 9, halves: 9.9 }))).toEqual([['single', 961, 1024]])
    expect(select(at(100, 10, { single: 9.8, halves: 9.6 }))).toEqual([['halves', 65, 128]])
    expect(select(at(1024, 10, { single: 9.8 }))).toEqual([])
  })

  it('equal neighbours are one range, others are not joined across unmeasured sizes', () => {
    expect(select(at(128, 10, { single: 9 }), at(64, 10, { single: 9 }), at(256, 10, { single: 9 }))).toEqual([
      ['single', 1, 128],
      ['single', 193, 256],
    ])
  })
})
