/** Refusals for states of programs on the reference device. */
import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { record } from '../../specs/ops/record.js'
import { environmentError } from '../../src/errors.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { buildProgram, type ProgramConfig, type ProgramStates } from '../../src/runtime/program.js'
import { openStates } from '../../src/runtime/states.js'
import { referenceDevice } from './reference_device.js'
import { applied, count, countingProgram, integers, manifest, more, open, overStates } from './states_programs.js'

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

  it('of an output that is the old value of a state', async () =>
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
      message: 'second/recorded reads a value that first/recorded has overwritten in place',
      hint: 'read the result of first/recorded, or run second/recorded before it',
    })
    await expect(historic([first], { next: 'h1' }, ['history'])).rejects.toMatchObject({ code: 'program.replaced' })
    await expect(
      historic([first, { ...second, inputs: { ...second.inputs, history: 'h1' } }], { next: 'h1' }),
    ).rejects.toMatchObject({
      code: 'program.replaced',
      message: expect.stringContaining('state history'),
    })
  })

  it('of a replaced state without a next value', async () =>
    expect(historic([first], {})).rejects.toMatchObject({
      code: 'program.state',
      message: expect.stringContaining('first/recorded replaces elements of it, but it has no next value'),
    }))

  it('of a next value of another form, and of memory of another size', async () => {
    await expect(historic([first], { next: 't1' })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state history: expected next value t1 of form i32 [4, 3] in layout row, got i32 [3] in layout row',
    })
    const session = await open().session
    const { tensors } = await openStates(session, { a: { dtype: 'i32', shape: [3] } })
    const build = (states: ProgramStates) =>
      buildProgram({ session, applications: [], inputs: [], outputs: [], states, dims: {}, types: {} })
    await expect(build({ a: { tensor: { ...tensors.a, shape: [4] } } })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state a: expected 16 bytes of memory for i32 [4] in layout row, got 12',
    })
    await expect(build({ a: { tensor: tensors.a }, b: { tensor: tensors.a } })).rejects.toMatchObject({
      code: 'program.state',
      message: 'state b: it shares memory with state a',
    })
  })

  it('of a node that reads its replaced input under another name', async () => {
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
      message: 'state step: expected i32 [1] in layout row, 4 bytes, got 2 elements, 8 bytes',
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
