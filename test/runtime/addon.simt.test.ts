import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadAddon, nativeFolder } from '../../src/runtime/addon.js'
import { openDevice } from '../../src/runtime/device.js'
import type { NativeEpilogue, NativeMatmul, NativeSlice, NativeStep } from '../../src/runtime/native.js'
import { type Bench, buildFixture, matmul, openBench, outcome, plugins, scale, slice, slow } from './addon_fixture.js'

const fixture = buildFixture()
const floats = (values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer)
const ramp = Array.from({ length: 16 }, (_, i) => i)

describe.each(plugins(fixture))('the addon on %s', (_name, plugin) => {
  let bench: Bench
  beforeAll(() => {
    bench = openBench(plugin, fixture)
  })

  const run = async (steps: readonly NativeStep[], input: Uint8Array): Promise<number[]> => {
    const program = bench.device.program(steps)
    const [out] = await program.run([{ to: slice(bench.buffer), data: input }], [slice(bench.buffer, 64)])
    return [...new Float32Array(out?.slice().buffer ?? new ArrayBuffer())]
  }

  it('writes, reads and runs', async () => {
    await bench.buffer.write(1000, Uint8Array.of(1, 2, 3))
    expect(await bench.buffer.read(999, 4)).toEqual(expect.objectContaining({ 1: 1, 2: 2, 3: 3, length: 4 }))
    expect(await run([scale(bench, 3)], floats(ramp))).toEqual(ramp.map((x) => x * 3))
  })

  it('fills and copies', async () => {
    const steps: NativeStep[] = [
      { kind: 'fill', label: 'fill', target: slice(bench.buffer, 0, 64), value: 7 },
      { kind: 'copy', label: 'copy', from: slice(bench.buffer, 0, 32), to: slice(bench.buffer, 64, 32) },
    ]
    await bench.device.program(steps).run([], [])
    expect(await bench.buffer.read(64, 32)).toEqual(new Uint8Array(32).fill(7))
  })

  it('repeats the steps between the inputs and the outputs', async () => {
    // Each repeat doubles x into y and moves y to x.
    const back: NativeStep = { kind: 'copy', label: 'back', from: slice(bench.buffer, 64), to: slice(bench.buffer) }
    const program = bench.device.program([scale(bench, 2), back])
    for (const repeats of [1, 2, 10]) {
      const [out] = await program.run([{ to: slice(bench.buffer), data: floats(ramp) }], [slice(bench.buffer)], repeats)
      expect(out).toEqual(floats(ramp.map((x) => x * 2 ** repeats)))
    }
    for (const repeats of [0, -1, 1.5, 100_001, Number.NaN])
      expect(await outcome(() => program.run([], [], repeats))).toBe('INVALID')
  })

  it('aborts between repeats', async () => {
    const program = bench.device.program([slow(bench, 2)])
    const running = program.run([], [], 1000)
    program.abort()
    expect(await outcome(() => running)).toBe('ABORTED')
    expect(await outcome(() => program.run([], [], 2))).toBe('ok')
  })

  it('reads host data before JavaScript can take it away', async () => {
    const memory = Float32Array.from(ramp).buffer
    const data = new Uint8Array(memory)
    const written = bench.buffer.write(0, data)
    structuredClone(memory, { transfer: [memory] })
    await written
    expect(data.byteLength).toBe(0)
    expect(await bench.buffer.read(0, 64)).toEqual(floats(ramp))
  })

  it('preserves the order of queued work', async () => {
    const writes = ramp.map((value) => bench.buffer.write(0, floats([value])))
    const read = bench.buffer.read(0, 4)
    await Promise.all(writes)
    expect(await read).toEqual(floats([15]))
  })

  it('names the faulty step, and continues', async () => {
    const faulty: NativeStep = { ...slow(bench, 0), label: 'layer3/gelu', key: 'fault', dims: [] } as NativeStep
    await expect(bench.device.program([faulty]).run([], [])).rejects.toMatchObject({
      code: 'FAULT',
      message: 'layer3/gelu: kernel fault: read of x[9] is out of bounds',
    })
    expect(await run([scale(bench)], floats(ramp))).toEqual(ramp.map((x) => x * 2))
  })

  it('leaves the event loop free while it works', async () => {
    const running = bench.device.program([slow(bench, 200)]).run([], [])
    const first = await Promise.race([running.then(() => 'run'), new Promise((done) => setImmediate(() => done('event loop')))])
    expect(first).toBe('event loop')
    await running
  })

  it('aborts the current run and those queued after it, not later ones', async () => {
    const program = bench.device.program(Array.from({ length: 1000 }, () => slow(bench, 2)))
    const runs = [program.run([], []), program.run([], [])]
    program.abort()
    for (const aborted of runs) expect(await outcome(() => aborted)).toBe('ABORTED')
    const short = bench.device.program([slow(bench, 0)])
    short.abort()
    expect(await outcome(() => short.run([], []))).toBe('ok')
  })

  it('lets work finish on buffers released in the meantime', async () => {
    const buffer = bench.device.allocate(128)
    const program = bench.device.program([slow(bench, 20), scale({ ...bench, buffer }, 5)])
    const running = program.run([{ to: slice(buffer), data: floats(ramp) }], [slice(buffer, 64)])
    buffer.release()
    program.release()
    expect((await running)[0]).toEqual(floats(ramp.map((x) => x * 5)))
  })

  it('measures runs and steps', async () => {
    const program = bench.device.program([slow(bench, 3), scale(bench)])
    const times = await program.time(4, 1)
    expect(times).toHaveLength(4)
    expect(Math.min(...times)).toBeGreaterThan(0)
    const [slowStep = 0, scaleStep = 0] = await program.profile(3)
    expect(slowStep).toBeGreaterThan(scaleStep)
  })

  it('informs a launch which of its buffers no step of the program writes', async () => {
    const { library, buffer } = bench
    const asks = (key: string, x: NativeSlice): NativeStep => {
      const buffers = [x, slice(buffer, 1024, 64)]
      return { kind: 'kernel', label: key, library, key, buffers, dims: [], attrs: [] }
    }
    const answer = async (step: NativeStep, ...others: readonly NativeStep[]) => {
      const [bytes] = await bench.device.program([step, ...others]).run([], [slice(buffer, 1024, 8)])
      return [...new Float32Array(bytes?.slice().buffer ?? new ArrayBuffer(0))]
    }
    const fill = (offset: number, bytes: number): NativeStep => ({
      kind: 'fill',
      label: 'fill',
      target: slice(buffer, offset, bytes),
      value: 0,
    })
    const x = slice(buffer, 256, 64)
    expect(await answer(asks('constants', x))).toEqual([1, 0])
    // One byte is enough, from a step of any kind, before or after; neighbours do not count.
    expect(await answer(asks('constants', x), fill(0, 256), fill(320, 64))).toEqual([1, 0])
    expect(await answer(asks('constants', x), fill(0, 257))).toEqual([0, 0])
    expect(await answer(asks('constants', x), fill(0, 16), fill(319, 64), fill(16, 16))).toEqual([0, 0])
    const copy: NativeStep = { kind: 'copy', label: 'copy', from: slice(buffer, 512), to: x }
    expect(await answer(asks('constants', x), copy)).toEqual([0, 0])
    expect(await answer(asks('constants', slice(buffer, 512)), copy)).toEqual([1, 0])
    const product = { ...matmul(bench), out: x }
    expect(await answer(asks('constants', x), product)).toEqual([0, 0])
    expect(await answer(asks('constants', slice(buffer, 64)), product)).toEqual([1, 0])
    expect(await answer(asks('constants', x), asks('constants', slice(buffer, 512)))).toEqual([1, 0])
    // For a library that does not declare its outputs, everything counts as written.
    expect(await answer(asks('unsaid', x))).toEqual([0, 0])
  })

  it('informs a launch which buffers the preceding one does not write', async () => {
    const { library, buffer } = bench
    const y = slice(buffer, 1024, 8)
    const step = (
      key: string,
      buffers: readonly NativeSlice[],
      dims: readonly number[],
      attrs: readonly number[],
    ): NativeStep => ({
      kind: 'kernel',
      label: key,
      library,
      key,
      buffers,
      dims,
      attrs,
    })
    const ask = (x: NativeSlice) => step('constants', [x, y], [], [])
    const writes = (target: NativeSlice, n = 1) => step('scale', [slice(buffer, 2048, 64), target], [n], [1])
    const answer = async (...steps: NativeStep[]) => {
      const [bytes] = await bench.device.program(steps).run([], [y])
      return [...new Float32Array(bytes?.slice().buffer ?? new ArrayBuffer(0))]
    }
    const [x, other] = [slice(buffer, 256, 64), slice(buffer, 512, 64)]
    const [changing, constant, settled] = [0, 1, 2]
    // Outputs of the step itself are settled, too: the kernel knows which of them it prefetches.
    expect(await answer(writes(x), writes(other), ask(x))).toEqual([settled, settled])
    expect(await answer(writes(other), writes(x), ask(x))).toEqual([changing, settled])
    expect(await answer(writes(other), ask(x))).toEqual([constant, settled])
    expect(await answer(writes(other), { ...ask(x), changing: [1, 0] } as NativeStep)).toEqual([changing, settled])
    // The work before the first step is unknown.
    expect(await answer(ask(x), writes(x))).toEqual([changing, changing])
    // A step without a launch exposes the step before it, and so does one that may or may not launch.
    expect(await answer(writes(x), writes(other, 0), ask(x))).toEqual([changing, settled])
    const fill: NativeStep = { kind: 'fill', label: 'fill', target: other, value: 0 }
    expect(await answer(writes(x), fill, ask(x))).toEqual([changing, settled])
    expect(await answer(writes(x), writes(other), fill, ask(x))).toEqual([settled, settled])
  })

  it('refuses ranges outside of a buffer, and accepts those that just fit', async () => {
    const out = matmul(bench)
    const reach = (bytes: number) => () => bench.device.program([{ ...out, a: slice(bench.buffer, 0, bytes) }])
    expect(await outcome(reach(64))).toBe('ok')
    expect(await outcome(reach(63))).toBe('INVALID')
    expect(await outcome(() => bench.device.program([{ ...out, out: slice(bench.buffer, 4096 - 64) }]))).toBe('ok')
    expect(await outcome(() => bench.device.program([{ ...out, out: slice(bench.buffer, 4096 - 60) }]))).toBe('INVALID')
    expect(await outcome(() => bench.device.program([{ ...out, a: slice(bench.buffer, 2) }]))).toBe('INVALID')
    const huge = 2 ** 53 - 1
    const overflow: NativeStep = {
      ...out,
      extents: [huge, huge, huge, huge],
      strides: [
        [huge, huge, 1],
        [huge, huge, 1],
        [huge, huge, 1],
      ],
    }
    expect(await outcome(() => bench.device.program([overflow]))).toBe('INVALID')
  })

  it('refuses invalid matmuls and algorithms', async () => {
    const step = matmul(bench)
    expect(await outcome(() => bench.device.algorithms({ ...step, a: slice(bench.buffer, 0, 63) }))).toBe('INVALID')
    const given = (algorithm: Uint8Array) => outcome(() => bench.device.program([{ ...step, algorithm }]).run([], []))
    expect(await given(new Uint8Array(63))).toBe('INVALID')
    // No device has this one, and the CPU device has none.
    expect(await given(new Uint8Array(64).fill(3))).toBe('INVALID')
  })

  it('refuses an epilogue that does not fit its matmul', async () => {
    const { buffer } = bench
    const given = (epilogue: NativeEpilogue, dtypes: NativeMatmul['dtypes'] = [0, 0, 0]) =>
      outcome(() => bench.device.program([{ ...matmul(bench), dtypes, epilogue }]))
    expect(await given({ bias: slice(buffer, 192, 16), residual: slice(buffer, 256, 64), relu: false })).toBe('ok')
    expect(await given({ bias: slice(buffer, 192, 15), relu: false })).toBe('INVALID')
    expect(await given({ bias: slice(buffer, 194, 16), relu: false })).toBe('INVALID')
    expect(await given({ residual: slice(buffer, 256, 63), relu: false })).toBe('INVALID')
    expect(await given({ relu: true })).toBe('ok')
    expect(await given({ relu: true }, [4, 4, 3])).toBe('INVALID')
  })

  it('does not mix devices', async () => {
    const other = openBench(plugin, fixture)
    expect(
      await outcome(() =>
        bench.device.program([{ ...scale(bench), buffers: [slice(other.buffer), slice(bench.buffer)] } as NativeStep]),
      ),
    ).toBe('INVALID')
    expect(await outcome(() => other.device.program([scale({ ...other, library: bench.library })]))).toBe('INVALID')
    other.device.close()
  })

  it('states the size of a failed allocation', () => {
    expect(() => bench.device.allocate(2 ** 52)).toThrow(expect.objectContaining({ code: 'MEMORY' }))
  })

  it('closes after the current work', async () => {
    const closing = openBench(plugin, fixture)
    const program = closing.device.program(Array.from({ length: 1000 }, () => slow(closing, 2)))
    const running = program.run([], [])
    const queued = closing.buffer.read(0, 4)
    closing.device.close()
    closing.device.close()
    expect(await outcome(() => running)).toBe('CLOSED')
    expect(await outcome(() => queued)).toBe('CLOSED')
  })

  it.each(['process.exit(0)', '', 'device.close()'])('ends cleanly with work in flight: %s', (ending) => {
    const script = `
        const addon = require(${JSON.stringify(`${nativeFolder()}/heddle.node`)})
        const device = addon.openDevice(${JSON.stringify(plugin)}, 0)
        const library = device.loadLibrary(${JSON.stringify(fixture)})
        const step = { kind: 'kernel', label: 'slow', library, key: 'slow', buffers: [], dims: [5], attrs: [] }
        const buffer = device.allocate(100)
        device.program(Array(20).fill(step)).run([], [{ buffer, offset: 0, bytes: 100 }]).catch(() => {})
        setTimeout(() => { ${ending} }, 10)`
    execFileSync(process.execPath, ['-e', script])
  })

  it('ends cleanly with the thread that uses it', () => {
    const script = `
      const { Worker, isMainThread } = require('node:worker_threads')
      const body = ${JSON.stringify(`
        const addon = require(process.env.ADDON)
        const device = addon.openDevice(process.env.PLUGIN, 0)
        const library = device.loadLibrary(process.env.FIXTURE)
        const step = { kind: 'kernel', label: 'slow', library, key: 'slow', buffers: [], dims: [5], attrs: [] }
        device.program(Array(200).fill(step)).run([], [])
        require('node:worker_threads').parentPort.postMessage('running')`)}
      const worker = new Worker(body, { eval: true })
      worker.on('message', () => worker.terminate())`
    const env = { ...process.env, ADDON: `${nativeFolder()}/heddle.node`, PLUGIN: plugin, FIXTURE: fixture }
    execFileSync(process.execPath, ['-e', script], { env })
  })
})

