import { describe, expect, it } from 'vitest'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, TensorParam } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import { poisonByte } from '../../src/verify/block.js'
import { casesOf, type KernelCase } from '../../src/verify/cases.js'
import { runCase, runCases } from '../../src/verify/conformance.js'
import { entryOf, type Fault, faultySubject } from './faulty.js'

/** One case of an op, chosen by its name. */
function caseOf(op: string, dtype: 'f32' | 'f16' | 'bf16', match: RegExp): KernelCase {
  const found = casesOf(entryOf(op, dtype)).find(({ name }) => match.test(name))
  if (found === undefined) throw new Error(`no case of ${op} matches ${match}`)
  return found
}

/** z = x fn y, as the front end lowers it. */
function kernelOf(fn: 'add' | 'sub'): Kernel {
  const indices: Expr[] = ['m', 'c'].map((name) => ({ kind: 'index', type: 'i32', name }))
  const load = (tensor: string): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
  const dims = ['m', 'n']
  const tensors = (['x', 'y', 'z'] as const).map((name): TensorParam => {
    return { name, access: name === 'z' ? 'out' : 'in', dtype: { param: 'T' }, dims, layout: rowMajor(dims) }
  })
  return {
    name: 'add',
    source: { file: 'add.ts', line: 1, column: 1 },
    dims,
    types: { T: ['f32'] },
    attrs: [],
    tensors,
    rows: [
      { index: 'm', dim: 'm' },
      { index: 'c', dim: 'n' },
    ],
    body: [{ kind: 'store', tensor: 'z', indices, value: { kind: 'call', type: 'f32', fn, args: [load('x'), load('y')] } }],
  }
}

const run = (test: KernelCase, fault?: Fault) => runCase(faultySubject(fault), test)

describe('runCase on a faithful device', () => {
  it.each(['f32', 'f16', 'bf16'] as const)('passes layer norm, softmax and gather in %s', async (dtype) => {
    for (const op of ['layer_norm', 'softmax', 'embedding_lookup', 'mask_scores', 'argmax', 'gelu', 'cast_f32']) {
      for (const match of [/ [nt]=33 (v=61 )?integer$/, / [nt]=64 (v=61 )?normal$/]) {
        const result = await run(caseOf(op, dtype, match))
        expect(result, `${op} ${match}`).toMatchObject({ passed: true })
      }
    }
  })
})

describe('runCases', () => {
  const cases = casesOf(entryOf('add', 'f32')).slice(0, 6)

  it('reports the fault of its case, and of no other', async () => {
    let runs = 0
    const fault: Fault = (memory, [, , z]) => {
      runs += 1
      if (runs === 3) memory.fill(poisonByte('f32'), z?.offset, (z?.offset ?? 0) + 4)
    }
    const results = await runCases(faultySubject(fault), cases, undefined)
    expect(results.map(({ name, passed }) => ({ name, passed }))).toEqual(
      cases.map(({ name }, at) => ({ name, passed: at !== 2 })),
    )
  })

  it('ends with the running case if it is cancelled, or if a case cannot be prepared', async () => {
    const cancelled = new AbortController()
    let runs = 0
    const count: Fault = () => {
      runs += 1
      cancelled.abort(new Error('cancelled'))
    }
    await expect(runCases(faultySubject(count), cases, cancelled.signal)).rejects.toThrow('cancelled')
    expect(runs).toBeLessThan(3)
    const bodiless = { ...faultySubject(count), ops: {} }
    await expect(runCases(bodiless, cases, undefined)).rejects.toMatchObject({ code: 'verify.oracle' })
  })
})

describe('runCase finds planted faults', () => {
  const test = caseOf('add', 'f32', / m=2 n=33 integer$/)
  const at = (slices: readonly { offset: number; bytes: number }[], i: number) => slices[i] ?? { offset: 0, bytes: 0 }

  it('an element that was never written', async () => {
    const result = await run(test, (memory, slices) =>
      memory.fill(poisonByte('f32'), at(slices, 2).offset, at(slices, 2).offset + 4),
    )
    expect(result).toMatchObject({ passed: false })
    expect(result.detail).toContain('z: 1 of 66 elements differ; worst element 0 is NaN')
  })

  it('an element off by the last bit of an exact op', async () => {
    const result = await run(test, (memory, slices) => {
      const { offset, bytes } = at(slices, 2)
      memory.set([(memory[offset + bytes - 4] ?? 0) ^ 1], offset + bytes - 4)
    })
    expect(result.detail).toContain('worst element 65')
  })

  it('a write past the end of the output', async () => {
    const result = await run(test, (memory, slices) => memory.set([0], at(slices, 2).offset + at(slices, 2).bytes))
    expect(result).toMatchObject({ passed: false, detail: 'guard band after z was overwritten, 0 bytes past its end' })
  })

  it('a write before the first buffer', async () => {
    const result = await run(test, (memory) => memory.set([0], 3))
    expect(result.detail).toBe('guard band before the first buffer was overwritten at byte 3')
  })

  it('an input that was overwritten', async () => {
    const result = await run(test, (memory, slices) => memory.set([0x55], at(slices, 1).offset + 5))
    expect(result.detail).toBe('input y was overwritten at byte 5')
  })

  it('a kernel that faults, with its message', async () => {
    const result = await run(test, () => {
      throw new Error('kernel add__f32: read of x[66] is out of bounds')
    })
    expect(result).toMatchObject({ passed: false, detail: 'kernel add__f32: read of x[66] is out of bounds' })
  })

  it('an integer output that was never written', async () => {
    const result = await run(caseOf('argmax', 'f16', / m=2 n=33 integer$/), (memory, slices) =>
      memory.fill(poisonByte('i32'), at(slices, 1).offset, at(slices, 1).offset + 4),
    )
    expect(result).toMatchObject({ passed: false })
  })
})

