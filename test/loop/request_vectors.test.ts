/** Vectors that are the same for every row are requested before a kernel waits, and nothing else is. */
import { expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Loop } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { mapKernel } from '../../src/schedule/map.js'
import { scheduledLaunch } from '../../src/schedule/mapped.js'
import * as fixtures from '../schedule/fixtures.js'

function requested(kernel: Kernel): Record<string, readonly string[]> {
  const walks: Record<string, readonly string[]> = {}
  const types = Object.hasOwn(kernel.types, 'T') ? { T: 'f16' as const } : {}
  eachPass(scheduledLaunch(mapKernel({ kernel, types, dims: {} })), (walk, _, loops) => {
    walks[walk] = loops.flatMap((loop: Loop) => (loop.kind === 'request' ? [loop.tensor] : []))
  })
  return walks
}

it('requests gamma and beta of a layer norm', () => {
  expect(requested(fixtures.layerNorm)).toEqual({ kept: ['gamma', 'beta'], reread: ['gamma', 'beta'] })
})

it('requests no rows that differ', () => {
  expect(requested(fixtures.rowSum)).toEqual({ kept: [], reread: [] })
  expect(requested(fixtures.softmax)).toEqual({ kept: [], reread: [] })
})
