import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatSafetensors, parseSafetensors, readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { elementBytes } from '../../src/checkpoint/safetensors_header.js'
import { HeddleError } from '../../src/errors.js'
import { exampleModel } from '../models/fixtures.js'

const entry = (dtype: string, shape: readonly number[], from: number, to: number) => ({ dtype, shape, data_offsets: [from, to] })

function file(header: unknown, body = 0): Uint8Array {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const prefix = Buffer.alloc(8)
  prefix.writeBigUInt64LE(BigInt(text.byteLength))
  return Buffer.concat([prefix, text, Buffer.alloc(body)])
}

const codeOf = (bytes: Uint8Array): string => {
  try {
    parseSafetensors(bytes, 'x')
    return 'accepted'
  } catch (error) {
    if (error instanceof HeddleError && error.exitCode === 2) return error.code
    throw error
  }
}

const tensor = fc
  .record({
    dtype: fc.constantFrom('F32', 'F16', 'BF16', 'F8_E4M3', 'F8_E5M2', 'U8', 'I16', 'I32', 'U32', 'I64'),
    shape: fc.array(fc.nat(3), { maxLength: 3 }),
    seed: fc.nat(255),
  })
  .map(({ dtype, shape, seed }): StoredTensor => {
    const bytes = shape.reduce((product, extent) => product * extent, elementBytes[dtype as StoredTensor['dtype']])
    return { dtype: dtype as StoredTensor['dtype'], shape, data: Uint8Array.from({ length: bytes }, (_, i) => (seed + i) & 255) }
  })
const contents = fc
  .uniqueArray(fc.tuple(fc.string(), tensor), { selector: ([name]) => name, maxLength: 6 })
  .map((entries) => entries.filter(([name]) => name !== '__metadata__'))

