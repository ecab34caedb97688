/** A user's program on the CPU device: under every plan equal to the composition of its bodies, run after run. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileProgram, findPlan } from '../../src/program/index.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { buildProgram } from '../../src/runtime/program.js'
import { isPacked, programSizes, stateDecls, tensorOf, wireProgram } from '../../src/runtime/program_wiring.js'
import { openSession } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { compare } from '../../src/verify/compare.js'
import { normal, random } from '../../src/verify/random.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { mixers } from '../projects/program/specs/index.js'
import { layerOf, type OpenedProject, openProject, sumOf } from './project.js'

let opened: OpenedProject
beforeAll(async () => {
  opened = await openProject()
})
afterAll(async () => {
  opened?.device.close()
  if (opened !== undefined) await rm(opened.folder, { recursive: true })
})

const layers = 4
const [b, s, n] = [3, 7, 33]
const lengths = [5, 1, 7]
const tokens = lengths.reduce((sum, length) => sum + length, 0)

const draw = (name: string, count: number, spread = 1): Float32Array => {
  const next = random(name)
  return Float32Array.from({ length: count }, () => spread * normal(next))
}
const x = draw('x', b * s * n)
/** Rows of tokens in their padded positions. */
const valid = lengths.flatMap((length, sequence) => Array.from({ length }, (_, place) => sequence * s + place))
const rowsAt = (values: ArrayLike<number>, rows: readonly number[]): number[] =>
  rows.flatMap((row) => Array.from({ length: n }, (_, c) => values[row * n + c] ?? Number.NaN))

/** Results of several runs, on rows of tokens. */
async function runs(plan: string, count: number) {
  const compiled = compileProgram(mixers.of({ layers }), findPlan(plan, opened.manifest.plans))
  const packed = (name: string): boolean => isPacked(compiled, compiled.outputs[name] ?? name)
  const sizes = programSizes(compiled, { b, s, n, tokens })
  const types = { T: 'f32' } as const
  const weights = Object.fromEntries(
    Object.entries(compiled.weights).map(([name, value]) => {
      const { shape } = tensorOf(value, name, sizes, types)
      const values = draw(
        name,
        shape.reduce((size, extent) => size * extent, 1),
        shape.length === 2 ? 1 / Math.sqrt(n) : 1,
      )
      return [name, { dtype: 'f32' as const, shape, data: encode('f32', values) }]
    }),
  )
  const { device, library, manifest } = opened
  const session = await openSession({ device, library, manifest, layouts: {}, weights })
  const states = await openStates({ device, layouts: {} }, stateDecls(compiled, sizes, types))
  const next = Object.fromEntries(
    Object.entries(compiled.states).map(([name, { next }]) => [
      name,
      { tensor: states.tensors[name] ?? expect.fail(name), ...(next === undefined ? {} : { next }) },
    ]),
  )
  const wired = wireProgram(compiled)
  const program = await buildProgram({ session, ...wired, states: next, dims: sizes, types })
  try {
    const given = packed('x') ? rowsAt(x, valid) : [...x]
    const inputs = { x: encode('f32', Float32Array.from(given)), lengths: encode('i32', Int32Array.from(lengths)) }
    const results: Record<'hidden' | 'result', number[]>[] = []
    for (let run = 0; run < count; run++) {
      const outputs = await program.run(inputs)
      const rows = (name: string): number[] => {
        const values = decode('f32', outputs[compiled.outputs[name] ?? ''] ?? new Uint8Array())
        return packed(name) ? Array.from(values) : rowsAt(values, valid)
      }
      results.push({ hidden: rows('hidden'), result: rows('result') })
    }
    const values = Object.fromEntries(Object.entries(weights).map(([name, { data }]) => [name, decode('f32', data)]))
    return { compiled, results, values, labels: compiled.steps.map(({ label }) => label), steps: program.steps.length }
  } finally {
    program.release()
    states.release()
    session.release()
  }
}

describe('four layers and a state', () => {
  it.each(['unfused', 'fused', 'ragged'])('equal their bodies under %s', async (plan) => {
    const { results, values, labels, compiled } = await runs(plan, 3)
    let hidden: ArrayLike<number> = rowsAt(x, valid)
    for (let layer = 0; layer < layers; layer++) {
      hidden = layerOf(hidden, values[`layer${layer}.weight`] ?? [], values[`layer${layer}.bias`] ?? [], n)
    }
    let total: ArrayLike<number> = new Float64Array(hidden.length)
    const bound = tolerance({ dtype: 'f32', class: 'model', length: layers })
    for (const [run, { hidden: found, result }] of results.entries()) {
      total = sumOf(total, hidden, n)
      expect(compare(found, Array.from(hidden), bound).passed, `hidden of run ${run}`).toBe(true)
      const scaled = { absolute: bound.absolute * (run + 1), relative: bound.relative }
      expect(compare(result, Array.from(total), scaled).passed, `result of run ${run}`).toBe(true)
      expect(compare(result.with(5, (result[5] ?? 0) + 1), Array.from(total), scaled).passed).toBe(false)
    }
    expect(labels.filter((label) => label.startsWith('layer'))).toEqual(['layer0', 'layer1', 'layer2', 'layer3'])
    // One region: the layers share one graph.
    expect(Object.keys(compiled.graphs).filter((name) => name === 'mixer')).toHaveLength(1)
  })

  it('have the storage forms of the plan, each conversion once', async () => {
    const held = async (plan: string) => {
      const { labels, steps, compiled } = await runs(plan, 1)
      return { labels: labels.filter((label) => !label.startsWith('layer')), steps, x: compiled.values.x?.rows }
    }
    // The state's next value is a result as well, which a copy at the end keeps apart.
    expect(await held('unfused')).toEqual({ labels: ['sum'], steps: 2 * layers + 2, x: 'padded' })
    expect(await held('fused')).toEqual({ labels: ['sum'], steps: layers + 2, x: 'padded' })
    expect(await held('ragged')).toEqual({
      labels: ['packing', 'restore_padding(layer3.hidden)', 'sum'],
      steps: 2 * layers + 5,
      x: 'packed',
    })
  })
})
