/** The same states and repeated runs through generated kernels and the addon. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { buildProgram } from '../../src/runtime/program.js'
import { openSession, type Session } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { type OpenSubject, openSubject, root } from '../conformance/simt.js'
import { append, applied, counted, countingProgram, gather, lookUp } from './states_programs.js'

let subject: OpenSubject
let session: Session
beforeAll(async () => {
  const manifest = await readManifest(root)
  subject = await openSubject()
  session = await openSession({ ...subject, manifest, weights: {} })
})
afterAll(() => {
  session?.release()
  subject?.device.close()
})

const integers = (...values: number[]) => Int32Array.from(values)

describe('states on simt', () => {
  it.each([1, 3])('count and record as plain JavaScript does: %i steps in a program, 5 repeats', async (unrolled) => {
    const { program, states } = await countingProgram(session, unrolled, 12)
    await states.write('tokens', integers(5, 50, 500))
    await program.capture()
    await states.write('step', integers(0))
    await states.write('tokens', integers(5, 50, 500))
    await states.write('history', new Int32Array(36))
    await program.run({}, { repeats: 5 })
    const expected = counted(5 * unrolled, 12, [5, 50, 500])
    expect([...(await states.read('step'))]).toEqual([expected.step])
    expect([...(await states.read('tokens'))]).toEqual(expected.tokens)
    expect([...(await states.read('history'))]).toEqual(expected.history)
    program.release()
    states.release()
  })

  it('that were never written are detected when they are used as indices', async () => {
    const weights = { table: { dtype: 'f32', shape: [5, 4], data: encode('f32', new Float32Array(20).fill(3)) } } as const
    const own = await openSession({ ...subject, manifest: session.manifest, weights })
    const states = await openStates(own, { ids: { dtype: 'i32', shape: [2] } })
    const program = await buildProgram({
      session: own,
      applications: [{ ...applied('words', lookUp, { ids: 'ids' }, { y: 'y' }), weights: { table: 'table' } }],
      inputs: [],
      outputs: ['y'],
      states: { ids: { tensor: states.tensors.ids } },
      dims: { m: 2, v: 5, n: 4 },
      types: { T: 'f32' },
    })
    // Capturing runs steps that have never run.
    const outside = { code: 'device.fault', message: expect.stringMatching(/read of table\[-4.*out of bounds/) }
    await expect(program.capture()).rejects.toMatchObject(outside)
    await expect(program.run({})).rejects.toMatchObject(outside)
    await states.write('ids', integers(4, 0))
    await program.capture()
    const { y } = await program.run({})
    expect([...decode('f32', y ?? new Uint8Array())]).toEqual(Array.from({ length: 8 }, () => 3))
    program.release()
    states.release()
    own.release()
  })

  it('are read after the current run', async () => {
    const { program, states } = await countingProgram(session, 1, 8)
    const running = program.run({}, { repeats: 50 })
    expect([...(await states.read('step'))]).toEqual([50])
    await running
    states.release()
    program.release()
  })

  it('stop when aborted between repeats, and the next run is right', async () => {
    const { program, states } = await countingProgram(session, 1, 8)
    const running = program.run({}, { repeats: 100_000 })
    setTimeout(() => program.abort(), 20)
    await expect(running).rejects.toMatchObject({ code: 'device.aborted' })
    await states.write('step', integers(2))
    await states.write('tokens', integers(7, 8, 9))
    await states.write('history', new Int32Array(24))
    await program.run({}, { repeats: 2 })
    expect([...(await states.read('history'))]).toEqual(counted(2, 8, [7, 8, 9], 2).history)
  })

  it.each(['f32', 'f16', 'bf16'] as const)('caches of %s grow in place and are gathered with a copy', async (dtype) => {
    const dims = { r: 2, s: 3, h: 2, d: 2 }
    const states = await openStates(session, {
      cache: { dtype, shape: [2, 3, 2, 2], layout: 'split_heads' },
      step: { dtype: 'i32', shape: [1] },
    })
    const { cache, step } = states.tensors
    await states.write(
      'cache',
      Float32Array.from({ length: 24 }, (_, i) => i),
    )
    await states.write('step', integers(1))
    const program = await buildProgram({
      session,
      applications: [
        applied('keys', append, { cache: 'cache', x: 'x', step: 'step' }, { appended: 'cache.1' }),
        applied('beams', gather, { cache: 'cache.1', beams: 'beams' }, { gathered: 'cache.2' }),
      ],
      inputs: ['x', 'beams'],
      outputs: ['cache.2'],
      states: { cache: { tensor: cache, next: 'cache.2' }, step: { tensor: step } },
      dims,
      types: { T: dtype },
    })
    expect(program.steps.map(({ kind }) => kind)).toEqual(['kernel', 'kernel', 'copy'])
    const x = encode(dtype, Float32Array.from([100, 101, 102, 103, 104, 105, 106, 107]))
    const { 'cache.2': after } = await program.run({ x, beams: encode('i32', integers(1, 1, 1, 0, 0, 0)) })
    const expected = [12, 13, 104, 105, 16, 17, 18, 19, 106, 107, 22, 23, 0, 1, 100, 101, 4, 5, 6, 7, 102, 103, 10, 11]
    expect([...decode(dtype, after ?? new Uint8Array())]).toEqual(expected)
    expect([...(await states.read('cache'))]).toEqual(expected)
    program.release()
    states.release()
  })

  it('that do not fit are refused with the required and the free bytes, and the device continues', async () => {
    const decls = { cache: { dtype: 'f32', shape: [2 ** 20, 2 ** 20], layout: 'row' } } as const
    await expect(openStates(session, decls)).rejects.toMatchObject({
      code: 'states.memory',
      message: expect.stringMatching(/^states need 4398046511104 bytes of device memory, [0-9]+ are free$/),
    })
    const { program, states } = await countingProgram(session, 1, 4)
    await program.run({})
    expect([...(await states.read('step'))]).toEqual([1])
  })

  it('of another memory than their updates are refused by the launcher', async () => {
    const { device, library } = subject
    const slices = [48, 12, 4, 48].map((bytes) => ({ buffer: device.allocate(bytes), offset: 0, bytes }))
    await library.ensure(['record'])
    const place = { library: library.of('record'), key: 'record', buffers: slices }
    const step = { kind: 'kernel', label: 'record', ...place, dims: [4, 3, 1], attrs: [] } as const
    await expect(device.program([step]).run([], [])).rejects.toMatchObject({
      code: 'device.invalid',
      message: 'record: kernel record: y updates history and must share its memory',
    })
  })
})
