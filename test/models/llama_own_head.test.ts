import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { formatSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { openLlamaFiles } from '../../src/models/llama/open_files.js'
import { withOwnHead } from '../../src/models/llama/own_head.js'
import { llamaTensors, takeLlamaTensor } from '../../src/models/llama/tensor_names.js'
import { inMemory } from '../../src/runtime/weight.js'
import { refusal } from '../refusal.js'
import { smallCheckpoint, smallLlama } from './llama_fixtures.js'

const tied = { ...smallLlama, tie_word_embeddings: true }
const config = parseLlamaConfig(tied, 'config.json')
const name = 'lm_head.weight'

/** The embeddings of the small model, with some bytes changed. */
function head(change: (data: Uint8Array) => void = () => {}): StoredTensor {
  const words = smallCheckpoint(tied).tensors.get('model.embed_tokens.weight')
  if (words === undefined) throw new Error('no embeddings')
  const data = words.data.slice()
  change(data)
  return { ...words, data }
}

it('a tied model whose checkpoint has a different head uses it, as in HF; a copy of the embeddings does not count', async () => {
  const other = head((data) => data.fill(1, -1))
  const { tensors } = smallCheckpoint(tied)
  expect(await withOwnHead(config, { tensors })).toBe(config)
  expect(await withOwnHead(config, { tensors: new Map([...tensors, [name, head()]]) })).toBe(config)
  expect((await withOwnHead(config, { tensors: new Map([...tensors, [name, other]]) })).tied).toBe(false)
  const wider = { ...other, shape: [48, 96] }
  expect((await withOwnHead(config, { tensors: new Map([...tensors, [name, wider]]) })).tied).toBe(false)

  const dir = await mkdtemp(join(tmpdir(), 'heddle-head-'))
  try {
    await writeFile(join(dir, 'config.json'), JSON.stringify(tied))
    for (const [stored, isTied] of [
      [head(), true],
      [other, false],
    ] as const) {
      await writeFile(join(dir, 'model.safetensors'), formatSafetensors(new Map([...tensors, [name, stored]])))
      expect((await openLlamaFiles(dir)).config.tied).toBe(isTied)
    }
  } finally {
    await rm(dir, { recursive: true })
  }
})

it('a tied model whose checkpoint has only the head uses it as embeddings; one that is not tied lacks them', async () => {
  const { tensors } = smallCheckpoint(smallLlama)
  tensors.delete('model.embed_tokens.weight')
  const [words, ownHead] = ['embeddings.words', 'head.weight'].map((weight) => llamaTensors(config)[weight])
  if (words === undefined || ownHead === undefined) throw new Error('no embeddings')
  const stored = tensors.get(name)?.data
  for (const each of [words, ownHead]) {
    expect((await inMemory(takeLlamaTensor({ tensors }, each, 'f32'))).data).toEqual(stored)
  }
  const untied = llamaTensors(parseLlamaConfig(smallLlama, 'config.json'))['embeddings.words']
  if (untied === undefined) throw new Error('no embeddings')
  expect(refusal(() => takeLlamaTensor({ tensors }, untied, 'f32')).message).toContain('embed_tokens.weight [96, 48] is missing')
})