describe('runs that are begun ahead', () => {
  const behind = ({ library }: Bench): NativeStep => {
    return { kind: 'kernel', label: 'behind', library, key: 'behind', buffers: [], dims: [], attrs: [] }
  }
  /** Each run multiplies x by `factor`; those of `held` complete only when another run was enqueued after them. */
  const programs = (bench: Bench, factor: number) => {
    const back: NativeStep = { kind: 'copy', label: 'back', from: slice(bench.buffer, 64), to: slice(bench.buffer) }
    const steps = [scale(bench, factor), back]
    return { held: bench.device.program([...steps, behind(bench)]), last: bench.device.program(steps) }
  }

  it('are enqueued while earlier ones run; each returns the values at its end, in order', async () => {
    const bench = openBench(fixture, fixture)
    const { held, last } = programs(bench, 2)
    await bench.buffer.write(0, floats(ramp))
    const order: string[] = []
    const noted = async <T>(name: string, run: Promise<T>): Promise<T> => {
      const result = await run
      order.push(name)
      return result
    }
    const wanted = [slice(bench.buffer)]
    // The worker waits for no end before it takes the next: else the first would never end.
    const runs = [
      noted('0', held.runAhead(wanted)),
      noted('1', held.runAhead(wanted)),
      noted('2', last.runAhead(wanted)),
      noted(
        'read',
        bench.buffer.read(0, 64).then((bytes) => [bytes]),
      ),
    ]
    const results = await Promise.all(runs)
    expect(results.slice(0, 3)).toEqual([2, 4, 8].map((factor) => [floats(ramp.map((x) => x * factor))]))
    expect(results[3]?.[0]).toEqual(results[2]?.[0])
    expect(order).toEqual(['0', '1', '2', 'read'])
    expect([held.begun, held.begunAhead, last.begun, last.begunAhead]).toEqual([2, 1, 1, 1])
    bench.device.close()
  })

  it('report their failures and aborts after earlier runs, and the next run is right', async () => {
    const bench = openBench(fixture, fixture)
    const { held, last } = programs(bench, 2)
    const faulty = bench.device.program([{ ...slow(bench, 0), key: 'fault', dims: [] } as NativeStep])
    const aborted = bench.device.program(Array.from({ length: 1000 }, () => slow(bench, 2)))
    await bench.buffer.write(0, floats(ramp))
    const runs = [held.runAhead([]), faulty.runAhead([]), aborted.runAhead([]), last.runAhead([])].map((run) =>
      outcome(() => run),
    )
    aborted.abort()
    expect(await Promise.all(runs)).toEqual(['ok', 'FAULT', 'ABORTED', 'ok'])
    expect(await last.runAhead([slice(bench.buffer)])).toEqual([floats(ramp.map((x) => x * 8))])
    expect(await outcome(() => last.runAhead([slice(bench.buffer, 4095, 2)]))).toBe('INVALID')
    last.release()
    expect(await outcome(() => last.runAhead([]))).toBe('CLOSED')
    bench.device.close()
  })

  it('end cleanly with the device or the process, without anyone waiting for them', async () => {
    const bench = openBench(fixture, fixture)
    const long = bench.device.program(Array.from({ length: 1000 }, () => slow(bench, 2)))
    const runs = [long.runAhead([]), long.runAhead([])].map((run) => outcome(() => run))
    bench.device.close()
    expect(await Promise.all(runs)).toEqual(['CLOSED', 'CLOSED'])
    const script = `
      const addon = require(${JSON.stringify(`${nativeFolder()}/heddle.node`)})
      const device = addon.openDevice(${JSON.stringify(fixture)}, 0)
      const library = device.loadLibrary(${JSON.stringify(fixture)})
      const step = { kind: 'kernel', label: 'behind', library, key: 'behind', buffers: [], dims: [], attrs: [] }
      device.program([step]).runAhead([{ buffer: device.allocate(100), offset: 0, bytes: 100 }])
      setTimeout(() => process.exit(0), 10)`
    execFileSync(process.execPath, ['-e', script])
  })
})

