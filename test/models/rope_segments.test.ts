/** Texts that run together, and the end of a longrope segment. */
import { describe, expect, it } from 'vitest'
import { resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { firstSegment, type RopeSegment } from '../../src/models/llama/rope_segments.js'
import { batchesOf, shapeOf } from '../../src/models/llama/shapes.js'
import { smallLlama, smallPhi3 } from './llama_fixtures.js'

const rope = { rope_type: 'longrope', rope_theta: 1e4, short_factor: [1, 1, 1, 1], long_factor: [2, 2, 2, 2] }
const longrope = parseLlamaConfig({ ...smallPhi3, original_max_position_embeddings: 32, rope_parameters: rope }, 'config.json')
const plain = parseLlamaConfig(smallLlama, 'config.json')
const limits = { vocab: 96, positions: 256, cases: 1, endTokens: [2] }
const generationOf = (maxNewTokens: number, beams = 1) => resolveGeneration({ maxNewTokens, beams }, limits)
const prompt = (length: number) => Array.from({ length }, () => 1)
const segmentsOf = (config: typeof plain, lengths: readonly number[], maxNewTokens: number): RopeSegment[] =>
  lengths.map((length, at) => firstSegment(config, at, prompt(length), generationOf(maxNewTokens)))
const indices = (batches: readonly (readonly RopeSegment[])[]) => batches.map((segments) => segments.map(({ index }) => index))

describe('segments', () => {
  it('end with the token after the last original position, and are short while no pass is longer', () => {
    const of = (length: number, most: number) => {
      const [segment] = segmentsOf(longrope, [length], most)
      return [segment?.ropeRange, segment?.limit]
    }
    expect(of(29, 4)).toEqual(['short', 4])
    expect(of(29, 5)).toEqual(['short', 4])
    expect(of(32, 1)).toEqual(['short', 1])
    expect(of(33, 5)).toEqual(['long', 5])
  })

  it('of continuing beams run alone, in runs of steps that end with them', () => {
    const beams = generationOf(20, 3)
    const segments = segmentsOf(longrope, [5, 20, 6, 40], 20)
    expect(indices(batchesOf(segments, { most: 8, generation: beams }))).toEqual([[0], [1], [2], [3]])
    expect(indices(batchesOf(segments, { most: 8, generation: generationOf(20) }))).toEqual([[0, 1, 2], [3]])
    const steps = segments.map((segment) => {
      const { perRun, steps: all } = shapeOf(longrope, [segment], beams)
      return [segment.limit, perRun, all]
    })
    expect(steps).toEqual([
      [20, 8, 24],
      [13, 1, 13],
      [20, 8, 24],
      [20, 8, 24],
    ])
    expect(shapeOf(longrope, segmentsOf(longrope, [29], 20), beams)).toMatchObject({ perRun: 4, steps: 4 })
  })
})

describe('batches', () => {
  it('of beams have prompts of one length where results must not depend on them', () => {
    const segments = segmentsOf(plain, [4, 9, 4, 4, 9], 8)
    const beams = generationOf(8, 3)
    expect(indices(batchesOf(segments, { most: 2, generation: beams, invariant: 4 }))).toEqual([[0, 2], [3], [1, 4]])
    expect(indices(batchesOf(segments, { most: 8, generation: beams }))).toEqual([[0, 1, 2, 3, 4]])
    expect(indices(batchesOf(segments, { most: 8, generation: generationOf(8), invariant: 4 }))).toEqual([[0, 1, 2, 3, 4]])
  })
})
