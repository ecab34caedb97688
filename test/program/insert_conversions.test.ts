/**
 * Storage forms of a program's values under a plan: inserted conversions, each once, and refusals if there is no conversion from one form to
 * another.
 */
import { fileURLToPath } from 'node:url'
import { graph, program, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { conversions } from '../../specs/conversions.js'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { hiddenStates } from '../../specs/graphs/heads.js'
import { bert } from '../../specs/programs/bert.js'
import { readManifest } from '../../src/cli/pipeline.js'
import { compiledProgramSchema, compileProgram, findPlan } from '../../src/program/index.js'
import { programSizes, wireProgram } from '../../src/runtime/program_wiring.js'
import { refusal } from '../refusal.js'

const { plans } = await readManifest(fileURLToPath(new URL('../..', import.meta.url)))
const compiled = (plan: string, options: Parameters<typeof compileProgram>[2] = { conversions }) =>
  compileProgram(bert.of({ layers: 2 }), findPlan(plan, plans), options)
const failure = (act: () => unknown): string => {
  const { code, message } = refusal(act)
  return `${code}: ${message}`
}

const dims = { b: 2, s: 3, h: 2, d: 4, i: 8 }
const eps = 1e-5
/** A layer whose result two graphs read, and whose sequences the program may say the lengths of. */
const twice = (says: boolean) =>
  program('twice', {
    dims,
    inputs: { x: tensor('T', 'b*s h*d'), lengths: tensor('i32', 'b') },
    build: (p, { x, lengths }) => {
      if (says) p.ragged({ batch: 'b', seq: 's', lengths })
      const { hidden } = p.apply(encoderLayerGelu, { x, lengths }, p.weights('layer'), { eps, scale: 0.5 })
      const first = p.apply(hiddenStates, { x: hidden }, {}, {}, { label: 'first' }).states
      const second = p.apply(hiddenStates, { x: hidden }, {}, {}, { label: 'second' }).states
      return { first, second }
    },
  }).of()

describe('a compiled program', () => {
  it.each(['unfused', 'ft-v2.1', 'best-encoder', 'ft-v3-mode2-packed', 'best-encoder-int8'])('is data under %s', (plan) => {
    const made = compiled(plan)
    expect(compiledProgramSchema.parse(JSON.parse(JSON.stringify(made)))).toEqual(made)
    // Twelve layers are two graphs with the same number of steps: repeated graphs exist once.
    expect(Object.keys(made.graphs)).toEqual(
      Object.keys(compileProgram(bert.of(), findPlan(plan, plans), { conversions }).graphs),
    )
  })

  it('has one conversion for all readers of its result', () => {
    const { steps } = compileProgram(twice(true), findPlan('ft-v2.1', plans))
    expect(steps.map(({ label }) => label)).toEqual([
      'packing',
      'encoder_layer_gelu',
      'restore_padding(encoder_layer_gelu.hidden)',
      'first',
      'second',
    ])
  })

  it('uses the declared forms of inputs and outputs on request', () => {
    const held = (asDeclared: boolean) => {
      const { steps, values, outputs } = compileProgram(twice(true), findPlan('best-encoder', plans), { asDeclared })
      const rows = ['x', outputs.first ?? ''].map((name) => values[name]?.rows)
      return { rows, moved: steps.map(({ label }) => label).filter((label) => label.includes('padding')) }
    }
    expect(held(false)).toEqual({ rows: ['packed', 'packed'], moved: [] })
    expect(held(true)).toEqual({
      rows: ['padded', 'padded'],
      moved: ['remove_padding(x)', 'restore_padding(first.states)', 'restore_padding(second.states)'],
    })
  })

  it('is bound to sizes that fit it', () => {
    const made = compileProgram(twice(true), findPlan('best-encoder', plans))
    expect(programSizes(made, dims)).toEqual({ ...dims, tokens: 6 })
    expect(programSizes(made, { ...dims, tokens: 4 })).toEqual({ ...dims, tokens: 4 })
    expect(failure(() => programSizes(made, { ...dims, tokens: 7 }))).toBe('program.dims: twice: tokens cannot be 7')
    expect(failure(() => programSizes(made, { ...dims, i: 0 }))).toBe('program.dims: twice: dimension i cannot be 0')
    expect(failure(() => programSizes(made, { ...dims, z: 1 }))).toBe('program.dims: twice has no dimension z')
    const { i: _, ...lacking } = dims
    expect(failure(() => programSizes(made, lacking))).toBe('program.dims: twice: dimension i has no size')
  })
})

describe('refused is', () => {
  it('a layout that no conversion leads to', () => {
    expect(failure(() => compiled('ft-v3-mode1', {}))).toContain(
      'plan.form: plan ft-v3-mode1: layer0 takes embeddings.hidden as padded T in layout col32, got padded T, and no step converts',
    )
  })

  it('a plan that removes padding if the program has no lengths', () => {
    expect(failure(() => compileProgram(twice(false), findPlan('ft-v2.1', plans)))).toContain(
      'plan.ragged: plan ft-v2.1 removes padding from encoder_layer_gelu, and twice does not declare the lengths of its sequences',
    )
  })

  it('a plan that has nothing for the layers, or for any graph', () => {
    const relu = bert.of({ activation: 'relu' })
    expect(failure(() => compileProgram(relu, findPlan('best-llama', plans)))).toBe(
      'plan.model: plan best-llama does not cover encoder_layer_relu, the layers of bert',
    )
    const plan = { ...findPlan('unfused'), name: 'other', covers: () => false }
    expect(failure(() => compileProgram(twice(true), plan))).toBe('plan.model: plan other does not cover any graph of twice')
  })

  it('a scale that is missing or invalid', () => {
    const made = compiled('int8-row')
    expect(failure(() => wireProgram(made))).toBe('run.scales: plan int8-row needs a scale for x of layer0, got none')
    expect(failure(() => wireProgram(made, { amax: () => -1 }))).toContain('got -1')
  })

  it('two graphs of one name', () => {
    const view = (dims: string) =>
      graph('same', {
        inputs: { x: tensor('T', 'm n') },
        weights: {},
        build: (g, { x }) => ({ nodes: {}, outputs: { y: g.view(x, dims) } }),
      })
    const both = program('both', {
      dims: { m: 2, n: 3 },
      inputs: { x: tensor('T', 'm n') },
      build: (p, { x }) => ({
        a: p.apply(view('n m'), { x }, {}, {}, { label: 'a' }).y,
        b: p.apply(view('m*n'), { x }, {}, {}, { label: 'b' }).y,
      }),
    })
    expect(failure(() => compileProgram(both.of(), findPlan('unfused')))).toBe('program.graph: both: two graphs are called same')
  })
})
