/** Calls on a device that runs bodies: results, lifetimes, the order of calls, and every refusal with its message. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { splitHeads as headsLayout } from '../../../specs/layouts/split_heads.js'
import { appendStep } from '../../../specs/ops/append_step.js'
import { embeddingLookup } from '../../../specs/ops/embedding_lookup.js'
import { layerNorm } from '../../../specs/ops/layer_norm.js'
import { scale } from '../../../specs/ops/scale.js'
import { splitHeads } from '../../../specs/ops/split_heads.js'
import { tensor as declare, op } from '../../../src/lang/index.js'
import { runOp } from '../../../src/lang/run.js'
import { entriesByOp, findKernel } from '../../../src/runtime/api/find_kernel.js'
import { type Device, f16, tensor, zeros } from '../../../src/runtime/api/index.js'
import { referenceManifest } from '../reference_device.js'
import { type Opened, openReference } from './open.js'

let opened: Opened
let device: Device
beforeEach(() => {
  opened = openReference()
  device = opened.device
})
afterEach(() => device.close())

const counted = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => Math.sin(i + 1))
const x = tensor('f32', [2, 5], counted(10))
const gamma = tensor('f32', [5], counted(5))
const beta = tensor('f32', [5], [1, 2, 3, 4, 5])

describe('results', () => {
  test('equal the body, with the given attributes', async () => {
    for (const attrs of [{}, { eps: 0.5 }]) {
      const { y } = await device.call(layerNorm, { x, gamma, beta }, { attrs })
      const { y: expected } = runOp(layerNorm, { x, gamma, beta }, { attrs })
      expect(y.shape).toEqual([2, 5])
      expect([...y.data]).toEqual([...Float32Array.from(expected?.data ?? [])])
    }
    expect(opened.log.live).toBe(0)
  })

  test('have the storage type of the input', async () => {
    const { y } = await device.call(scale, { x: tensor('f16', [1, 3], [1, 2, 0.5]) }, { attrs: { factor: 3 } })
    expect(y.dtype).toBe('f16')
    expect([...y.data]).toEqual([...f16.from([3, 6, 1.5])])
  })

  test('come in rows whatever layout the op stores', async () => {
    const heads = tensor('f32', [1, 3, 2, 2], counted(12))
    const { y } = await device.call(splitHeads, { x: heads })
    expect(y.data).toEqual(heads.data)
    const kept = await device.call(splitHeads, { x: heads }, { keep: true })
    expect(kept.y.layout).toBe(headsLayout)
    expect((await kept.y.read()).data).toEqual(heads.data)
  })

  test('of nothing are nothing', async () => {
    const { y } = await device.call(layerNorm, { x: zeros('f32', [0, 5]), gamma, beta })
    expect(y).toEqual(zeros('f32', [0, 5]))
  })
})

describe('device tensors', () => {
  test('stay between calls, mix with those of the host, and are freed', async () => {
    const held = await device.upload(x)
    const { y } = await device.call(layerNorm, { x: held, gamma, beta }, { keep: true })
    const { y: again } = await device.call(scale, { x: y }, { attrs: { factor: 2 } })
    const { y: once } = await device.call(layerNorm, { x, gamma, beta })
    expect([...again.data]).toEqual([...once.data].map((value) => 2 * value))
    expect(opened.log.live).toBe(2)
    held.free()
    held.free()
    y.free()
    expect([opened.log.live, held.freed]).toEqual([0, true])
    await expect(held.read()).rejects.toMatchObject({ code: 'tensor.freed' })
    await expect(device.call(scale, { x: y })).rejects.toMatchObject({
      code: 'tensor.freed',
      message: 'scale: x: the device tensor f32 [2, 5] was freed',
    })
  })

  test('that are freed right after a call are still read by it', async () => {
    const held = await device.upload(x)
    // The first call waits for its kernel, so it starts after `free`.
    const first = device.call(scale, { x: held }, { attrs: { factor: 1 } })
    const read = held.read()
    held.free()
    expect((await first).y.data).toEqual(x.data)
    expect((await read).data).toEqual(x.data)
    expect(opened.log.live).toBe(0)
  })

  test('of another device are refused', async () => {
    const other = openReference().device
    const held = await other.upload(x)
    await expect(device.call(scale, { x: held })).rejects.toMatchObject({
      code: 'tensor.device',
      hint: expect.stringContaining('upload it here'),
    })
  })

  test('keep their layout after upload, and are accepted by ops that need it', async () => {
    const cache = await device.upload(zeros('f32', [1, 2, 1, 3]), { layout: headsLayout })
    const step = tensor('i32', [1], [1])
    const token = tensor('f32', [1, 1, 3], [7, 8, 9])
    await device.call(appendStep, { cache, x: token, step })
    expect([...(await cache.read()).data]).toEqual([0, 0, 0, 7, 8, 9])
    const row = await device.upload(zeros('f32', [1, 2, 1, 3]))
    await expect(device.call(appendStep, { cache: row, x: token, step })).rejects.toMatchObject({
      code: 'call.layout',
      message: 'append_step: cache: expected a device tensor in layout split_heads, got layout row',
    })
    await expect(device.upload(gamma, { layout: headsLayout })).rejects.toMatchObject({ code: 'tensor.layout' })
  })
})

describe('outputs that update an input', () => {
  const token = tensor('f32', [1, 1, 2], [5, 6])
  const step = tensor('i32', [1], [0])
  const cache = zeros('f32', [1, 2, 1, 2])

  test('are returned, and the host tensor is unchanged', async () => {
    const { y } = await device.call(appendStep, { cache, x: token, step })
    expect([...y.data]).toEqual([5, 6, 0, 0])
    expect([...cache.data]).toEqual([0, 0, 0, 0])
    const kept = await device.call(appendStep, { cache, x: token, step }, { keep: true })
    expect([...(await kept.y.read()).data]).toEqual([5, 6, 0, 0])
    expect(opened.log.live).toBe(1)
  })

  test('is the device tensor itself', async () => {
    const held = await device.upload(cache, { layout: headsLayout })
    const kept = await device.call(appendStep, { cache: held, x: token, step }, { keep: true })
    expect(kept.y).toBe(held)
    const { y } = await device.call(appendStep, { cache: held, x: token, step: tensor('i32', [1], [1]) })
    expect([...y.data]).toEqual([5, 6, 5, 6])
    expect([...(await held.read()).data]).toEqual([5, 6, 5, 6])
  })

  test('cannot be another input too', async () => {
    const both = op('append_step', { ...appendStep, inputs: { ...appendStep.inputs, x: appendStep.inputs.cache } } as never)
    const held = await device.upload(cache, { layout: headsLayout })
    await expect(device.call(both as typeof appendStep, { cache: held, x: held, step })).rejects.toMatchObject({
      code: 'call.alias',
      message: 'append_step replaces elements of cache in place, and x is the same device tensor',
    })
  })
})

describe('the order of calls', () => {
  test('is that of the calls, even if the first waits for its kernel', async () => {
    let compiled = (): void => undefined
    const slow = openReference((keys) =>
      keys.includes('append_step__f32') ? new Promise((resolve) => (compiled = resolve)) : Promise.resolve(),
    )
    const held = await slow.device.upload(zeros('f32', [1, 1, 1, 1]), { layout: headsLayout })
    const data = Float32Array.of(3)
    const inputs = { cache: held, x: tensor('f32', [1, 1, 1], data), step: tensor('i32', [1], [0]) }
    const first = slow.device.call(appendStep, inputs)
    // A call uses its arguments as they were when it was made.
    data[0] = 4
    const read = held.read()
    const second = slow.device.call(scale, { x: tensor('f32', [1, 1], [1]) })
    while (slow.asked.length === 0) await new Promise(setImmediate)
    compiled()
    expect([...(await read).data]).toEqual([3])
    await Promise.all([first, second])
    expect(slow.asked).toEqual(['append_step__f32', 'scale__f32'])
  })

  test('is preserved after a failed call', async () => {
    const failing = openReference(async (keys) => {
      if (keys.includes('scale__f32')) throw new Error('no compiler')
    })
    const results = await Promise.allSettled([
      failing.device.call(scale, { x }),
      failing.device.call(layerNorm, { x, gamma, beta }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(failing.log.live).toBe(0)
  })
})

describe('stopping', () => {
  test('a call that was aborted before it began rejects with the reason', async () => {
    const signal = AbortSignal.abort(new Error('no longer wanted'))
    await expect(device.call(scale, { x }, { signal })).rejects.toThrow('no longer wanted')
    await expect(device.upload(x, { signal })).rejects.toThrow('no longer wanted')
    expect(opened.log.runs).toBe(0)
  })

  test('a call that waits for its kernel never runs', async () => {
    const abort = new AbortController()
    const waiting = openReference(async () => abort.abort(new Error('too late')))
    await expect(waiting.device.call(scale, { x }, { signal: abort.signal })).rejects.toThrow('too late')
    expect(waiting.log).toEqual({ live: 0, runs: 0 })
  })

  test('a closed device reports it, after completing its requests', async () => {
    const held = await device.upload(x)
    const last = device.call(scale, { x: held }, { attrs: { factor: 1 } })
    const closing = device.close()
    for (const call of [device.call(scale, { x }), device.upload(x), held.read()]) {
      await expect(call).rejects.toMatchObject({
        code: 'device.closed',
        message: expect.stringContaining('the simt device was closed'),
      })
    }
    expect(() => device.info).toThrow(expect.objectContaining({ code: 'device.closed' }))
    expect((await last).y.data).toEqual(x.data)
    await closing
    await device.close()
  })

  test('leaving a block closes', async () => {
    const { device: other } = openReference()
    await other[Symbol.asyncDispose]()
    await expect(other.upload(x)).rejects.toMatchObject({ code: 'device.closed' })
  })
})

/** Two type parameters, and a dimension that no input has. */
const spread = op('spread', {
  dims: ['n', 'k'],
  types: { T: ['f32', 'f16'], Q: ['i8', 'u8'] },
  inputs: { x: declare('T', 'n') },
  outputs: { y: declare('Q', 'n k') },
  body:
    ({ x: read }) =>
    (n, c) => ({ y: read(n) + c }),
})

