/** Every method of the addon in every state, then random bad calls: typed errors, and the process lives. */
import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadAddon } from '../../src/runtime/addon.js'
import type { NativeBuffer, NativeStep } from '../../src/runtime/native.js'
import {
  type Bench,
  buildFixture,
  matmul,
  nativeCodes,
  openBench,
  outcome,
  plugins,
  scale,
  slice,
  slow,
} from './addon_fixture.js'

const fixture = buildFixture()

interface Subject extends Bench {
  readonly program: ReturnType<Bench['device']['program']>
}

const subject = (plugin: string): Subject => {
  const bench = openBench(plugin, fixture)
  return { ...bench, program: bench.device.program([slow(bench, 1), scale(bench)]) }
}

const states: Record<string, (it: Subject) => unknown> = {
  fresh: () => undefined,
  running: ({ program }) => void program.run([], []).catch(() => undefined),
  captured: ({ program }) => program.capture(),
  aborted: ({ program }) => program.abort(),
  released: ({ program, buffer }) => {
    program.release()
    buffer.release()
  },
  closed: ({ device }) => device.close(),
}

const methods: Record<string, (it: Subject) => unknown> = {
  'device.info': ({ device }) => device.info(),
  'device.allocate': ({ device }) => device.allocate(8).release(),
  'device.loadLibrary': ({ device }) => device.loadLibrary(fixture),
  'device.program': (it) => it.device.program([slow(it, 0)]),
  'device.program on the buffer': (it) => it.device.program([scale(it)]),
  'device.close': ({ device }) => device.close(),
  'buffer.write': ({ buffer }) => buffer.write(0, new Uint8Array(8)),
  'buffer.read': ({ buffer }) => buffer.read(0, 8),
  'buffer.release': ({ buffer }) => buffer.release(),
  'program.run': ({ program }) => program.run([], []),
  'program.run on the buffer': ({ program, buffer }) => program.run([], [slice(buffer)]),
  'program.capture': ({ program }) => program.capture(),
  'program.time': ({ program }) => program.time(1, 0),
  'program.profile': ({ program }) => program.profile(1),
  'program.abort': ({ program }) => program.abort(),
  'program.release': ({ program }) => program.release(),
}

/** Calls that still work after closing, where all others are refused with CLOSED. */
const allowed: Record<string, RegExp> = {
  released: /^device\.(?!program on)|release$/,
  closed: /close$|release$/,
}

describe.each(plugins(fixture))('every method in every state on %s', (_name, plugin) => {
  const cells = Object.keys(states).flatMap((state) => Object.keys(methods).map((method) => [state, method] as const))
  it.each(cells)('%s: %s', async (state, method) => {
    const it = subject(plugin)
    await states[state]?.(it)
    const works = allowed[state]?.test(method) ?? true
    expect(await outcome(() => methods[method]?.(it))).toBe(works ? 'ok' : 'CLOSED')
    it.device.close()
  })
})

