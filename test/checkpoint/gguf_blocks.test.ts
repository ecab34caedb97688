/** Blocks of quantised tensors, packed here by hand from their numbers: reading yields the values of these numbers, in float64, rounded once. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openGguf } from '../../src/checkpoint/gguf.js'
import { blockTypes, fromBlocks } from '../../src/checkpoint/gguf_blocks.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { random } from '../../src/verify/random.js'
import { formatGguf } from '../models/gguf_fixtures.js'

type Name = keyof typeof blockTypes
const codes: Readonly<Record<Name, number>> = { Q4_0: 2, Q4_1: 3, Q5_0: 6, Q5_1: 7, Q8_0: 8, Q4_K: 12, Q5_K: 13, Q6_K: 14 }

interface Packed {
  readonly bytes: Uint8Array
  readonly values: number[]
}

/** Numbers by a seed. */
function drawer(seed: string) {
  const next = random(seed)
  const integer = (most: number): number => next() % (most + 1)
  /** A number that float16 holds: `n / 4096`, of both signs. */
  const half = (): number => (integer(2047) - 1023) / 4096
  return { half, list: (count: number, most: number): number[] => Array.from({ length: count }, () => integer(most)) }
}

const halfBytes = (value: number): number[] => [...encode('f16', Float32Array.of(value))]

/** Concatenated numbers of few bits, as one number of `count * width` bits with the first number lowest. */
function bitsOf(numbers: readonly number[], width: number): number[] {
  const bytes = Array.from({ length: (numbers.length * width) / 8 }, () => 0)
  for (const [i, value] of numbers.entries()) {
    for (let bit = 0; bit < width; bit++) {
      const at = i * width + bit
      bytes[at >> 3] = (bytes[at >> 3] ?? 0) | (((value >> bit) & 1) << (at & 7))
    }
  }
  return bytes
}

/** Two lists as the low and the high halves of bytes. */
const nibbles = (low: readonly number[], high: readonly number[]): number[] =>
  bitsOf(
    low.flatMap((value, i) => [value & 15, (high[i] ?? 0) & 15]),
    4,
  )

const smallBlock =
  (width: 4 | 5, hasOffset: boolean) =>
  (seed: string): Packed => {
    const { half, list } = drawer(seed)
    const [scale, offset, numbers] = [half(), hasOffset ? half() : 0, list(32, 2 ** width - 1)]
    const fifths =
      width === 5
        ? bitsOf(
            numbers.map((value) => value >> 4),
            1,
          )
        : []
    const words = nibbles(numbers.slice(0, 16), numbers.slice(16))
    const zero = hasOffset ? 0 : 2 ** (width - 1)
    return {
      bytes: Uint8Array.from([...halfBytes(scale), ...(hasOffset ? halfBytes(offset) : []), ...fifths, ...words]),
      values: numbers.map((value) => scale * (value - zero) + offset),
    }
  }

const bytesBlock = (seed: string): Packed => {
  const { half, list } = drawer(seed)
  const [scale, numbers] = [half(), list(32, 255).map((value) => value - 128)]
  return { bytes: Uint8Array.from([...halfBytes(scale), ...numbers]), values: numbers.map((value) => scale * value) }
}

const groupsBlock =
  (width: 4 | 5) =>
  (seed: string): Packed => {
    const { half, list } = drawer(seed)
    const [scale, offset, factors, minima, numbers] = [half(), half(), list(8, 63), list(8, 63), list(256, 2 ** width - 1)]
    const of = (values: readonly number[], group: number): number => values[group] ?? 0
    const packed = [0, 1, 2, 3].map((i) => of(factors, i) | ((of(factors, i + 4) >> 4) << 6))
    packed.push(...[0, 1, 2, 3].map((i) => of(minima, i) | ((of(minima, i + 4) >> 4) << 6)))
    packed.push(...[4, 5, 6, 7].map((i) => (of(factors, i) & 15) | ((of(minima, i) & 15) << 4)))
    const groups = Array.from({ length: 8 }, (_, group) => numbers.slice(32 * group, 32 * group + 32))
    const fifths =
      width === 4
        ? []
        : Array.from({ length: 32 }, (_, i) => groups.reduce((byte, group, g) => byte | (((group[i] ?? 0) >> 4) << g), 0))
    const words = [0, 2, 4, 6].flatMap((group) => nibbles(groups[group] ?? [], groups[group + 1] ?? []))
    return {
      bytes: Uint8Array.from([...halfBytes(scale), ...halfBytes(offset), ...packed, ...fifths, ...words]),
      values: numbers.map((value, i) => scale * of(factors, i >> 5) * value - offset * of(minima, i >> 5)),
    }
  }