/** Calls that TypeScript would also refuse, for authors of JavaScript. */
const loose = (inputs: object, options: object = {}): Promise<unknown> =>
  device.call(layerNorm, inputs as never, options as never)
const long = tensor('f32', [6], counted(6))
const refusals: [what: string, call: () => Promise<unknown>, code: string, message: string, hint?: string][] = [
  [
    'an op that is none',
    () => device.call(undefined as never, {}),
    'call.op',
    'first argument of call: expected an op, got undefined',
    'import',
  ],
  [
    'no inputs',
    () => device.call(layerNorm, undefined as never),
    'call.input',
    'layer_norm: inputs of a call: expected an object, got undefined',
    '{ x, gamma, beta }',
  ],
  [
    'a wrong name',
    () => loose({ x, gama: gamma, beta }),
    'call.input',
    'layer_norm has no input gama',
    'did you mean gamma? inputs are x, gamma, beta',
  ],
  ['a missing input', () => loose({ x, gamma }), 'call.input', 'layer_norm: input beta is missing', 'inputs are x, gamma, beta'],
  [
    'numbers',
    () => loose({ x: [1], gamma, beta }),
    'call.tensor',
    'layer_norm: x: expected a tensor, got an Array',
    "tensor('f32'",
  ],
  [
    'data that does not fit',
    () => loose({ x: { ...x, data: counted(9) }, gamma, beta }),
    'call.data',
    'layer_norm: x: f32 [2, 5]: expected 10 elements, got 9',
  ],
  [
    'data of another kind',
    () => loose({ x: { ...x, data: new Float64Array(10) }, gamma, beta }),
    'call.data',
    'layer_norm: x: expected a Float32Array as the data of f32, got a Float64Array',
    "tensor('f32', shape, values)",
  ],
  [
    'a type that is not allowed',
    () => loose({ x: tensor('i32', [2, 5], new Int32Array(10)), gamma, beta }),
    'call.dtype',
    'layer_norm: T cannot be i32, as given by x',
    'T may be f32, f16, bf16',
  ],
  [
    'two types for one',
    () => loose({ x, gamma: tensor('f16', [5], counted(5)), beta }),
    'call.dtype',
    'layer_norm: gamma is f16, but T is f32 according to x',
    "tensor('f32', shape, toNumbers(gamma))",
  ],
  [
    'a type against the option',
    () => loose({ x, gamma, beta }, { dtype: 'f16' }),
    'call.dtype',
    'layer_norm: x is f32, but T is f16 according to the option dtype',
  ],
  [
    'an unknown parameter',
    () => loose({ x, gamma, beta }, { dtype: { U: 'f16' } }),
    'call.dtype',
    'layer_norm has no type parameter U',
    'type parameters are T',
  ],
  [
    'a fixed type',
    () => device.call(embeddingLookup, { ids: gamma as never, table: x }),
    'call.dtype',
    'embedding_lookup: ids: expected i32, got f32',
  ],
  [
    'a wrong rank',
    () => loose({ x: gamma, gamma, beta }),
    'call.rank',
    'layer_norm: x: expected "m n", of rank 2, got shape [5]',
  ],
  [
    'extents that differ',
    () => loose({ x, gamma: long, beta }),
    'call.extent',
    'layer_norm: dimension n is 6 according to gamma [6], and 5 according to x [2, 5]',
    'gamma is "n"',
  ],
  [
    'an extent against the option',
    () => loose({ x, gamma, beta }, { dims: { m: 3 } }),
    'call.extent',
    'layer_norm: dimension m is 2 according to x [2, 5], and 3 according to dims',
  ],
  [
    'an unknown dimension',
    () => loose({ x, gamma, beta }, { dims: { k: 3 } }),
    'call.dims',
    'layer_norm has no dimension k',
    'dimensions are m, n',
  ],
  [
    'half a dimension',
    () => loose({ x, gamma, beta }, { dims: { m: 1.5 } }),
    'call.dims',
    'layer_norm: dimension m: expected an integer >= 0, got 1.5',
  ],
  [
    'a dimension nothing fixes',
    () => device.call(spread, { x: gamma }, { dtype: { Q: 'i8' } }),
    'call.dims',
    'spread: no input has dimension k: its extent must be given',
    'dims: { k: ... }',
  ],
  [
    'a type nothing fixes',
    () => device.call(spread, { x: gamma }, { dims: { k: 2 } }),
    'call.dtype',
    'spread: no input has type Q: its storage type must be given',
    "dtype: { Q: 'i8' }",
  ],
  [
    'an unknown attribute',
    () => loose({ x, gamma, beta }, { attrs: { epsilon: 1 } }),
    'call.attrs',
    'layer_norm has no attribute epsilon',
    'attributes are eps',
  ],
  [
    'an attribute that is not a number',
    () => loose({ x, gamma, beta }, { attrs: { eps: '1' } }),
    'call.attrs',
    'layer_norm: attribute eps: expected a finite number, got a string',
  ],
  [
    'an attribute without end',
    () => loose({ x, gamma, beta }, { attrs: { eps: 1 / 0 } }),
    'call.attrs',
    'layer_norm: attribute eps: expected a finite number, got Infinity',
  ],
  [
    'attributes that are a list',
    () => loose({ x, gamma, beta }, { attrs: [1] }),
    'call.attrs',
    'layer_norm: expected { name: value } as the option attrs, got an Array',
  ],
  [
    'an unknown option',
    () => loose({ x, gamma, beta }, { attr: { eps: 1 } }),
    'call.option',
    'call has no option attr',
    'did you mean attrs?',
  ],
  [
    'options that are none',
    () => loose({ x, gamma, beta }, null as never),
    'call.option',
    'call: expected options { name: value }, got null',
  ],
  [
    'a signal that is none',
    () => loose({ x, gamma, beta }, { signal: 5 }),
    'call.option',
    'call: expected an AbortSignal as the option signal, got a number',
  ],
  [
    'a flag that is none',
    () => loose({ x, gamma, beta }, { keep: 'no' }),
    'call.option',
    'call: expected true or false as the option keep, got a string',
  ],
]

