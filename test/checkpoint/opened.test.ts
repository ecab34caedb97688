/** Weight files opened by `heddle/checkpoint`: their entries and values. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openCheckpoint } from '../../src/checkpoint/index.js'
import { formatSafetensors } from '../../src/checkpoint/safetensors.js'
import { encode } from '../../src/runtime/buffer.js'
import { formatGguf, writtenAs } from '../models/gguf_fixtures.js'

let dir = ''
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-opened-'))
})
afterAll(() => rm(dir, { recursive: true }))

const floats = (...values: number[]): Uint8Array => encode('f32', Float32Array.from(values))
const halves = { dtype: 'F16', shape: [3, 2], data: encode('f16', Float32Array.from([1, -2, 0.5, 4, 5, 65504])) } as const
const wide = { dtype: 'I64', shape: [2], data: new Uint8Array(BigInt64Array.of(-3n, 2n ** 60n).buffer) } as const
const large = { dtype: 'F32', shape: [2], data: floats(1, 1e6) } as const
const masked = { dtype: 'F32', shape: [], data: floats(Number.NEGATIVE_INFINITY) } as const
const tensors = { 'layer.halves': halves, 'layer.wide': wide, large, masked }

let files = 0
async function written(name: string, bytes: Uint8Array): Promise<string> {
  const folder = join(dir, String(files++))
  await mkdir(folder)
  await writeFile(join(folder, name), bytes)
  return join(folder, name)
}
const saved = (name = 'some.safetensors'): Promise<string> =>
  written(name, formatSafetensors(Object.entries(tensors), { format: 'pt' }))

describe('a safetensors file', () => {
  it('lists names, types, shapes and metadata', async () => {
    const { format, metadata, tensors } = await openCheckpoint(await saved())
    expect([format, ...metadata]).toEqual(['safetensors', ['format', 'pt']])
    expect([...tensors.values()].map(({ name, dtype, stored, shape }) => ({ name, dtype, stored, shape }))).toEqual([
      { name: 'layer.halves', dtype: 'f16', stored: 'F16', shape: [3, 2] },
      { name: 'layer.wide', dtype: 'i64', stored: 'I64', shape: [2] },
      { name: 'large', dtype: 'f32', stored: 'F32', shape: [2] },
      { name: 'masked', dtype: 'f32', stored: 'F32', shape: [] },
    ])
  })
  it('is read as stored, or rounded', async () => {
    const file = await openCheckpoint(await saved())
    const as = file.tensor('layer.halves')
    expect(await as.read()).toEqual({
      dtype: 'f16',
      shape: [3, 2],
      data: Uint16Array.of(15360, 49152, 14336, 17408, 17664, 31743),
    })
    expect((await as.read({ dtype: 'f32' })).data).toEqual(Float32Array.of(1, -2, 0.5, 4, 5, 65504))
    expect(await as.read({ dtype: 'bf16' })).toMatchObject({
      dtype: 'bf16',
      data: Uint16Array.of(16256, 49152, 16128, 16512, 16544, 18304),
    })
    expect((await file.tensor('layer.wide').read()).data).toEqual(BigInt64Array.of(-3n, 2n ** 60n))
  })
  it('is read by rows', async () => {
    const rows = (await openCheckpoint(await saved())).tensor('layer.halves').rows(1, 3)
    expect(await rows.read({ dtype: 'f32' })).toEqual({ dtype: 'f32', shape: [2, 2], data: Float32Array.of(0.5, 4, 5, 65504) })
    expect((await rows.rows(1, 2).read({ dtype: 'f32' })).data).toEqual(Float32Array.of(5, 65504))
  })
  it('refuses numbers out of range, and keeps infinities', async () => {
    const file = await openCheckpoint(await saved())
    await expect(file.tensor('large').read({ dtype: 'f16' })).rejects.toMatchObject({
      code: 'weights.value',
      message: 'tensor large: element 1 is 1000000, too large for f16',
    })
    expect((await file.tensor('large').read({ dtype: 'bf16' })).dtype).toBe('bf16')
    expect((await file.tensor('masked').read({ dtype: 'f16' })).data).toEqual(Uint16Array.of(0xfc00))
  })
  it('refuses names, rows, types and options that there are not', async () => {
    const file = await openCheckpoint(await saved())
    expect(() => file.tensor('layer.halve')).toThrow(
      expect.objectContaining({ code: 'checkpoint.tensor', hint: 'known: layer.halves, layer.wide, large, masked' }),
    )
    for (const [from, to] of [
      [2, 2],
      [-1, 1],
      [0, 4],
      [0, 1.5],
    ] as const) {
      expect(() => file.tensor('layer.halves').rows(from, to)).toThrow(
        expect.objectContaining({ code: 'checkpoint.rows', hint: 'expected 0 <= from < to <= 3' }),
      )
    }
    expect(() => file.tensor('masked').rows(0, 1)).toThrow(expect.objectContaining({ hint: 'it is a scalar: read it whole' }))
    await expect(file.tensor('layer.wide').read({ dtype: 'f32' })).rejects.toMatchObject({
      code: 'weights.dtype',
      message: 'tensor layer.wide is i64, which is not read as f32',
    })
    const untyped = (options: object) => file.tensor('large').read(options)
    await expect(untyped({ dtype: 'f64' })).rejects.toMatchObject({ code: 'weights.dtype', hint: 'types are f32, f16, bf16' })
    await expect(untyped({ type: 'f32' })).rejects.toMatchObject({
      code: 'checkpoint.option',
      message: 'read has no option type',
    })
  })
})

describe('a path', () => {
  it('is a folder, of one file or of several', async () => {
    const single = await saved('model.safetensors')
    expect((await openCheckpoint(join(single, '..'))).tensors.size).toBe(4)
    const folder = join(await written('a.safetensors', formatSafetensors([['large', large]])), '..')
    await writeFile(join(folder, 'b.safetensors'), formatSafetensors([['wide', wide]]))
    const map = { large: 'a.safetensors', wide: 'b.safetensors' }
    await writeFile(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }))
    const file = await openCheckpoint(folder)
    expect([...file.tensors.keys()]).toEqual(['large', 'wide'])
    expect((await file.tensor('large').read()).data).toEqual(Float32Array.of(1, 1e6))
  })
  it('is a GGUF file, whose blocks are read as floats', async () => {
    // With 127 in each block its scale is 1.
    const values = Float32Array.from({ length: 64 }, (_, i) => (i % 32 === 31 ? 127 : i - 32))
    const blocks = writtenAs({ dtype: 'F32', shape: [2, 32], data: encode('f32', values) }, 'Q8_0')
    const bytes = formatGguf(
      { 'general.architecture': 'llama', 'general.size': 7 },
      { blocks, plain: { type: 'F32', shape: [1], data: floats(3) } },
    )
    const { format, metadata, tensor, tensors } = await openCheckpoint(await written('model.gguf', bytes))
    expect([format, metadata.get('general.size'), tensors.size]).toEqual(['gguf', 7, 2])
    expect(tensor('blocks')).toMatchObject({ dtype: 'f32', stored: 'Q8_0', shape: [2, 32] })
    const { data } = await tensor('blocks').rows(1, 2).read({ dtype: 'f32' })
    expect(data).toEqual(values.slice(32))
    expect(await tensor('plain').read()).toEqual({ dtype: 'f32', shape: [1], data: Float32Array.of(3) })
  })
  it('is refused if it is missing or of another kind', async () => {
    await expect(openCheckpoint(join(dir, 'none.safetensors'))).rejects.toMatchObject({ code: 'safetensors.read' })
    await expect(openCheckpoint(join(dir, 'none.gguf'))).rejects.toMatchObject({ code: 'gguf.read' })
    await expect(openCheckpoint(join(dir, 'none'))).rejects.toMatchObject({ code: 'safetensors.read' })
    const other = await written('weights.bin', Uint8Array.of(1))
    await expect(openCheckpoint(other)).rejects.toMatchObject({
      code: 'checkpoint.format',
      hint: 'for weights in several files, pass the folder',
    })
  })
})
