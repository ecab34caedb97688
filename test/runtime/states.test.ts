/** States of programs on the reference device: operations that move them, and copies. */
import { describe, expect, it } from 'vitest'
import { decode, encode } from '../../src/runtime/buffer.js'
import { buildProgram, type ProgramConfig } from '../../src/runtime/program.js'
import { openStates } from '../../src/runtime/states.js'
import {
  append,
  applied,
  counted,
  counter,
  countingProgram,
  floats,
  gather,
  integers,
  more,
  open,
  overStates,
} from './states_programs.js'

describe('states and repeated runs', () => {
  it.each([1, 3])('count and record as plain JavaScript does: %i steps in a program, 5 repeats', async (unrolled) => {
    const { program, states } = await countingProgram(await open().session, unrolled, 16)
    await states.write('tokens', integers(5, 50, 500))
    expect(await program.run({}, { repeats: 5 })).toEqual({})
    const expected = counted(5 * unrolled, 16, [5, 50, 500])
    expect([...(await states.read('step'))]).toEqual([expected.step])
    expect([...(await states.read('tokens'))]).toEqual(expected.tokens)
    expect([...(await states.read('history'))]).toEqual(expected.history)
    await program.run({})
    expect([...(await states.read('step'))]).toEqual([6 * unrolled])
  })

  it('do not change the history beyond its end', async () => {
    const { program, states } = await countingProgram(await open().session, 3, 4)
    await states.write('tokens', integers(1, 2, 3))
    await program.run({}, { repeats: 3 })
    expect([...(await states.read('history'))]).toEqual(counted(9, 4, [1, 2, 3]).history)
  })

  it('are updated in place if they were read before, and copied otherwise', async () => {
    const labels = async (unrolled: number) =>
      (await countingProgram(await open().session, unrolled, 4)).program.steps
        .filter(({ kind }) => kind === 'copy')
        .map(({ label }) => label)
    expect(await labels(3)).toEqual([])
    expect(await labels(1)).toEqual(['step.next', 'tokens.next'])
  })

  it('use no part of the arena, and report their size', async () => {
    const { program, states } = await countingProgram(await open().session, 1, 100)
    expect(program.memory).toMatchObject({ stateBytes: 4 + 12 + 1200, weightBytes: 0, arenaBytes: 2 * 256 })
    expect(states.bytes).toBe(256 + 256 + 1280)
  })

  it.each([0, 1.5, -1, 100_001, Number.NaN])('refuse %d repeats', async (repeats) => {
    const { program } = await countingProgram(await open().session, 1, 4)
    await expect(program.run({}, { repeats })).rejects.toMatchObject({ code: 'program.repeats', class: 'usage' })
  })

  it('stop when aborted between repeats, and the next run is right', async () => {
    const { program, states } = await countingProgram(await open().session, 1, 8)
    const running = program.run({}, { repeats: 100_000 })
    await states.read('step')
    program.abort()
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' })
    await states.write('step', integers(2))
    await states.write('tokens', integers(7, 8, 9))
    await states.write('history', new Int32Array(24))
    await program.run({}, { repeats: 2 })
    expect([...(await states.read('history'))]).toEqual(counted(2, 8, [7, 8, 9], 2).history)
  })

  it('release memory', async () => {
    const { log, session } = open()
    const before = (await session) && log.live
    const { program, states } = await countingProgram(await session, 1, 4)
    program.release()
    states.release()
    expect(log.live).toBe(before)
  })
})

it('states that were never written are not values, unless cleared', async () => {
  const session = await open().session
  const states = await openStates(session, {
    ids: { dtype: 'i32', shape: [2] },
    cache: { dtype: 'f16', shape: [3] },
    rest: { dtype: 'f32', shape: [2], cleared: true },
  })
  expect([...(await states.read('ids'))]).toEqual([-1, -1])
  expect([...(await states.read('cache'))]).toEqual([Number.NaN, Number.NaN, Number.NaN])
  expect([...(await states.read('rest'))]).toEqual([0, 0])
  await states.write('ids', integers(0, 7))
  expect([...(await states.read('ids'))]).toEqual([0, 7])
})