test.each(refusals)('%s is refused', async (_, call, code, message, hint = '') => {
  await expect(call()).rejects.toMatchObject({ name: 'HeddleError', class: 'usage', code, message })
  await expect(call()).rejects.toMatchObject(hint === '' ? {} : { hint: expect.stringContaining(hint) })
  expect(opened.log.runs).toBe(0)
})

describe('the kernel', () => {
  test('that was never generated is named, with the available ones', async () => {
    await expect(device.call(spread, { x: gamma }, { dtype: { Q: 'i8' }, dims: { k: 2 } })).rejects.toMatchObject({
      class: 'environment',
      code: 'call.kernel',
      message: 'no kernel spread__f32_i8 was generated for spread',
      // The next call compiles it: nothing has to be built ahead.
      hint: 'export it below specs/, then run heddle gen: kernels are compiled at the first call',
    })
  })

  test('of another declaration of the same name is not launched', async () => {
    const other = op('layer_norm', {
      dims: ['m', 'n'],
      types: { T: ['f32'] },
      inputs: { x: declare('T', 'm n'), weight: declare('T', 'n'), beta: declare('T', 'n') },
      outputs: { y: declare('T', 'm n') },
      attrs: { eps: 1e-12 },
      body:
        ({ x: read }) =>
        (m, c) => ({ y: read(m, c) }),
    })
    await expect(device.call(other, { x, weight: gamma, beta })).rejects.toMatchObject({
      code: 'call.stale',
      message:
        'kernel layer_norm__f32 was generated from another declaration of layer_norm: of its tensors, the declaration has ' +
        'in weight: f32 "n" where the kernel has in gamma: f32 "n"',
      hint: 'run heddle gen: the kernel is compiled at the first call; two ops of one name cannot both be generated',
    })
    const attrs = op('layer_norm', { ...layerNorm, attrs: { eps: 1e-6 } } as never) as typeof layerNorm
    await expect(device.call(attrs, { x, gamma, beta })).rejects.toMatchObject({ code: 'call.stale' })
  })

  test('has no dimension that only facts of its declaration name', async () => {
    const halved = op('layer_norm', { ...layerNorm, dims: ['m', 'n', 'u'], facts: { n: '5*u' } } as never) as typeof layerNorm
    await expect(device.call(halved, { x, gamma, beta })).resolves.toMatchObject({ y: { dtype: 'f32' } })
    const other = op('layer_norm', { ...layerNorm, dims: ['m', 'n', 'w'] } as never) as typeof layerNorm
    await expect(device.call(other, { x, gamma, beta }, { dims: { w: 2 } } as never)).rejects.toMatchObject({
      code: 'call.stale',
      message: expect.stringContaining('of its dimensions, the declaration has w where the kernel has none'),
    })
  })

  test("of a shipped op is not confused with a project's op of its name, which is still to be generated", async () => {
    const opened = openReference(undefined, () => true)
    const own = op('layer_norm', { ...layerNorm, attrs: { eps: 1e-3 } } as never) as typeof layerNorm
    const eps = layerNorm.attrs.eps
    await expect(opened.device.call(own, { x, gamma, beta })).rejects.toMatchObject({
      class: 'environment',
      code: 'call.kernel',
      message:
        'no kernel was generated for your own layer_norm; layer_norm__f32 belongs to the shipped layer_norm: of its attributes, the ' +
        `declaration has eps = ${Math.fround(1e-3)} where the kernel has eps = ${Math.fround(eps)}`,
      hint: 'export it below specs/, then run heddle gen: kernels are compiled at the first call',
    })
    expect((await opened.device.call(layerNorm, { x, gamma, beta })).y.shape).toEqual(x.shape)
    await opened.device.close()
  })

  test.each([
    [3, 'use 4 and ignore the rest, or write the number itself into the body, topK(3, ...): a number may be 1 to 64'],
    [100, 'use at most 64, or write the number itself into the body, topK(64, ...): a number may be 1 to 64'],
  ])('that ranks %i elements is refused with the reason', (k, hint) => {
    const ranked = [1, 2, 4, 8, 16, 32, 64].flatMap((count) =>
      referenceManifest()
        .kernels.filter(({ key }) => key === 'layer_norm__f32')
        .map((entry) => ({ ...entry, fixedDims: { k: count } })),
    )
    const call = { op: layerNorm, inputs: {}, types: { T: 'f32' }, dims: { k }, attrs: {}, outputs: {} } as const
    expect(() => findKernel(entriesByOp(ranked), call)).toThrow(
      expect.objectContaining({
        code: 'call.extent',
        message: `layer_norm: dimension k is ${k}, its kernels are compiled for 1, 2, 4, 8, 16, 32, 64`,
        hint,
      }),
    )
  })
})
