/** Checkpoints on disk: read by position, in one file or in shards, of any size; damaged ones are reported by name. */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, open, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectCount, findTensor, openCheckpoint, takeTensor } from '../../src/checkpoint/checkpoint.js'
import { convertTensor, type FloatType, floatTypes } from '../../src/checkpoint/convert.js'
import { holdsNonFinite } from '../../src/checkpoint/finite.js'
import { formatSafetensors, openSafetensors, readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { inMemory, piecesOf, weightBytes } from '../../src/runtime/weight.js'

let dir = ''
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-checkpoint-'))
})
afterAll(() => rm(dir, { recursive: true }))

let folders = 0
async function folder(files: Readonly<Record<string, Uint8Array | string>>): Promise<string> {
  const path = join(dir, String(folders++))
  await mkdir(path)
  for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), content)
  return path
}

const stored = (
  dtype: 'F32' | 'F16' | 'BF16',
  values: readonly number[],
  shape: readonly number[] = [values.length],
): StoredTensor => ({
  dtype,
  shape,
  data: encode(dtype.toLowerCase() as FloatType, Float32Array.from(values)),
})
const one = stored('F32', [1, 2])
const two = stored('BF16', [3, 4, 5, 6], [2, 2])

const index = (map: Readonly<Record<string, unknown>>, total: unknown = 16): string =>
  JSON.stringify({ metadata: total === undefined ? {} : { total_size: total }, weight_map: map })
const shards = {
  'a.safetensors': formatSafetensors([['one', one]]),
  'b.safetensors': formatSafetensors([['two', two]]),
}
const both = { one: 'a.safetensors', two: 'b.safetensors' }

const valuesOf = async (path: string, name: string, dtype: FloatType = 'f32'): Promise<number[]> => {
  const found = findTensor(await openCheckpoint(path), [name])
  if (found === undefined) throw new Error(`no tensor ${name}`)
  const { data } = await inMemory(convertTensor(...found, dtype))
  return Array.from(decode(dtype, data))
}

