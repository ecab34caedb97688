/** Rows whose length facts state to be a multiple of the width: nothing tests it, and lanes run as with the test. */
import { expect, it } from 'vitest'
import { noFacts } from '../../src/ir/facts/facts.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { eachLoop, type Loop } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { printLoops } from '../../src/loop/print.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import { layerNorm } from '../schedule/fixtures.js'
import { differences } from './run_loops.js'

const stated = (multipleOf: number): Kernel => ({ ...layerNorm, facts: { ...noFacts, dims: { n: { multipleOf } } } })
const instanceOf = (kernel: Kernel) => ({ kernel, types: { T: 'f32' as const }, dims: {} })

function versionsOf(kernel: Kernel): { readonly found: readonly Loop[]; readonly text: string } {
  const found: Loop[] = []
  const texts: string[] = []
  eachPass(scheduledLaunch(mapKernel(instanceOf(kernel))), (_, pass, loops) => {
    if (pass !== 'versioning') return
    eachLoop(loops, (loop) => {
      if (loop.kind === 'version') found.push(loop)
    })
    texts.push(printLoops(loops))
  })
  return { found, text: texts.join('\n') }
}

it('a stated multiple of the width is not tested', () => {
  const { found, text } = versionsOf(stated(4))
  expect(found).toHaveLength(2)
  for (const loop of found) {
    if (loop.kind !== 'version') throw new Error('fixture')
    expect(loop.lengths).toEqual([])
    expect(loop.stated).toContainEqual({ kind: 'dim', type: 'i32', name: 'n' })
  }
  expect(text).toContain('VEC divides n by facts')
  expect(text).not.toContain('n % VEC == 0')
})

it('a stated number that the width does not divide leaves the test', () => {
  for (const kernel of [stated(6), stated(2), layerNorm]) {
    const { found, text } = versionsOf(kernel)
    for (const loop of found) expect(loop).toMatchObject({ stated: [] })
    expect(text).toContain('n % VEC == 0')
  }
})

it.each([4, 8, 12, 36])('rows of %i are those of the body', (n) => {
  expect(differences(instanceOf(stated(4)), { m: 3, n }, { lanes: 4, vec: 4 })).toEqual([])
})

it('the evaluation of loops finds a row that contradicts the facts', () => {
  expect(() => differences(instanceOf(stated(4)), { m: 3, n: 7 }, { lanes: 4, vec: 4 })).toThrow(
    'not the multiple that is stated',
  )
})
