/** Errors of `heddle run` for bad input: a typed error, its exit code, one line, and nothing on stdout. */
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { detectDevices } from '../../src/runtime/device.js'
import { familyCases, familyFolder } from '../models/family.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { heddle, punctuationModel } from './host.js'

let work: string
let model: string

beforeAll(async () => {
  const { exitCode, log } = await heddle(['build', '--target', 'simt', '--for', punctuationModel])
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
})

beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'heddle-run-'))
  model = join(work, 'model')
  await cp(punctuationModel, model, { recursive: true })
})

afterEach(() => rm(work, { recursive: true }))

const weights = () => join(model, 'model.safetensors')

interface Entry {
  dtype: string
  shape: number[]
  data_offsets: [number, number]
}

/** Rewrites the header of the weights, keeping the data. */
async function editHeader(edit: (header: Record<string, Entry>) => void): Promise<void> {
  const file = await readFile(weights())
  const length = Number(file.readBigUInt64LE(0))
  const header: Record<string, Entry> = JSON.parse(file.subarray(8, 8 + length).toString('utf8'))
  edit(header)
  const text = Buffer.from(JSON.stringify(header))
  const prefix = Buffer.alloc(8)
  prefix.writeBigUInt64LE(BigInt(text.length))
  await writeFile(weights(), Buffer.concat([prefix, text, file.subarray(8 + length)]))
}

function entryOf(header: Record<string, Entry>, name: string): Entry {
  const entry = header[name]
  if (entry === undefined) throw new Error(`no tensor ${name}`)
  return entry
}

const words = 'bert.embeddings.word_embeddings.weight'

async function writeCases(...lines: readonly object[]): Promise<string> {
  const file = join(work, 'cases.jsonl')
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

async function expectRefusal(argv: readonly string[], exitCode: 2 | 3, message: RegExp): Promise<void> {
  const out = join(work, 'result.jsonl')
  const outcome = await heddle(['run', model, '--device', 'simt', '--out', out, ...argv])
  expect(outcome).toMatchObject({ exitCode, out: '' })
  const [line = '', ...rest] = outcome.log.split('\n').filter((text) => text !== '' && !/^simt/.test(text))
  expect(line).toMatch(/^error\[[a-z_]+\.[a-z_]+\]: /)
  expect(line).toMatch(message)
  expect(rest.every((text) => text.startsWith('hint: '))).toBe(true)
  expect(existsSync(out)).toBe(false)
}

describe('weights', () => {
  const refused = (message: RegExp) => expectRefusal(['--text', 'in the beginning'], 2, message)

  test('missing', async () => {
    await rm(weights())
    await refused(/model\.safetensors/)
  })

  test('truncated', async () => {
    const file = await open(weights(), 'r+')
    await file.truncate(100_000)
    await file.close()
    await refused(/model\.safetensors/)
  })

  test('cut within the header length', async () => {
    await writeFile(weights(), Buffer.from([1, 2, 3]))
    await refused(/model\.safetensors/)
  })

  test('a header over 100 MB', async () => {
    const prefix = Buffer.alloc(8)
    prefix.writeBigUInt64LE(100_000_001n)
    await writeFile(weights(), Buffer.concat([prefix, Buffer.from('{}')]))
    await refused(/header/)
  })

  test('overlapping offsets', async () => {
    await editHeader((header) => {
      const [first, second] = Object.values(header).filter((entry) => entry.data_offsets !== undefined)
      if (first === undefined || second === undefined) throw new Error('two tensors expected')
      second.data_offsets = first.data_offsets
      second.shape = first.shape
    })
    await refused(/offset|overlap|contiguous|starts/i)
  })

  test('a wrong dtype', async () => {
    await editHeader((header) => {
      entryOf(header, words).dtype = 'I32'
    })
    await refused(/I32/)
  })

  test('a wrong shape', async () => {
    await editHeader((header) => {
      const entry = entryOf(header, words)
      entry.shape = [...entry.shape].reverse()
    })
    await refused(/word_embeddings.*128/)
  })
})

describe('cases', () => {
  test('an empty file', async () => {
    await expectRefusal(['--cases', await writeCases()], 2, /empty batch/)
  })

  test('a token id outside the vocabulary', async () => {
    await expectRefusal(['--cases', await writeCases({ input_ids: [2, 3] }, { input_ids: [2, 2048, 3] })], 2, /2048/)
  })

  test('a sequence longer than the position table', async () => {
    const tokens = Array.from({ length: 129 }, () => 5)
    await expectRefusal(['--cases', await writeCases({ input_ids: tokens })], 2, /129.*128/)
  })
})

describe('options', () => {
  test('an unknown plan', () => expectRefusal(['--plan', 'ft-v9', '--text', 'x'], 2, /ft-v9/))

  test.skipIf(detectDevices().some(({ kind, available }) => kind === 'cuda' && available))('no GPU', () =>
    expectRefusal(['--device', 'cuda', '--text', 'x'], 3, /cuda|CUDA/),
  )
})

describe('config', () => {
  test('an unknown kind of model', async () => {
    const path = join(model, 'config.json')
    const config: object = JSON.parse(await readFile(path, 'utf8'))
    await writeFile(path, JSON.stringify({ ...config, model_type: 't5' }))
    await expectRefusal(['--text', 'x'], 2, /model_type is "t5", expected one of bert, .*marian, .*llama, /)
  })

  test('a class with an unsupported head', async () => {
    const path = join(model, 'config.json')
    const config: object = JSON.parse(await readFile(path, 'utf8'))
    const run = () => heddle(['run', model, '--text', 'x', '--device', 'simt', '--json'])
    expect((await run()).log).not.toContain('is not run')
    await writeFile(path, JSON.stringify({ ...config, architectures: ['BertForMaskedLM'] }))
    const { exitCode, log, out } = await run()
    expect([exitCode, Object.keys(JSON.parse(out))]).toEqual([0, ['states', 'pooled']])
    expect(log).toContain('the head of BertForMaskedLM is not run: results are the states of tokens\n')
  })

  test('not JSON', async () => {
    await writeFile(join(model, 'config.json'), '{')
    await expectRefusal(['--text', 'x'], 2, /config\.json/)
  })

  test('an invalid tokenizer', async () => {
    await copyFile(join(model, 'config.json'), join(model, 'tokenizer.json'))
    await expectRefusal(['--text', 'x'], 2, /tokenizer\.json/)
  })
})

describe('good input', () => {
  test('one line per case, in order, whatever the lengths', async () => {
    const file = await writeCases({ input_ids: [2, 62, 196, 3] }, { text: 'in the beginning' }, { input_ids: [2, 3] })
    const { exitCode, out } = await heddle(['run', model, '--device', 'simt', '--cases', file, '--batch', '2', '--json'])
    expect(exitCode).toBe(0)
    const lines: { labels: number[]; logits: number[][] }[] = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ labels }) => labels.length)).toEqual([4, expect.any(Number), 2])
    for (const { labels, logits } of lines) {
      expect(logits.map((row) => row.length)).toEqual(labels.map(() => 6))
      expect(logits.map((row) => row.indexOf(Math.max(...row)))).toEqual(labels)
    }
  })

  test('--text restores the punctuation of a verse', async () => {
    const { exitCode, out } = await heddle(['run', model, '--device', 'simt', '--text', 'and God said Let there be light'])
    expect(exitCode).toBe(0)
    expect(out.replaceAll(/[,.;:?]/g, '').trim()).toBe('and God said Let there be light')
    expect(out).toMatch(/[,.;:?]/)
  })
})