const sixBitsBlock = (seed: string): Packed => {
  const { half, list } = drawer(seed)
  const [scale, factors, numbers] = [half(), list(16, 255).map((value) => value - 128), list(256, 63)]
  const quarters = Array.from({ length: 8 }, (_, i) => numbers.slice(32 * i, 32 * i + 32))
  const words = [0, 4].flatMap((first) => [
    ...nibbles(quarters[first] ?? [], quarters[first + 2] ?? []),
    ...nibbles(quarters[first + 1] ?? [], quarters[first + 3] ?? []),
  ])
  const tops = [0, 4].flatMap((first) =>
    bitsOf(Array.from({ length: 32 }, (_, i) => [0, 1, 2, 3].map((q) => (quarters[first + q]?.[i] ?? 0) >> 4)).flat(), 2),
  )
  return {
    bytes: Uint8Array.from([...words, ...tops, ...factors, ...halfBytes(scale)]),
    values: numbers.map((value, i) => scale * (factors[i >> 4] ?? 0) * (value - 32)),
  }
}

const blocks: Readonly<Record<Name, (seed: string) => Packed>> = {
  ...{ Q4_0: smallBlock(4, false), Q4_1: smallBlock(4, true), Q5_0: smallBlock(5, false), Q5_1: smallBlock(5, true) },
  ...{ Q8_0: bytesBlock, Q4_K: groupsBlock(4), Q5_K: groupsBlock(5), Q6_K: sixBitsBlock },
}

const names = Object.keys(blockTypes) as Name[]

describe('blocks of quantised tensors', () => {
  it.each(names)('have the values that they represent: %s', async (name) => {
    const made = ['a', 'b', 'c', 'd', 'e', 'f'].map((seed) => blocks[name](`${name} ${seed}`))
    const bytes = Uint8Array.from(made.flatMap((block) => [...block.bytes]))
    const expected = [...Float32Array.from(made.flatMap(({ values }) => values))]
    expect(bytes).toHaveLength(made.length * blockTypes[name].bytes)
    expect([...decode('f32', fromBlocks(blockTypes[name], bytes))]).toEqual(expected)
    // Read as rows of a file, and from an offset that is not a multiple of 16 bits.
    const { values } = blockTypes[name]
    const dir = await mkdtemp(join(tmpdir(), 'heddle-blocks-'))
    try {
      const path = join(dir, 'x.gguf')
      await writeFile(path, formatGguf({}, { w: { type: codes[name], shape: [3, 2 * values], data: bytes } }))
      const tensor = (await openGguf(path)).tensors.get('w')
      expect(tensor).toMatchObject({ dtype: 'F32', stored: name, shape: [3, 2 * values], bytes: 24 * values })
      const read: number[] = []
      for await (const piece of tensor?.rows(1, 3).pieces() ?? []) read.push(...decode('f32', piece))
      expect(read).toEqual(expected.slice(2 * values))
    } finally {
      await rm(dir, { recursive: true })
    }
    const odd = new Uint8Array(bytes.length + 1)
    odd.set(bytes, 1)
    expect([...decode('f32', fromBlocks(blockTypes[name], odd.subarray(1)))]).toEqual(expected)
  })

  it('that are cut or of a type that is not read are refused', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-blocks-'))
    try {
      const path = join(dir, 'x.gguf')
      for (const [type, shape, code, text] of [
        [12, [1, 128], 'gguf.tensor', 'Q4_K [1, 128], expected rows of whole blocks of 256'],
        [2, [2, 16], 'gguf.tensor', 'Q4_0 [2, 16], expected rows of whole blocks of 32'],
        [10, [1, 256], 'gguf.dtype', 'of type Q2_K, expected one of F32, F16, BF16, Q4_0'],
        [20, [1, 32], 'gguf.dtype', 'of type IQ4_NL'],
      ] as const) {
        await writeFile(path, formatGguf({}, { w: { type, shape, data: new Uint8Array(512) } }))
        await expect(openGguf(path), text).rejects.toMatchObject({ code, message: expect.stringContaining(text) })
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
