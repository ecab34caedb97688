/** The loops of a kernel compute what its body computes, after each pass, for every way of walking over rows and for rows with and without a tail. */
import { expect, it } from 'vitest'
import * as fixtures from '../schedule/fixtures.js'
import { ranked } from '../schedule/ranked.js'
import { differences } from './run_loops.js'

const dims = (names: readonly string[], n: number) =>
  Object.fromEntries(names.map((name) => [name, { m: 2, k: 4, h: 2, s: 3, b: 2, v: 5 }[name] ?? n]))

it.each([...fixtures.everything, ranked])('$name', (kernel) => {
  const types = Object.hasOwn(kernel.types, 'T') ? { T: 'f32' as const } : {}
  const instance = { kernel, types, dims: kernel === ranked ? { k: 4 } : {} }
  for (const n of [8, 7, 13])
    for (const team of [
      { lanes: 4, vec: 2 },
      { lanes: 2, vec: 8 },
    ])
      expect(differences(instance, dims(kernel.dims, n), team), `${n} elements`).toEqual([])
})