describe('a checkpoint', () => {
  it('is one file, or the files an index names', async () => {
    const single = await folder({ 'model.safetensors': formatSafetensors([['one', one]]) })
    const sharded = await folder({ ...shards, 'model.safetensors.index.json': index(both) })
    expect(await valuesOf(single, 'one')).toEqual([1, 2])
    expect(await valuesOf(sharded, 'one')).toEqual([1, 2])
    expect(await valuesOf(sharded, 'two')).toEqual([3, 4, 5, 6])
  })

  it('has the size of its files, whatever its index states', async () => {
    for (const total of [17, -1, 1e300, 'many', null]) {
      const sharded = await folder({ ...shards, 'model.safetensors.index.json': index(both, total) })
      expect(await valuesOf(sharded, 'two')).toEqual([3, 4, 5, 6])
    }
  })

  it('that is missing is named by the files that were looked for, and by those that are there', async () => {
    const nothing = await folder({})
    await expect(openCheckpoint(nothing)).rejects.toMatchObject({
      code: 'safetensors.read',
      message: `${nothing} has no weights: neither model.safetensors nor model.safetensors.index.json is there`,
      hint: expect.stringContaining('download'),
    })
    await expect(openCheckpoint(await folder({ ...shards, 'README.md': 'nothing' }))).rejects.toMatchObject({
      message: expect.stringContaining('neither model.safetensors nor'),
      hint: expect.stringContaining('a.safetensors, b.safetensors'),
    })
    await expect(openCheckpoint(await folder({ 'pytorch_model.bin': 'x' }))).rejects.toMatchObject({
      hint: expect.stringContaining('pytorch_model.bin'),
    })
  })

  it('that is still a Git LFS pointer is reported as such', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4665\nsize 123\n'
    for (const files of [
      { 'model.safetensors': pointer },
      { 'a.safetensors': pointer, 'b.safetensors': pointer, 'model.safetensors.index.json': index(both) },
    ]) {
      await expect(openCheckpoint(await folder(files))).rejects.toMatchObject({
        code: 'safetensors.header',
        message: expect.stringMatching(/safetensors: the file is a pointer of Git LFS/),
        hint: expect.stringContaining('git lfs pull'),
      })
    }
  })

  const more = formatSafetensors([
    ['one', one],
    ['two', two],
  ])
  it.each([
    ['an index that is not JSON', '{', shards, 'checkpoint.index', 'is not JSON'],
    ['an index without a map', '{"metadata":{}}', shards, 'checkpoint.index', 'has no weight_map'],
    [
      'a tensor named twice',
      '{"weight_map":{"one":"a.safetensors","one":"b.safetensors"}}',
      shards,
      'checkpoint.index',
      'one twice',
    ],
    ['a file outside the folder', index({ one: '../a.safetensors' }), shards, 'checkpoint.index', 'beside the index'],
    ['a file that is a number', index({ one: 1 }), shards, 'checkpoint.index', 'tensor one is in 1'],
    [
      'a file that is missing',
      index(both),
      { 'a.safetensors': shards['a.safetensors'] },
      'safetensors.read',
      'index.json names b.safetensors, and there is no such file',
    ],
    [
      'a tensor in another file',
      index({ one: 'b.safetensors', two: 'b.safetensors' }),
      shards,
      'checkpoint.shard',
      'one is not in b.s',
    ],
    [
      'a tensor in two files',
      index(both),
      { ...shards, 'a.safetensors': more },
      'checkpoint.shard',
      'the index names b.safetensors',
    ],
    ['a tensor that is nowhere', index({ ...both, three: 'a.safetensors' }), shards, 'checkpoint.shard', 'three is not in a.s'],
    [
      'a tensor the index lacks',
      index({ one: 'a.safetensors' }, 8),
      { 'a.safetensors': more },
      'checkpoint.shard',
      'does not name it',
    ],
  ] as const)('refuses %s', async (_, text, files, code, message) => {
    const path = await folder({ ...files, 'model.safetensors.index.json': text })
    await expect(openCheckpoint(path)).rejects.toMatchObject({ code, exitCode: 2, message: expect.stringContaining(message) })
  })

  it('has room for its layers, or is refused before any is allocated', () => {
    const file = { tensors: new Map([['one', one]]) }
    expect(() => expectCount(file, 'num_hidden_layers', 1)).not.toThrow()
    expect(() => expectCount(file, 'num_hidden_layers', 2 ** 31 - 1)).toThrow(
      expect.objectContaining({ code: 'config.count', message: expect.stringContaining('num_hidden_layers is 2147483647') }),
    )
  })
})

describe('a file larger than 2 GiB', () => {
  const far = 2 ** 31 + 4096
  /** Two tensors, of which only the last bytes are written: the rest takes no disk. */
  async function sparse(path: string): Promise<void> {
    const header = JSON.stringify({
      wide: { dtype: 'BF16', shape: [far / 2], data_offsets: [0, far] },
      last: { dtype: 'F32', shape: [2], data_offsets: [far, far + 8] },
    })
    const file = await open(path, 'w')
    try {
      const prefix = Buffer.alloc(8)
      prefix.writeBigUInt64LE(BigInt(header.length))
      await file.write(Buffer.concat([prefix, Buffer.from(header)]), 0)
      await file.write(Buffer.from(new Float32Array([7, 8]).buffer), 0, 8, 8 + header.length + far)
    } finally {
      await file.close()
    }
  }

  it('reads only the requested bytes', async () => {
    const path = await folder({})
    await sparse(join(path, 'model.safetensors'))
    expect(await valuesOf(path, 'last')).toEqual([7, 8])
    const [, wide] = findTensor(await openCheckpoint(path), ['wide']) ?? []
    const weight = takeTensor(['wide', wide ?? one], 'wide', [far / 2], 'bf16')
    expect(weightBytes(weight)).toBe(far)
    let first = 0
    for await (const piece of piecesOf(weight)) {
      first = piece.byteLength
      break
    }
    expect(first).toBe(4 * 2 ** 20)
  })
})

