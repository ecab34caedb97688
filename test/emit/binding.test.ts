import { describe, expect, expectTypeOf, it } from 'vitest'
import { bindOp } from '../../src/emit/binding.js'
import { generate } from '../../src/emit/generate.js'
import * as fixtures from '../schedule/fixtures.js'

const layerNorm = bindOp<{ T: 'f32' | 'f16' }, 'x' | 'gamma' | 'y', 'eps'>({
  op: 'layer_norm',
  types: ['T'],
  tensors: { x: ['m', 'n'], gamma: ['n'], y: ['m', 'n'] },
  dims: ['m', 'n'],
  attrs: { eps: 1e-12 },
})

const at = (buffer: string, ...shape: number[]) => ({ buffer, shape })

describe('bindings', () => {
  it('order buffers, extents and attributes as the launcher takes them', () => {
    const call = layerNorm({ T: 'f16' }).bind({ y: at('out', 2, 8), gamma: at('scale', 8), x: at('in', 2, 8) })
    expect(call).toEqual({ key: 'layer_norm__f16', buffers: ['in', 'scale', 'out'], dims: [2, 8], attrs: [1e-12] })
    expectTypeOf(call.buffers).toEqualTypeOf<readonly string[]>()
  })

  it('name instances with fixed dimensions', () => expect(layerNorm({ T: 'f32' }, { n: 8 }).key).toBe('layer_norm__f32__n8'))

  it('take attributes by name', () => {
    const tensors = { x: at('in', 1, 2), gamma: at('scale', 2), y: at('out', 1, 2) }
    expect(layerNorm({ T: 'f32' }).bind(tensors, { eps: 0.5 }).attrs).toEqual([0.5])
  })

  it('refuse shapes that disagree', () => {
    const bind = (x: number[], gamma: number[]) =>
      layerNorm({ T: 'f32' }).bind({ x: at('in', ...x), gamma: at('scale', ...gamma), y: at('out', ...x) })
    expect(() => bind([2, 8, 1], [8])).toThrow('layer_norm__f32: x is "m n", the tensor given has shape (2, 8, 1)')
    expect(() => bind([2, 8], [7])).toThrow('layer_norm__f32: dimension n of gamma is 7, but 8 in an earlier tensor')
  })

  it('refuse what the signature does not have, when compiled', () => {
    // @ts-expect-error int8 is no choice of T
    expect(layerNorm({ T: 'i8' }).key).toBe('layer_norm__i8')
    // @ts-expect-error gamma is missing
    expect(() => layerNorm({ T: 'f32' }).bind({ x: at('in', 1, 2), y: at('out', 1, 2) })).toThrow()
  })

  it('are generated one an op', () => {
    const text = generate([fixtures.softmax, fixtures.layerNorm]).get('bindings.ts')
    expect(text).toContain(
      "export const layerNorm = bindOp<{ T: 'f32' | 'f16' | 'bf16' }, 'x' | 'gamma' | 'beta' | 'y', 'eps'>({",
    )
    expect(text).toContain("export const softmax = bindOp<{ T: 'f32' | 'f16' | 'bf16' }, 'x' | 'y', never>({")
  })
})
