import { describe, expect, it } from 'vitest'
import { type Ceilings, floorOf, layerBytes, workloadOf } from '../../src/bench/floor.js'
import { benchConfig } from '../../src/bench/synthetic.js'

const config = await benchConfig('bert-base', '/')
const h200: Ceilings = { bandwidth: 4.26e12, peak: { f16: 790e12, bf16: 790e12, f32: 60e12, i8: 1879e12 } }

describe('workloadOf', () => {
  it('counts what each matmul of each layer multiplies, and attention by the square of each length', () => {
    const { hidden, inner, heads, headDim, layers } = config
    const lengths = [5, 128, 1]
    const matmul = (m: number, n: number, k: number): number => 2 * m * n * k
    let flops = 0
    for (const length of lengths) {
      // Query, key, value and projection; both of the inner network; scores and context of each head.
      flops += 4 * matmul(length, hidden, hidden) + matmul(length, inner, hidden) + matmul(length, hidden, inner)
      flops += heads * (matmul(length, length, headDim) + matmul(length, headDim, length))
    }
    expect(workloadOf(config, lengths, 'f16').flops).toBe(layers * flops)
  })

  it('counts weights once and hidden states twice, at the storage type', () => {
    const [weights, token] = [12 * (4 * 768 * 768 + 2 * 768 * 3072), 2 * 768]
    expect(layerBytes(config, 'bf16')).toBe(2 * weights)
    expect(workloadOf(config, [3, 4], 'f32').bytes).toBe(4 * (weights + 7 * token))
  })
})

describe('floorOf', () => {
  const microseconds = (batch: number, seq: number): readonly [number, string] => {
    const lengths = Array.from({ length: batch }, () => seq)
    const { milliseconds, bound } = floorOf(workloadOf(config, lengths, 'f16'), h200, 'f16')
    return [Math.round(1000 * milliseconds), bound]
  }

  it('is bandwidth at few tokens and arithmetic at many', () => {
    expect(microseconds(1, 32)).toEqual([40, 'bandwidth'])
    expect(microseconds(1, 128)).toEqual([40, 'bandwidth'])
    expect(microseconds(8, 128)).toEqual([226, 'arithmetic'])
    expect(microseconds(32, 128)).toEqual([905, 'arithmetic'])
    expect(microseconds(32, 512)).toEqual([3914, 'arithmetic'])
    expect(microseconds(128, 128)).toEqual([3621, 'arithmetic'])
  })

  it('is that of its bytes without a known peak', () => {
    const work = workloadOf(config, [32 * 512], 'f16')
    const bytes = floorOf(work, { ...h200, peak: { f32: 60e12 } }, 'f16')
    expect(bytes).toEqual({ milliseconds: (1e3 * work.bytes) / h200.bandwidth, bound: 'bandwidth' })
    expect(bytes.milliseconds).toBeLessThan(floorOf(work, h200, 'f16').milliseconds)
  })
})