describe('capturing', () => {
  it('replays the captured steps on new inputs', async () => {
    const bench = openBench(fixture, fixture)
    const program = bench.device.program([scale(bench, 3)])
    expect(program.captured).toBe(false)
    await program.capture()
    expect(program.captured).toBe(true)
    for (const factor of [1, -2]) {
      const data = floats(ramp.map((x) => x * factor))
      const [out] = await program.run([{ to: slice(bench.buffer), data }], [slice(bench.buffer, 64)])
      expect(out).toEqual(floats(ramp.map((x) => x * factor * 3)))
    }
    const back: NativeStep = { kind: 'copy', label: 'back', from: slice(bench.buffer, 64), to: slice(bench.buffer) }
    const doubling = bench.device.program([scale(bench, 2), back])
    await doubling.capture()
    const [out] = await doubling.run([{ to: slice(bench.buffer), data: floats(ramp) }], [slice(bench.buffer)], 5)
    expect(out).toEqual(floats(ramp.map((x) => x * 32)))
    expect(await program.time(2, 0)).toHaveLength(2)
    bench.device.close()
  })

  it('reports a step that fails and captures nothing', async () => {
    const bench = openBench(fixture, fixture)
    const program = bench.device.program([{ ...slow(bench, 0), key: 'fault', dims: [] } as NativeStep])
    expect(await outcome(() => program.capture())).toBe('FAULT')
    expect(program.captured).toBe(false)
    bench.device.close()
  })
})