describe('reading a tensor', () => {
  const long = stored(
    'F32',
    Array.from({ length: 5_000_000 }, (_, i) => i % 1000),
  )
  const path = () => folder({ 'model.safetensors': formatSafetensors([['long', long]]) })

  it('returns its bytes in pieces, converted if the type differs', async () => {
    const at = await path()
    const exact = await readSafetensors(join(at, 'model.safetensors'))
    expect(Buffer.compare(exact.tensors.get('long')?.data ?? new Uint8Array(), long.data)).toBe(0)
    expect((await valuesOf(at, 'long', 'bf16')).slice(4_999_990)).toEqual([
      ...decode('bf16', encode('bf16', Float32Array.from([990, 991, 992, 993, 994, 995, 996, 997, 998, 999]))),
    ])
  })

  it('ends when it is cancelled', async () => {
    const { tensors } = await openSafetensors(join(await path(), 'model.safetensors'))
    const cancel = new AbortController()
    const reading = async (): Promise<void> => {
      for await (const _ of tensors.get('long')?.pieces(cancel.signal) ?? []) cancel.abort(new Error('enough'))
    }
    await expect(reading()).rejects.toThrow('enough')
    await expect(openCheckpoint(dir, AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  })

  it('refuses a file that was written to since its header was read', async () => {
    const file = join(await path(), 'model.safetensors')
    const { tensors } = await openSafetensors(file)
    await utimes(file, 1, 1)
    await expect(tensors.get('long')?.pieces().next()).rejects.toMatchObject({ code: 'safetensors.changed' })
  })

  it('refuses anything but a regular file, at once', async () => {
    const at = await folder({})
    execFileSync('mkfifo', [join(at, 'model.safetensors')])
    await expect(openCheckpoint(at)).rejects.toMatchObject({ message: expect.stringContaining('a FIFO, not a regular file') })
    await expect(openSafetensors('/dev/zero')).rejects.toMatchObject({ message: expect.stringContaining('a device') })
    await expect(openSafetensors(at)).rejects.toMatchObject({
      code: 'safetensors.read',
      message: expect.stringContaining('directory'),
    })
  })
})

describe('values that are not numbers', () => {
  const named = (tensor: StoredTensor, dtype: FloatType) => inMemory(convertTensor('w', tensor, dtype))
  it.each([
    ['NaN', stored('F32', [1, 2, 3, Number.NaN], [2, 2]), 'f32', 'tensor w is NaN at [1, 1]'],
    ['an infinity in half precision', stored('F16', [1, Number.NEGATIVE_INFINITY, 0]), 'f16', 'tensor w is -Infinity at [1]'],
    ['a value that the type cannot hold', stored('F32', [0, 70_000]), 'f16', 'tensor w is 70000, too large for f16 at [1]'],
    ['a NaN that is converted', stored('BF16', [Number.NaN]), 'f32', 'tensor w is NaN at [0]'],
  ] as const)('are reported: %s', async (_, tensor, dtype, message) => {
    await expect(named(tensor, dtype)).rejects.toMatchObject({ code: 'weights.value', exitCode: 1, message })
  })

  it('may be -Infinity if a bias excludes words', async () => {
    const bias = stored('F32', [0, Number.NEGATIVE_INFINITY])
    await expect(inMemory(convertTensor('b', bias, 'f16', 'finite or -Infinity'))).resolves.toBeDefined()
    const worse = stored('F32', [0, Number.POSITIVE_INFINITY])
    await expect(inMemory(convertTensor('b', worse, 'f16', 'finite or -Infinity'))).rejects.toMatchObject({
      code: 'weights.value',
    })
  })

  it('are found wherever they are, and nothing else is', () => {
    const halves = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(fc.constantFrom(...floatTypes), halves, (dtype, bits) => {
        const words =
          dtype === 'f32'
            ? Uint32Array.from(bits, (half, i) => ((half << 16) | (bits[i - 1] ?? 0)) >>> 0)
            : Uint16Array.from(bits)
        const bytes = new Uint8Array(words.buffer)
        expect(holdsNonFinite(dtype, bytes)).toBe(decode(dtype, bytes).some((value) => !Number.isFinite(value)))
      }),
      { numRuns: 3000, seed: 13 },
    )
    for (const dtype of floatTypes) {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        expect(holdsNonFinite(dtype, encode(dtype, Float32Array.from([0, value, 0])))).toBe(true)
      }
    }
  })
})