describe.each(plugins(fixture))('random bad calls on %s', (_name, plugin) => {
  const opened = openBench(plugin, fixture)
  const bench: Subject = { ...opened, program: opened.device.program([scale(opened)]) }
  const elsewhere = openBench(plugin, fixture)
  const closed = openBench(plugin, fixture)
  closed.device.close()
  const released = bench.device.allocate(64)
  released.release()
  const detached = new Uint8Array(64)
  structuredClone(detached.buffer, { transfer: [detached.buffer as ArrayBuffer] })

  class OwnError extends Error {
    readonly code = 'OWN'
  }
  const hostile = {
    get buffer(): NativeBuffer {
      throw new OwnError('a getter of the caller')
    },
  }
  const vandal = {
    offset: 0,
    bytes: 8,
    get buffer() {
      const buffer = bench.device.allocate(64)
      queueMicrotask(() => buffer.release())
      return buffer
    },
  }
  const impostor = Object.create(bench.buffer)

  // No sizes of a few gigabytes, which a device may really have: filling such a buffer is slow, not wrong.
  const numbers = [-1, -0, 0, 1, 3, 0.5, 64, 4095, 4096, 4097, 2 ** 53 - 1, 2 ** 53, 1e308, Infinity, -Infinity, NaN]
  const strings = ['', 'scale', 'kernel', 'matmul', 'fill', 'copy', 'a\0b', '\ud800', 'x'.repeat(5000), fixture]
  const objects = [
    ...[bench.buffer, released, elsewhere.buffer, closed.buffer, bench.library, elsewhere.library, bench.device, bench.program],
    ...[
      new Uint8Array(64),
      new Uint8Array(0),
      new Float32Array(4),
      new DataView(new ArrayBuffer(8)),
      new ArrayBuffer(8),
      detached,
    ],
    ...[
      new Uint8Array(new SharedArrayBuffer(64)),
      {},
      [],
      Array(3),
      new Proxy(bench.buffer, {}),
      impostor,
      hostile,
      vandal,
      new Date(),
    ],
    ...[slice(bench.buffer), slice(released), slice(elsewhere.buffer), slice(bench.buffer, 4090, 10), () => 0, Symbol('s'), 10n],
  ]
  const odd = fc.constantFrom<unknown>(...numbers, ...strings, ...objects, undefined, null, true)
  const value: fc.Arbitrary<unknown> = fc.oneof(
    { weight: 6, arbitrary: odd },
    { weight: 1, arbitrary: fc.array(odd, { maxLength: 4 }) },
    { weight: 1, arbitrary: fc.record({ buffer: odd, offset: odd, bytes: odd }, { requiredKeys: [] }) },
    { weight: 1, arbitrary: fc.anything() },
  )

  /** A good step with one or two of its parts, at any depth, replaced. */
  const steps: readonly NativeStep[] = [
    scale(bench),
    matmul(bench),
    { ...matmul(bench), algorithm: new Uint8Array(64) },
    { ...matmul(bench), epilogue: { bias: slice(bench.buffer, 192), residual: slice(bench.buffer, 256), relu: true } },
    { kind: 'fill', label: 'fill', target: slice(bench.buffer), value: 1 },
    { kind: 'copy', label: 'copy', from: slice(bench.buffer), to: slice(bench.buffer, 64) },
  ]
  const replaced = (part: unknown, path: readonly number[], by: unknown): unknown => {
    const [at, ...rest] = path
    const isPlain =
      Array.isArray(part) || (typeof part === 'object' && part !== null && Object.getPrototypeOf(part) === Object.prototype)
    if (at === undefined || !isPlain || Object.isFrozen(part)) return by
    const keys = Object.keys(part)
    const key = keys[at % Math.max(keys.length, 1)]
    if (key === undefined) return by
    const old: unknown = Reflect.get(part, key)
    const copy = Array.isArray(part) ? [...part] : { ...part }
    Reflect.set(copy, key, replaced(old, rest, by))
    return copy
  }
  const step = fc
    .tuple(fc.constantFrom(...steps), fc.array(fc.nat(12), { minLength: 1, maxLength: 3 }), value)
    .map(([good, path, by]) => replaced(good, path, by))

  const targets: readonly [object: object, method: string, argument: fc.Arbitrary<unknown>][] = [
    [loadAddon(), 'openDevice', value],
    [bench.device, 'allocate', value],
    [bench.device, 'loadLibrary', value],
    [bench.device, 'program', fc.oneof(value, fc.array(step, { maxLength: 3 }))],
    [bench.device, 'algorithms', fc.oneof(value, step)],
    [bench.device, 'info', value],
    [bench.buffer, 'write', value],
    [bench.buffer, 'read', value],
    [released, 'write', value],
    [closed.buffer, 'read', value],
    [
      bench.program,
      'run',
      fc.oneof(value, fc.array(fc.record({ to: value, data: value }), { maxLength: 2 }), fc.array(value, { maxLength: 2 })),
    ],
    [bench.program, 'profile', value],
    [bench.program, 'time', value],
    [bench.program, 'capture', value],
  ]
  const call = fc
    .constantFrom(...targets)
    .chain(([object, method, argument]) =>
      fc.tuple(
        fc.constant(object),
        fc.constant(method),
        fc.oneof(value, fc.constant(object)),
        fc.array(argument, { maxLength: 3 }),
      ),
    )

  it('gives typed errors, and the device still works', async () => {
    const seen = new Map<string, number>()
    const callsPerPlugin = 50_000
    await fc.assert(
      fc.asyncProperty(call, async ([object, method, receiver, args]) => {
        const settled = await outcome(() => Reflect.apply(Reflect.get(object, method), receiver, args))
        seen.set(settled, (seen.get(settled) ?? 0) + 1)
        expect(['ok', 'OWN', ...nativeCodes]).toContain(settled)
      }),
      { numRuns: callsPerPlugin, seed: 20, endOnFailure: true },
    )
    expect(seen.get('INVALID') ?? 0).toBeGreaterThan(callsPerPlugin / 2)
    expect(seen.get('ok') ?? 0).toBeGreaterThan(0)
    expect(await outcome(() => bench.program.run([], [slice(bench.buffer)]))).toBe('ok')
  })
})

describe.each(plugins(fixture))('devices that were closed on %s', (_name, plugin) => {
  const threads = (): number => readdirSync('/proc/self/task').length

  it('leave no thread, even without garbage collection', async () => {
    const before = threads()
    const closed = Array.from({ length: 200 }, () => {
      const device = loadAddon().openDevice(plugin, 0)
      device.allocate(64)
      device.close()
      return device
    })
    // Threads end on their own; the time depends on the machine.
    for (let wait = 0; threads() > before + 8 && wait < 600; wait++) await sleep(50)
    expect(threads()).toBeLessThanOrEqual(before + 8)
    expect(closed).toHaveLength(200)
  })
})