describe('runCase poisons memory that must not affect a result', () => {
  it('an int8 output that was never written, although it is within a step of the expected value', async () => {
    const test = caseOf('quantize', 'f32', / m=2 n=64 normal$/)
    const saturated = await run({ ...test, attrs: { inverse: -1e30 } })
    expect(saturated).toMatchObject({ passed: true })
    const result = await run({ ...test, attrs: { inverse: -1e30 } }, (memory, slices) => {
      const { offset = 0, bytes = 0 } = slices[1] ?? {}
      const stored = new Int8Array(memory.buffer, memory.byteOffset + offset, bytes)
      stored[stored.indexOf(-127)] = -128
    })
    expect(result).toMatchObject({ passed: false })
    expect(result.detail).toContain('is NaN, expected -127')
  })

  it('the padding of a layout', async () => {
    const test = caseOf('rows_from_col32', 'f32', / m=2 n=33 integer$/)
    expect(await run(test)).toMatchObject({ passed: true })
    const result = await run(test, (memory, slices) => {
      const at = (slice: number): number => memory.byteOffset + (slices[slice]?.offset ?? 0)
      // Column 33 of the first row is padding; were it zero, adding it would go unnoticed.
      const padding = new Float32Array(memory.buffer, at(0) + 4 * (2 * 32 + 1), 1)
      const out = new Float32Array(memory.buffer, at(1), 1)
      out[0] = (out[0] ?? 0) + (padding[0] ?? 0)
    })
    expect(result).toMatchObject({ passed: false })
  })
})

describe('runCase starts an output that updates an input from that input', () => {
  const test = caseOf('append_step', 'f32', / r=2 s=3 h=5 d=7 .*integer$/)
  const set =
    (at: number, change: (value: number) => number): Fault =>
    (memory, slices) => {
      const stored = new Float32Array(memory.buffer, memory.byteOffset + (slices[3]?.offset ?? 0) + 4 * at, 1)
      stored[0] = change(stored[0] ?? 0)
    }

  it('in its memory, and checks that other elements are unchanged', async () => {
    let slices: readonly { readonly offset: number }[] = []
    const result = await run(test, (_, seen) => {
      slices = seen
    })
    expect(result).toMatchObject({ passed: true })
    expect(slices[3]?.offset).toBe(slices[0]?.offset)
  })

  it('and notices an element next to the written place', async () => {
    for (const at of [0, 104, 209]) {
      const result = await run(
        test,
        set(at, (value) => value + 1),
      )
      expect(result).toMatchObject({ passed: false, detail: expect.stringContaining(`worst element ${at}`) })
    }
  })
})

describe('runCase names the stage that differs first', () => {
  const test = caseOf('add', 'f32', / m=2 n=33 integer$/)
  const wrong: Fault = (memory, slices) => memory.set([0, 0, 0, 0], slices[2]?.offset ?? 0)
  const subject = faultySubject(wrong)

  it('the device, when the IR equals the body', async () => {
    const result = await runCase({ ...subject, kernels: new Map([['add', kernelOf('add')]]) }, test)
    expect(result.detail).toMatch(/^device differs from body and IR: z: 1 of 66/)
  })

  it('the IR, when it differs from the body', async () => {
    const result = await runCase({ ...subject, kernels: new Map([['add', kernelOf('sub')]]) }, test)
    expect(result.detail).toMatch(/^IR differs from body: z/)
  })

  it('only the device, if there is no body', async () => {
    const result = await runCase({ ...subject, ops: {}, kernels: new Map([['add', kernelOf('add')]]) }, test)
    expect(result.detail).toMatch(/^device differs from IR: z: 1 of 66/)
    await expect(runCase({ ...subject, ops: {} }, test)).rejects.toThrow('there is neither a body nor IR of add')
  })
})
