/** States of programs on the reference device: what moves them, what is copied, what is refused. */
import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { record } from '../../specs/ops/record.js'
import { nextStep } from '../../specs/ops/steps.js'
import { environmentError } from '../../src/errors.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { buildProgram, type ProgramConfig, type ProgramStates } from '../../src/runtime/program.js'
import type { Session } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { referenceDevice, referenceLibrary, referenceManifest } from './reference_device.js'
import { append, applied, count, counted, countingProgram, gather, sessionOf } from './states_programs.js'

const manifest = referenceManifest()
const open = () => {
  const { device, log } = referenceDevice(manifest)
  return { log, session: sessionOf({ device, library: referenceLibrary(manifest), manifest }) }
}
const integers = (...values: number[]) => Int32Array.from(values)
const floats = (...values: number[]) => Float32Array.from(values)

/** A program over i32 states of three elements. */
async function overStates(
  session: Session,
  applications: ProgramConfig['applications'],
  next: Readonly<Record<string, string | undefined>>,
  rest: Partial<ProgramConfig> = {},
) {
  const decls = Object.fromEntries(Object.keys(next).map((name) => [name, { dtype: 'i32', shape: [3] } as const]))
  const states = await openStates(session, decls)
  const given: ProgramStates = Object.fromEntries(
    Object.entries(next).map(([name, wire]) => {
      const tensorOf = states.tensors[name]
      if (tensorOf === undefined) throw new Error(`no state ${name}`)
      return [name, wire === undefined ? { tensor: tensorOf } : { tensor: tensorOf, next: wire }]
    }),
  )
  const program = await buildProgram({
    session,
    applications,
    inputs: [],
    outputs: [],
    states: given,
    dims: { r: 3 },
    types: {},
    ...rest,
  })
  return { program, states }
}

/** y is one more than x. */
const more = graph('more', {
  inputs: { x: tensor('i32', 'r') },
  weights: {},
  build: (g, { x }) => {
    const y = g.apply(nextStep, { step: x }).y
    return { nodes: { y }, outputs: { y } }
  },
}).graph

/** The same for one element. */
const counter = graph('counter', {
  inputs: { x: tensor('i32', '1') },
  weights: {},
  build: (g, { x }) => {
    const y = g.apply(nextStep, { step: x }).y
    return { nodes: { y }, outputs: { y } }
  },
}).graph

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

  it('leave the history alone beyond its end', async () => {
    const { program, states } = await countingProgram(await open().session, 3, 4)
    await states.write('tokens', integers(1, 2, 3))
    await program.run({}, { repeats: 3 })
    expect([...(await states.read('history'))]).toEqual(counted(9, 4, [1, 2, 3]).history)
  })

  it('are made in place where they were read before, and copied where they were not', async () => {
    const labels = async (unrolled: number) =>
      (await countingProgram(await open().session, unrolled, 4)).program.steps
        .filter(({ kind }) => kind === 'copy')
        .map(({ label }) => label)
    expect(await labels(3)).toEqual([])
    expect(await labels(1)).toEqual(['step.next', 'tokens.next'])
  })

  it('take no part of the arena, and say what they take', async () => {
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

  it('give memory back', async () => {
    const { log, session } = open()
    const before = (await session) && log.live
    const { program, states } = await countingProgram(await session, 1, 4)
    program.release()
    states.release()
    expect(log.live).toBe(before)
  })
})