describe('safetensors', () => {
  it('reads back what it wrote', () => {
    fc.assert(
      fc.property(contents, fc.dictionary(fc.string(), fc.string()), (tensors, metadata) => {
        const bytes = formatSafetensors(tensors, metadata)
        const read = parseSafetensors(bytes, 'x')
        expect(new Map([...read.tensors].map(([name, { data, ...rest }]) => [name, { ...rest, data: [...data] }]))).toEqual(
          new Map(tensors.map(([name, { data, ...rest }]) => [name, { ...rest, data: [...data] }])),
        )
        expect({ ...read.metadata }).toEqual({ ...metadata })
      }),
    )
  })

  it('reads a real file', async () => {
    const { tensors, metadata } = await readSafetensors(join(exampleModel, 'model.safetensors'))
    expect(tensors.size).toBe(71)
    expect(metadata).toEqual({ format: 'pt' })
    expect(tensors.get('classifier.weight')).toMatchObject({ dtype: 'F32', shape: [6, 128] })
  })

  it.each([
    ['a file shorter than its length field', Buffer.alloc(5), 'safetensors.truncated'],
    ['a header longer than the file', file({}).subarray(0, 9), 'safetensors.truncated'],
    [
      'a header over 100 MB',
      Buffer.concat([Buffer.from([0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0]), Buffer.alloc(16)]),
      'safetensors.header',
    ],
    ['a length beyond 53 bits', Buffer.alloc(16, 0xff), 'safetensors.header'],
    ['a header that is not JSON', file('{"a":'), 'safetensors.header'],
    ['a header that is not UTF-8', Buffer.concat([file('{}').subarray(0, 8), Buffer.from([0xc3, 0x28])]), 'safetensors.header'],
    ['a header that is an array', file([]), 'safetensors.header'],
    ['a header that starts with a blank', file(' {}'), 'safetensors.header'],
    ['metadata that are not strings', file({ __metadata__: { a: 1 } }), 'safetensors.header'],
    [
      'a tensor named twice',
      file('{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"\\u0061":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
      'safetensors.duplicate',
    ],
    [
      'a field named twice',
      file('{"a":{"dtype":"F32","dtype":"F16","shape":[0],"data_offsets":[0,0]}}'),
      'safetensors.duplicate',
    ],
    ['a tensor without shape', file({ a: { dtype: 'F32', data_offsets: [0, 0] } }), 'safetensors.tensor'],
    ['a negative extent', file({ a: entry('F32', [-1], 0, 0) }), 'safetensors.tensor'],
    ['a fractional extent', file({ a: entry('F32', [0.5], 0, 2) }, 2), 'safetensors.tensor'],
    ['a third offset', file({ a: { dtype: 'F32', shape: [0], data_offsets: [0, 0, 0] } }), 'safetensors.tensor'],
    ['an unknown dtype', file({ a: entry('F8_E8M0', [1], 0, 1) }, 1), 'safetensors.dtype'],
    ['a dtype that is a method of objects', file({ a: entry('toString', [0], 0, 0) }), 'safetensors.dtype'],
    ['a shape of another size', file({ a: entry('F32', [3], 0, 8) }, 8), 'safetensors.size'],
    ['offsets that run backwards', file({ a: entry('F32', [1], 8, 4) }, 8), 'safetensors.size'],
    ['a product that overflows', file({ a: entry('F32', [2 ** 40, 2 ** 40], 0, 8) }, 8), 'safetensors.size'],
    ['overlapping tensors', file({ a: entry('F32', [2], 0, 8), b: entry('F32', [2], 4, 12) }, 12), 'safetensors.offsets'],
    ['the same bytes twice', file({ a: entry('F32', [2], 0, 8), b: entry('F32', [2], 0, 8) }, 8), 'safetensors.offsets'],
    ['a gap', file({ a: entry('F32', [1], 0, 4), b: entry('F32', [1], 8, 12) }, 12), 'safetensors.offsets'],
    ['data that do not start at 0', file({ a: entry('F32', [1], 4, 8) }, 8), 'safetensors.offsets'],
    ['bytes after the last tensor', file({ a: entry('F32', [1], 0, 4) }, 5), 'safetensors.offsets'],
    ['missing data', file({ a: entry('F32', [2], 0, 8) }, 7), 'safetensors.truncated'],
  ])('refuses %s', (_, bytes, code) => {
    expect(codeOf(bytes)).toBe(code)
  })

  it('never crashes on a damaged file, and accepts only files that describe every byte', () => {
    const damage = fc.record({
      cut: fc.option(fc.nat(400)),
      edits: fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }),
    })
    fc.assert(
      fc.property(contents, damage, (tensors, { cut, edits }) => {
        const bytes = formatSafetensors(tensors).slice(0, cut ?? undefined)
        for (const [at, value] of edits) if (at < bytes.length) bytes[at] = value
        if (codeOf(bytes) !== 'accepted') return
        const read = parseSafetensors(bytes, 'x')
        const header = Number(new DataView(bytes.buffer).getBigUint64(0, true))
        const described = [...read.tensors.values()].reduce((sum, { data }) => sum + data.byteLength, 0)
        expect(8 + header + described).toBe(bytes.byteLength)
        for (const { dtype, shape, data } of read.tensors.values()) {
          expect(data.byteLength).toBe(shape.reduce((product, extent) => product * extent, elementBytes[dtype]))
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('names the file that cannot be read', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-safetensors-'))
    try {
      await expect(readSafetensors(join(dir, 'none'))).rejects.toMatchObject({
        code: 'safetensors.read',
        message: expect.stringContaining('none'),
      })
      await expect(readSafetensors(dir)).rejects.toMatchObject({ code: 'safetensors.read' })
      await writeFile(join(dir, 'short'), 'abc')
      await expect(readSafetensors(join(dir, 'short'))).rejects.toMatchObject({
        code: 'safetensors.truncated',
        message: expect.stringContaining('3 bytes'),
      })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