it('reports faults of a plugin', async () => {
  const addon = loadAddon()
  expect(addon.abiVersion).toBe(3)
  expect(() => addon.openDevice('/nowhere/libheddle_x.so', 0)).toThrow(expect.objectContaining({ code: 'UNAVAILABLE' }))
  expect(() => addon.openDevice('libc.so.6', 0)).toThrow(expect.objectContaining({ code: 'INVALID' }))
  expect(() => addon.openDevice(fixture, 2)).toThrow(expect.objectContaining({ code: 'UNAVAILABLE' }))
})

describe('algorithms of a matmul library', () => {
  it('lists them for a matmul, and runs it with the given one', async () => {
    const bench = openBench(fixture, fixture)
    const step = matmul(bench)
    const found = await bench.device.algorithms(step)
    expect(found.map(({ id, workspaceBytes }) => [id, workspaceBytes])).toEqual([
      [7, 64],
      [8, 64],
    ])
    for (const [i, { bytes }] of found.entries()) {
      expect(bytes).toHaveLength(64)
      const program = bench.device.program([{ ...step, algorithm: bytes }])
      const [result = new Uint8Array()] = await program.run([], [slice(bench.buffer, 128, 4)])
      expect(new Float32Array(result.buffer)[0]).toBe(i + 1)
      program.release()
    }
    expect(await bench.device.algorithms(step, 1)).toHaveLength(1)
    for (const most of [0, 1.5, 65_537]) expect(await outcome(() => bench.device.algorithms(step, most))).toBe('INVALID')
    expect(await outcome(() => bench.device.algorithms({ ...step, dtypes: [1, 1, 1] }))).toBe('DEVICE')
    bench.device.close()
  })
})

describe('a GPU of several', () => {
  const own = nativeFolder()
  const folder = mkdtempSync(join(tmpdir(), 'heddle-gpus-'))
  beforeAll(() => {
    // The fixture replaces the plugin and reports two GPUs.
    symlinkSync(join(own, 'heddle.node'), join(folder, 'heddle.node'))
    symlinkSync(fixture, join(folder, 'libheddle_cuda.so'))
    process.env.HEDDLE_NATIVE = folder
  })
  afterAll(() => {
    process.env.HEDDLE_NATIVE = own
    rmSync(folder, { recursive: true })
  })

  it.each([
    ['cuda', 'fixture 0'],
    ['cuda:0', 'fixture 0'],
    ['cuda:1', 'fixture 1'],
  ] as const)('%s opens the one of its number', (name, found) => {
    const device = openDevice(name)
    expect([device.kind, device.info().name]).toEqual(['cuda', found])
    device.close()
  })

  it('that is not there is a typed error', () => {
    const refused = { code: 'device.unavailable', exitCode: 3, message: 'there is no device 7: expected 0 to 1, got 7' }
    expect(() => openDevice('cuda:7')).toThrow(expect.objectContaining(refused))
  })
})
