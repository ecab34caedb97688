/** GGUF models in parts, and in folders: opened whole by the name of any part, or refused with the missing part. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { ggufPath, openGgufModel } from '../../src/checkpoint/gguf_parts.js'
import { openCheckpoint as openWeights } from '../../src/checkpoint/index.js'
import { continuesText } from '../../src/cli/continues_text.js'
import { openLlamaFiles, openLlamaText } from '../../src/models/llama/open_files.js'
import { checkLlamaTensors, llamaTensors, takeLlamaTensor } from '../../src/models/llama/tensor_names.js'
import { inMemory } from '../../src/runtime/weight.js'
import { even, formatGguf, type Meta, metadataOf, modelFile, type Written } from './gguf_fixtures.js'
import { smallLlama } from './llama_fixtures.js'

let dir = ''
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-gguf-'))
})
afterEach(() => rm(dir, { recursive: true }))

const fields = { ...smallLlama, ...even }
const { bytes: wholeBytes, written } = modelFile(fields)

const nameOf = (part: number, count: number): string =>
  `small-${String(part).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`

/** Writes a model in parts of about equally many tensors, those of a list left out; the first part has metadata alone. */
async function writeParts(
  count: number,
  without: readonly number[] = [],
  changes: Readonly<Record<string, Meta>> = {},
): Promise<void> {
  const all = Object.entries(written)
  const each = Math.ceil(all.length / (count - 1))
  for (let part = 1; part <= count; part++) {
    if (without.includes(part)) continue
    const tensors: Record<string, Written> = part === 1 ? {} : Object.fromEntries(all.slice((part - 2) * each, (part - 1) * each))
    const split = { 'split.no': part - 1, 'split.count': count, 'split.tensors.count': all.length, ...changes }
    await writeFile(join(dir, nameOf(part, count)), formatGguf(part === 1 ? { ...metadataOf(fields), ...split } : split, tensors))
  }
}

describe('GGUF models in parts', () => {
  it.each(['the first', 'the last', 'their folder'])('are opened whole by %s', async (by) => {
    await writeParts(3)
    const path = by === 'their folder' ? dir : join(dir, nameOf(by === 'the first' ? 1 : 3, 3))
    expect(await continuesText(path)).toBe(true)
    const { config, checkpoint } = await openLlamaFiles(path)
    checkLlamaTensors(config, checkpoint)
    const single = join(dir, 'single.gguf')
    await writeFile(single, wholeBytes)
    const whole = await openLlamaFiles(single)
    expect(config).toEqual(whole.config)
    for (const tensor of Object.values(llamaTensors(config))) {
      const [{ data }, { data: original }] = [
        await inMemory(takeLlamaTensor(checkpoint, tensor, 'f32')),
        await inMemory(takeLlamaTensor(whole.checkpoint, tensor, 'f32')),
      ]
      expect([tensor.name, Buffer.compare(data, original)]).toEqual([tensor.name, 0])
    }
  })

  it.each(['a part', 'their folder'])('are the tensors of heddle/checkpoint, by %s', async (by) => {
    await writeParts(3)
    const { format, tensors } = await openWeights(by === 'a part' ? join(dir, nameOf(2, 3)) : dir)
    expect([format, tensors.size]).toEqual(['gguf', Object.keys(written).length])
  })

  it('that are missing are named', async () => {
    await writeParts(4, [2, 3])
    for (const part of [1, 4]) {
      await expect(openGgufModel(join(dir, nameOf(part, 4)))).rejects.toMatchObject({
        code: 'gguf.part',
        message: `there is no ${join(dir, nameOf(2, 4))}, and 1 more of its 4 parts`,
      })
    }
  })

  it('that do not belong together are refused', async () => {
    const path = join(dir, nameOf(1, 2))
    const refused = (text: string) =>
      expect(openGgufModel(path)).rejects.toMatchObject({ code: 'gguf.part', message: expect.stringContaining(text) })
    const second = join(dir, nameOf(2, 2))
    await writeParts(2)
    await writeFile(second, wholeBytes)
    await refused(`${second} is a whole file, expected part 2 of 2`)
    await writeFile(second, formatGguf({ 'split.no': 1, 'split.count': 3 }, written))
    await refused(`${second} is part 2 of 3, expected part 2 of 2`)
    await writeParts(2, [], { 'split.tensors.count': 5 })
    await refused(`split.tensors.count is 5, and the parts have ${Object.keys(written).length} tensors`)
    await writeFile(path, formatGguf({ ...metadataOf(fields), 'split.no': 0, 'split.count': 2 }, written))
    await refused('tensor token_embd.weight is in another part too')
    await writeFile(path, formatGguf({ 'split.no': 2, 'split.count': 2 }, written))
    await refused('split.no is 2, and split.count is 2')
  })

  it('have names that state their part', async () => {
    const part = formatGguf({ 'split.no': 1, 'split.count': 2 }, {})
    for (const name of ['renamed.gguf', nameOf(1, 2), nameOf(2, 3)]) {
      await writeFile(join(dir, name), part)
      await expect(openGgufModel(join(dir, name))).rejects.toMatchObject({
        code: 'gguf.part',
        message: `${join(dir, name)} is part 2 of 2, expected a name that ends in -00002-of-00002.gguf`,
      })
    }
    // A count of 1 is a whole model, regardless of its name.
    await writeFile(join(dir, 'one.gguf'), formatGguf({ 'split.no': 0, 'split.count': 1 }, written))
    expect((await openGgufModel(join(dir, 'one.gguf'))).tensors.size).toBe(Object.keys(written).length)
  })
})

describe('folders of GGUF files', () => {
  it('are opened by the one model in them', async () => {
    await writeFile(join(dir, 'model.gguf'), wholeBytes)
    await writeFile(join(dir, 'README.md'), '')
    const { config } = await openLlamaFiles(dir)
    expect(config.layers).toBe(2)
    expect((await openLlamaText(dir, config)).settings.file).toBe(join(dir, 'model.gguf'))
  })

  it('with several models need a choice', async () => {
    await writeParts(2)
    await writeFile(join(dir, 'b.gguf'), wholeBytes)
    await expect(continuesText(dir)).rejects.toMatchObject({
      code: 'gguf.read',
      message: `${dir} has 2 models: b.gguf, ${nameOf(1, 2)}`,
      hint: `pass one of them, such as ${join(dir, 'b.gguf')}`,
    })
  })

  it('with a configuration are read by it', async () => {
    await writeFile(join(dir, 'model.gguf'), wholeBytes)
    await writeFile(join(dir, 'config.json'), JSON.stringify(fields))
    expect(await ggufPath(dir)).toBeUndefined()
    await expect(openCheckpoint(dir)).rejects.toMatchObject({ hint: expect.stringContaining('pass that file instead') })
  })
})
