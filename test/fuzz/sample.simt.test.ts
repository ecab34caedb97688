/** A few random ops of a fixed seed on the CPU device: faults planted into the emitter (test/mutation/planted_fuzz.ts) show in their results. */
import { expect, it } from 'vitest'
import { drawOp } from './draw_op.js'
import { seedOf } from './random.js'
import { runOps } from './run_ops.js'

/** Families that the planted faults reach. */
const families = ['columns', 'hashes', 'elementwise']
const seed = 5
const each = 3

it('random ops of a fixed seed match their references', async () => {
  const drawn = Array.from({ length: 120 }, (_, at) => ({ op: drawOp(seedOf(seed, at), `fuzz_${at}`), seed: seedOf(seed, at) }))
  const subjects = families.flatMap((family) => drawn.filter(({ op }) => op.family === family).slice(0, each))
  const { ran, failures } = await runOps('simt', subjects)
  expect(failures.map(({ op, message }) => `${op.name}: ${message}`)).toEqual([])
  expect(ran).toBe(families.length * each)
})