describe('pairs of texts', () => {
  const folder = familyFolder('bert-answers')
  const pair = ['--text', 'Who created the earth?', '--pair', 'In the beginning God created the heaven and the earth.']
  const runOf = (...argv: readonly string[]) => heddle(['run', folder, '--device', 'simt', '--json', ...argv])

  test('are read as one sequence, from the command line and from a file', async () => {
    const [{ text, pair: second, begins = [] } = { text: '', pair: '' }] = (await familyCases('bert-answers')).slice(1)
    const file = await writeCases({ text, pair: second })
    const [typed, filed] = [await runOf(...pair), await runOf('--cases', file)]
    expect(typed).toMatchObject({ exitCode: 0 })
    expect(filed.out).toBe(typed.out)
    expect((JSON.parse(typed.out) as { begins: number[] }).begins).toHaveLength(begins.length)
  })

  test('are truncated on request, and refused otherwise', async () => {
    const long = ['--text', 'Who?', '--pair', Array.from({ length: 100 }, () => 'light').join(' ')]
    expect(await runOf(...long)).toMatchObject({ exitCode: 2, log: expect.stringContaining('--truncate') })
    const cut = await runOf(...long, '--truncate', 'only_second')
    expect((JSON.parse(cut.out) as { begins: number[] }).begins).toHaveLength(96)
  })

  test('need a first text, and a classifier', async () => {
    expect(await runOf('--pair', 'light')).toMatchObject({ exitCode: 2 })
    const generates = await heddle(['run', numberWords, '--device', 'simt', '--text', '7', '--pair', '8'])
    expect(generates).toMatchObject({ exitCode: 2, log: expect.stringContaining('error[run.option]: a pair of texts') })
  })
})