describe('caches', () => {
  const dims = { r: 2, s: 3, h: 2, d: 2 }
  const shape = [2, 3, 2, 2]

  it('grow in place by the part that each run appends', async () => {
    const session = await open().session
    const states = await openStates(session, {
      cache: { dtype: 'f32', shape, layout: 'split_heads' },
      step: { dtype: 'i32', shape: [1] },
    })
    await states.writeAll({ cache: new Float32Array(24), step: integers(0) })
    const program = await buildProgram({
      session,
      applications: [
        applied('keys', append, { cache: 'cache', x: 'x', step: 'step' }, { appended: 'cache.1' }),
        applied('count', counter, { x: 'step' }, { y: 'step.1' }),
      ],
      inputs: ['x'],
      outputs: ['cache.1'],
      states: {
        cache: { tensor: states.tensors.cache, next: 'cache.1' },
        step: { tensor: states.tensors.step, next: 'step.1' },
      },
      dims,
      types: { T: 'f32' },
    })
    expect(program.steps.map(({ kind }) => kind)).toEqual(['kernel', 'kernel', 'copy'])
    for (const base of [10, 20]) {
      const x = encode('f32', floats(...Array.from({ length: 8 }, (_, i) => base + i)))
      await program.run({ x })
    }
    // Row by row, head by head: two steps of two elements, and an undecoded one.
    const cache = [10, 11, 20, 21, 0, 0, 12, 13, 22, 23, 0, 0, 14, 15, 24, 25, 0, 0, 16, 17, 26, 27, 0, 0]
    expect([...(await states.read('cache'))]).toEqual(cache)
    expect([...(await states.read('step'))]).toEqual([2])
  })

  it('are copied at the end if every row reads others', async () => {
    const session = await open().session
    const states = await openStates(session, { cache: { dtype: 'f32', shape, layout: 'split_heads' } })
    await states.write('cache', floats(...Array.from({ length: 24 }, (_, i) => i)))
    const program = await buildProgram({
      session,
      applications: [applied('beams', gather, { cache: 'cache', beams: 'beams' }, { gathered: 'cache.1' })],
      inputs: ['beams'],
      outputs: ['cache.1'],
      states: { cache: { tensor: states.tensors.cache, next: 'cache.1' } },
      dims,
      types: { T: 'f32' },
    })
    expect(program.steps.map(({ label }) => label)).toEqual(['beams/gathered', 'cache.next'])
    const swap = encode('i32', integers(1, 1, 0, 0, 0, 1))
    const { 'cache.1': first } = await program.run({ beams: swap })
    const expected = [12, 13, 14, 15, 4, 5, 18, 19, 20, 21, 10, 11, 0, 1, 2, 3, 16, 17, 6, 7, 8, 9, 22, 23]
    expect([...decode('f32', first ?? new Uint8Array())]).toEqual(expected)
    expect([...(await states.read('cache'))]).toEqual(expected)
    await program.run({ beams: swap }, { repeats: 3 })
    expect([...(await states.read('cache'))]).toEqual(Array.from({ length: 24 }, (_, i) => i))
  })

  it('are copied before they are replaced if a run needs the old values', async () => {
    const session = await open().session
    const config = (inputs: readonly string[]): ProgramConfig => ({
      session,
      applications: [applied('keys', append, { cache: 'cache', x: 'x', step: 'step' }, { appended: 'after' })],
      inputs,
      outputs: ['after'],
      dims,
      types: { T: 'f32' },
    })
    const program = await buildProgram(config(['cache', 'x', 'step']))
    expect(program.steps.map(({ label }) => label)).toEqual(['keys/appended.cache', 'keys/appended'])
    const given = {
      cache: encode('f32', new Float32Array(24)),
      x: encode('f32', floats(1, 2, 3, 4, 5, 6, 7, 8)),
      step: encode('i32', integers(2)),
    }
    const { after } = await program.run(given, { repeats: 2 })
    expect([...decode('f32', after ?? new Uint8Array())]).toEqual([
      0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0, 7, 8,
    ])
  })
})

describe('next values', () => {
  it('may be those of other states, all at once', async () => {
    const { program, states } = await overStates(await open().session, [], { a: 'b', b: 'c', c: 'a' })
    await states.write('a', integers(1, 1, 1))
    await states.write('b', integers(2, 2, 2))
    await states.write('c', integers(3, 3, 3))
    await program.run({})
    const values = async () => Promise.all(['a', 'b', 'c'].map(async (name) => (await states.read(name))[0]))
    expect(await values()).toEqual([2, 3, 1])
    await program.run({}, { repeats: 2 })
    expect(await values()).toEqual([1, 2, 3])
  })

  it('may be one value for two states, one of which is the old value of the other', async () => {
    const applications = [applied('one', more, { x: 'a' }, { y: 'a.1' }), applied('two', more, { x: 'a.1' }, { y: 'a.2' })]
    const { program, states } = await overStates(await open().session, applications, { a: 'a.2', b: 'a.2', c: 'a' })
    await program.run({}, { repeats: 2 })
    expect([...(await states.read('a'))]).toEqual([4, 4, 4])
    expect([...(await states.read('b'))]).toEqual([4, 4, 4])
    expect([...(await states.read('c'))]).toEqual([2, 2, 2])
  })

  it('may be inputs, and may stay unchanged', async () => {
    const applications = [applied('one', more, { x: 'x' }, { y: 'y' })]
    const { program, states } = await overStates(
      await open().session,
      applications,
      { a: 'x', b: undefined, c: 'c' },
      { inputs: ['x'], outputs: ['y', 'b'] },
    )
    await states.write('b', integers(4, 5, 6))
    const { b } = await program.run({ x: encode('i32', integers(7, 8, 9)) })
    expect([...decode('i32', b ?? new Uint8Array())]).toEqual([4, 5, 6])
    expect([...(await states.read('a'))]).toEqual([7, 8, 9])
  })
})