describe('caches', () => {
  const dims = { r: 2, s: 3, h: 2, d: 2 }
  const shape = [2, 3, 2, 2]

  it('grow in place by what each run appends', async () => {
    const session = await open().session
    const states = await openStates(session, {
      cache: { dtype: 'f32', shape, layout: 'split_heads' },
      step: { dtype: 'i32', shape: [1] },
    })
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
    // Row by row, head by head: two steps of two elements, and one that is not decoded yet.
    const cache = [10, 11, 20, 21, 0, 0, 12, 13, 22, 23, 0, 0, 14, 15, 24, 25, 0, 0, 16, 17, 26, 27, 0, 0]
    expect([...(await states.read('cache'))]).toEqual(cache)
    expect([...(await states.read('step'))]).toEqual([2])
  })

  it('are copied at the end where every row reads others', async () => {
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

  it('are copied before they are replaced where a run must find them again', async () => {
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

  it('may be one value for two states, one of them what another state was', async () => {
    const applications = [applied('one', more, { x: 'a' }, { y: 'a.1' }), applied('two', more, { x: 'a.1' }, { y: 'a.2' })]
    const { program, states } = await overStates(await open().session, applications, { a: 'a.2', b: 'a.2', c: 'a' })
    await program.run({}, { repeats: 2 })
    expect([...(await states.read('a'))]).toEqual([4, 4, 4])
    expect([...(await states.read('b'))]).toEqual([4, 4, 4])
    expect([...(await states.read('c'))]).toEqual([2, 2, 2])
  })

  it('may be inputs, and may stay what they were', async () => {
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

describe('refusals', () => {
  const one = [applied('one', more, { x: 'a' }, { y: 'a.1' })]
  const refused = async (
    ...[applications, next, rest]: Parameters<typeof overStates> extends [unknown, ...infer R] ? R : never
  ) => overStates(await open().session, applications, next, rest)

  it('of a next value nothing computes', async () =>
    expect(refused(one, { a: 'b.1' })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state a: its next value b.1 is not computed',
    }))

  it('of an output that is what a state was', async () =>
    expect(refused(one, { a: 'a.1' }, { outputs: ['a'] })).rejects.toMatchObject({
      code: 'program.state',
      message: expect.stringContaining('output a'),
    }))

  it('of an input that is a state', async () =>
    expect(refused(one, { a: 'a.1' }, { inputs: ['a'] })).rejects.toMatchObject({ code: 'program.state' }))

  /** Records twice into the same history, or reads it again. */
  const historic = async (
    applications: ProgramConfig['applications'],
    history: { next?: string; shape?: readonly number[] },
    outputs: readonly string[] = [],
  ) => {
    const session = await open().session
    const states = await openStates(session, {
      history: { dtype: 'i32', shape: history.shape ?? [4, 3] },
      tokens: { dtype: 'i32', shape: [3] },
      step: { dtype: 'i32', shape: [1] },
    })
    const next = history.next === undefined ? {} : { next: history.next }
    return buildProgram({
      session,
      applications,
      inputs: [],
      outputs,
      states: {
        history: { tensor: states.tensors.history, ...next },
        tokens: { tensor: states.tensors.tokens },
        step: { tensor: states.tensors.step },
      },
      dims: { s: 4, r: 3 },
      types: {},
    })
  }
  const first = applied(
    'first',
    count,
    { step: 'step', tokens: 'tokens', history: 'history' },
    { counted: 's1', more: 't1', recorded: 'h1' },
  )
  const second = applied(
    'second',
    count,
    { step: 'step', tokens: 'tokens', history: 'history' },
    { counted: 's2', more: 't2', recorded: 'h2' },
  )

  it('of a value that was replaced in place and is read once more', async () => {
    await expect(historic([first, second], { next: 'h2' })).rejects.toMatchObject({
      code: 'program.replaced',
      message: 'second/recorded needs a value of which first/recorded has replaced elements in place',
      hint: 'let it read the result of first/recorded, or come before it',
    })
    await expect(historic([first], { next: 'h1' }, ['history'])).rejects.toMatchObject({ code: 'program.replaced' })
    await expect(
      historic([first, { ...second, inputs: { ...second.inputs, history: 'h1' } }], { next: 'h1' }),
    ).rejects.toMatchObject({
      code: 'program.replaced',
      message: expect.stringContaining('state history'),
    })
  })

  it('of a state that is replaced and does not say what is next', async () =>
    expect(historic([first], {})).rejects.toMatchObject({
      code: 'program.state',
      message: expect.stringContaining('first/recorded replaces elements of it, and its next value is not said'),
    }))

  it('of a next value of another form, and of memory of another size', async () => {
    await expect(historic([first], { next: 't1' })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state history: it is i32 [4, 3] in layout row, its next value t1 is i32 [3] in layout row',
    })
    const session = await open().session
    const { tensors } = await openStates(session, { a: { dtype: 'i32', shape: [3] } })
    const build = (states: ProgramStates) =>
      buildProgram({ session, applications: [], inputs: [], outputs: [], states, dims: {}, types: {} })
    await expect(build({ a: { tensor: { ...tensors.a, shape: [4] } } })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state a: its memory has 12 bytes, i32 [4] in layout row takes 16',
    })
    await expect(build({ a: { tensor: tensors.a }, b: { tensor: tensors.a } })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state b: it shares memory with state a',
    })
  })

  it('of a node that reads what it replaces by another name', async () => {
    const { graph: twice } = graph('twice', {
      inputs: { step: tensor('i32', '1'), history: tensor('i32', '1 r') },
      weights: {},
      build: (g, { step, history }) => {
        const recorded = g.apply(record, { history, x: g.view(history, 'r'), step }).y
        return { nodes: { recorded }, outputs: { recorded } }
      },
    })
    const wires = { step: 'step', history: 'history' }
    const config = { inputs: ['step'], outputs: ['after'], dims: { r: 3 }, types: {} }
    const session = await open().session
    const states = await openStates(session, { history: { dtype: 'i32', shape: [1, 3] } })
    const history = { tensor: states.tensors.history, next: 'after' }
    await expect(
      buildProgram({
        ...config,
        session,
        applications: [applied('a', twice, wires, { recorded: 'after' })],
        states: { history },
      }),
    ).rejects.toMatchObject({
      code: 'program.replaced',
      message: 'a/recorded replaces elements of history in place and reads the same memory as x',
    })
  })

  it('of states of unknown names and other lengths', async () => {
    const { states } = await countingProgram(await open().session, 1, 4)
    await expect(states.write('step', integers(1, 2))).rejects.toMatchObject({
      code: 'states.values',
      message: 'state step is i32 [1] in layout row, 4 bytes: 2 elements have 8',
    })
    const unknown: string = 'steps'
    await expect(states.read(unknown as 'step')).rejects.toMatchObject({ code: 'states.name' })
  })

  it('of states that do not fit, with the bytes needed and free', async () => {
    const { device } = referenceDevice(manifest)
    const small = {
      ...device,
      info: () => ({ ...device.info(), memoryFreeBytes: 1000 }),
      allocate: (bytes: number) => {
        if (bytes > 1000) throw environmentError('device.memory', 'out of device memory')
        return device.allocate(bytes)
      },
    }
    await expect(openStates({ device: small, layouts }, { cache: { dtype: 'f16', shape: [600] } })).rejects.toMatchObject({
      code: 'states.memory',
      class: 'environment',
      message: 'states need 1280 bytes of device memory, 1000 are free',
    })
    await expect(openStates({ device: small, layouts }, { cache: { dtype: 'f16', shape: [300] } })).resolves.toMatchObject({
      bytes: 768,
    })
  })
})
