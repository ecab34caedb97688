/** Computed operands that are scaled after a matmul: elements times a function of sums over their row, and no others. */
import { beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { computed, type ProductCase } from './graphs.js'
import { planned, productOf, readOps } from './host.js'

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = readOps()
})

/** The source in float16. */
function textOf(given: ProductCase): string {
  const kernel = productOf(planned(given, ops))
  const files = generate([], {}, [{ ...kernel, types: { T: ['f16'] } }])
  return [...files].find(([path]) => path.endsWith('.cu'))?.[1] ?? ''
}

const sums: Readonly<Record<string, string>> = {
  norm_in_front: '1',
  layer_norm_in_front: '2',
  summed_norm_gate_and_up: '2',
  centred_in_front: '1',
  norm_gate_and_up: '1',
  both_computed: '1',
  balanced_gate_and_up: '2',
  balanced_in_front: '2',
}

describe('an operand is scaled after the matmul', () => {
  it.each(computed.map((given) => [given.name, given] as const))('%s', (name, given) => {
    const text = textOf(given)
    expect(/static constexpr int FOLDS = (\d+);/.exec(text)?.[1]).toBe(sums[name])
    expect(text.includes('scale_of(')).toBe(name in sums)
  })

  it('by the factor of its elements, which are left without it', () => {
    const given = computed.find(({ name }) => name === 'balanced_in_front')
    if (given === undefined) throw new Error('there is no such case')
    const [, unscaled = '', scale = ''] =
      /(void unscaled_of[\s\S]*?\n {2}\}\n)([\s\S]*?scale_of[\s\S]*?\n {2}\}\n)/.exec(textOf(given)) ?? []
    expect(unscaled).toMatch(/\(-v\[i\]\) \* \(weight_c\[i\] \+ 3\.0f\)/)
    expect(unscaled).not.toMatch(/ \/ /)
    for (const part of ['folds[0] + 1.0f', 'folds[1] + 2.0f', ' / ']) expect(scale).toContain(part)
  })
})
