/** Every shipped plan has kernels of every storage type, for every graph and program it covers; one that has not is refused as models are loaded. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { conversions } from '../../specs/conversions.js'
import { encoderLayers } from '../../specs/graphs/encoder_layers.js'
import { graphs, programs } from '../../specs/index.js'
import { bert } from '../../specs/programs/bert.js'
import { type Manifest, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { HeddleError } from '../../src/errors.js'
import type { Graph } from '../../src/ir/graph.js'
import type { Program } from '../../src/ir/program.js'
import { loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { compileProgram, findPlan } from '../../src/program/index.js'
import { planNames } from '../../src/program/plans.js'
import { expectPlanTypes } from '../../src/runtime/plan_types.js'
import { wireProgram } from '../../src/runtime/program_wiring.js'
import { exampleModel } from '../models/fixtures.js'
import { refusal } from '../refusal.js'

const manifest = manifestSchema.parse(JSON.parse(readFileSync('generated/manifest.json', 'utf8')))
const { plans = {} } = manifest
const types = ['f32', 'f16', 'bf16'] as const

/** A single graph. */
const alone = (graph: Graph) => [{ label: graph.name, graph, inputs: {}, outputs: {}, weights: {}, attrs: {} }]

/** Steps of a program under a plan; none if the plan does not cover it, which is a separate refusal. */
function stepsOf(program: Program, plan: string) {
  try {
    const compiled = compileProgram(program, findPlan(plan, plans), { conversions })
    return wireProgram(compiled, { amax: () => 1 }).applications
  } catch (error) {
    if (error instanceof HeddleError && error.code.startsWith('plan.')) return []
    throw error
  }
}

const forms = Object.entries(encoderLayers).flatMap(([norms, layers]) =>
  Object.keys(layers).map((activation) => bert.of({ layers: 2, norms, activation } as Parameters<typeof bert.of>[0])),
)
const shipped = [...Object.values(programs).map((each) => each.of()), ...forms]

/** The first step of each graph and program without a kernel under a plan, by type. */
function missing(plan: string, of: Pick<Manifest, 'kernels'>): string[] {
  const whole = [...Object.values(plans[plan] ?? {}).map(alone), ...shipped.map((program) => stepsOf(program, plan))]
  return whole.flatMap((applications) =>
    types.flatMap((T) => {
      try {
        expectPlanTypes(plan, applications, { T }, of)
        return []
      } catch (error) {
        return [error instanceof HeddleError ? error.message : String(error)]
      }
    }),
  )
}

describe('every storage type has kernels', () => {
  it.each(planNames(plans))('under %s', (plan) => expect(missing(plan, manifest)).toEqual([]))

  it('in every graph that is not planned', () => {
    for (const { graph } of Object.values(graphs))
      for (const T of types) expect(() => expectPlanTypes('unfused', alone(graph), { T }, manifest), graph.name).not.toThrow()
  })

  it('and a plan without one is found', () => {
    const kernels = manifest.kernels.filter(({ key }) => key !== 'quantize_col32__bf16')
    const found = missing('ft-v3-mode1-packed', { kernels })
    expect(found.length).toBeGreaterThan(1)
    expect(new Set(found.map((message) => message.split(' for ')[0]))).toEqual(
      new Set(['plan ft-v3-mode1-packed does not run in bf16: there is no kernel quantize_col32__bf16']),
    )
    // Its twins: another plan, and pre-LN, where separate kernels quantise.
    expect(missing('ft-v3-mode2', { kernels })).toEqual([])
  })
})

describe('a type without kernels', () => {
  const layer = plans['ft-v3-mode1']?.encoder_layer_gelu
  const under = (T: 'f32' | 'f16' | 'bf16', kernels: Manifest['kernels']) => {
    if (layer === undefined) throw new Error('no layer')
    expectPlanTypes('ft-v3-mode1', alone(layer), { T }, { kernels })
  }

  it('is refused with the types that the plan has', () => {
    const kernels = manifest.kernels.filter(({ key }) => key !== 'quantize_col32__bf16')
    expect(refusal(() => under('bf16', kernels))).toMatchObject({
      code: 'plan.dtype',
      message: 'plan ft-v3-mode1 does not run in bf16: there is no kernel quantize_col32__bf16 for encoder_layer_gelu/x.int8',
      hint: 'it runs in f32 and f16; or use another plan',
    })
    expect(() => under('f16', kernels)).not.toThrow()
  })

  it('is refused with the available types if the plan has none', () => {
    const kernels = manifest.kernels.filter(({ op }) => op !== 'quantize_col32')
    expect(refusal(() => under('f16', kernels)).hint).toBe('no kernel of quantize_col32 was generated: run heddle gen')
  })

  it('is refused before the first request to the device', async () => {
    const device = new Proxy({}, { get: (_, name) => expect.fail(`the device is asked for ${String(name)}`) })
    const kernels = manifest.kernels.filter(({ key }) => key !== 'bias_gelu__bf16')
    const loading = (dtype: 'f16' | 'bf16') =>
      loadEncoder(exampleModel, {
        device,
        library: {},
        manifest: { ...manifest, kernels },
        plan: 'ft-v1',
        dtype,
      } as unknown as Parameters<typeof loadEncoder>[1])
    await expect(loading('bf16')).rejects.toMatchObject({
      code: 'plan.dtype',
      hint: 'it runs in f32 and f16; or use another plan',
    })
    await expect(loading('f16')).rejects.toThrow('the device is asked for')
  })
})
