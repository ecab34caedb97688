import { describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { generate } from '../../src/emit/generate.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { plan, type Schedule } from '../../src/lang/plan.js'
import { variantLines } from '../../src/schedule/describe.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { planAll } from '../../src/search/plans.js'
import { refusal } from '../refusal.js'
import * as fixtures from './fixtures.js'

const warp: Schedule = { kind: 'rows', team: { kind: 'warp', lanes: 32, rowsPerBlock: 2 }, chunks: 3 }
const names = (schedule: Schedule, kernel = fixtures.softmax, T: 'f16' | 'f32' = 'f16') =>
  variantLines(scheduledLaunch(mapKernel({ kernel, types: { T }, dims: {} }, undefined, schedule))).map(
    ({ name, when }) => `${name}: ${when}`,
  )

describe('a schedule of a plan', () => {
  it('takes precedence over the rules, for rows that fit its team', () => {
    const ruled = variantLines(scheduledLaunch(mapKernel({ kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} })))
    const [first, ...others] = names(warp)
    expect(first).toContain('softmax__f16_planned: ')
    expect(first).toContain(`${32 * 3 * 8}`)
    expect(others).toHaveLength(ruled.length)
    // Chunks have the width of the rules if the schedule does not set it.
    expect(names(warp, fixtures.softmax, 'f32')[0]).toContain(`${32 * 3 * 4}`)
  })

  it('makes the chunk width an argument of the kernel if it differs from the rules', () => {
    const isGeneric = (schedule: Schedule) =>
      scheduledLaunch(mapKernel({ kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} }, undefined, schedule)).generic
    expect([{ ...warp, vec: 4 } as const, { ...warp, vec: 8 } as const, warp].map(isGeneric)).toEqual([true, false, false])
  })

  it('is the only variant if it supports any row', () => {
    expect(names({ kind: 'rows', team: { kind: 'block', lanes: 256 }, chunks: 'reread' })).toEqual([
      'softmax__f16_planned: otherwise: the plan asks for it',
    ])
  })

  it('yields to measured ones', () => {
    const choice = { kind: 'rows', team: { kind: 'warp', lanes: 32, rowsPerBlock: 4 }, chunks: 3, vec: 8 } as const
    const variants = [{ fromRows: 1, choice, measured: [{ rows: 4096, rules: 6, choice: 5 }] }]
    const entry = { kernel: 'softmax', dtype: 'f16', length: 768, architecture: 'sm_90', device: 'NVIDIA H200', variants }
    const mapped = scheduledLaunch(
      mapKernel({ kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} }, { file: 't', entries: [entry] }, warp),
    )
    expect(
      variantLines(mapped)
        .map(({ name }) => name)
        .slice(0, 2),
    ).toEqual(['softmax__f16_tuned_sm_90_768', 'softmax__f16_planned'])
  })

  it('is refused if the kernel cannot have it', () => {
    const odd = refusal(() => names({ kind: 'rows', team: { kind: 'warp', lanes: 24, rowsPerBlock: 4 }, chunks: 1 }))
    expect(odd).toMatchObject({ code: 'plan.schedule', hint: expect.stringContaining('heddle inspect') })
    expect(odd.message).toContain('lanes of a warp: expected 2, 4, 8, 16 or 32, got 24')
    expect(refusal(() => names({ kind: 'elementwise', threads: 128 })).message).toContain('row programs only')
    expect(refusal(() => names({ ...warp, chunks: 64 })).message).toContain('values of a row, at most')
  })
})

describe('a plan with schedules', () => {
  const { kernels, layouts } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  const graphs = { [encoderLayerGelu.name]: encoderLayerGelu }
  const groups = {
    made_norm: ['projectionBias', 'attentionResidual', 'attentionNorm'],
    made_gelu: ['fc1Bias', 'fc1Activation'],
  } as const
  const all = (...each: Readonly<Record<string, Schedule>>[]) =>
    planAll(
      each.map((schedules, i) => plan(`p${i}`, encoderLayerGelu, { groups, schedules })),
      graphs,
      kernels,
      layouts,
    )

  it('applies to its kernels in the generated source, and to no others', () => {
    const planned = all({ made_norm: warp, made_gelu: { kind: 'elementwise', threads: 128, vec: 4 } })
    const text = (key: string) =>
      generate(planned.kernels, planned.graphs, [], undefined, planned.schedules).get(`cuda/${key}.cu`) ?? ''
    expect(text('made_norm__f16')).toContain('// The plan asks for it.\n')
    expect(text('made_norm__f16')).toContain('if (length <= 768) return run(heddle::WarpTeam<32, 2>')
    expect(text('made_gelu__f16')).toContain('"made_gelu__f16_planned", 128')
    expect(generate(planned.kernels, planned.graphs).get('cuda/made_norm__f16.cu')).not.toContain('asks for it')
  })

  it('is refused for a kernel it does not derive, and for another schedule than a plan before it', () => {
    const stranger = refusal(() => all({ made_nothing: warp }))
    expect(stranger).toMatchObject({ code: 'plan.schedule', hint: 'groups: made_norm, made_gelu' })
    const other = refusal(() => all({ made_norm: warp }, { made_norm: { ...warp, chunks: 2 } }))
    expect(other).toMatchObject({ code: 'plan.schedule', hint: 'give the groups different kernel names' })
    expect(other.message).toContain('another schedule')
    expect(() => all({ made_norm: warp }, { made_norm: warp })).not.toThrow()
  })
})
