/** Conversations and continued texts from the command line, with a small random model that has a real tokenizer and template. */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { talk } from '../../src/cli/chat.js'
import { openLlama } from '../../src/cli/llama.js'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import { openLlamaText } from '../../src/models/llama/open_files.js'
import { commonPrefix } from '../../src/models/llama/prefix.js'
import { promptIds } from '../../src/text/prompts.js'
import { Float, formatGguf, ggufName, inPairs, type Meta, type Written, writtenAs } from '../models/gguf_fixtures.js'
import { openSimtKernels } from '../models/simt.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { randomModel, writeTextModel } from '../models/text_model.js'
import { heddle, punctuationModel, repository } from './host.js'

let folder = ''
const simt = ['--device', 'simt', '--max-new-tokens', '12']

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-talk-'))
  await writeTextModel(folder)
})
afterAll(() => rm(folder, { recursive: true }))

interface Line {
  readonly ids: number[]
  readonly text: string
  readonly finish: string
  readonly stop?: string
}

async function runLines(...argv: string[]): Promise<Line[]> {
  const { exitCode, out, log } = await heddle(['run', folder, ...simt, ...argv])
  expect([exitCode, log.includes('error')]).toEqual([0, false])
  return out
    .trim()
    .split('\n')
    .map((line): Line => JSON.parse(line))
}

/** Answers of a conversation, and the messages on stderr. */
async function conversation(lines: readonly string[], options: Parameters<typeof talk>[1] = {}) {
  const [out, log]: [string[], string[]] = [[], []]
  const context = {
    ...{ root: repository, signal: new AbortController().signal, verbose: true },
    out: (text: string) => void out.push(text),
    log: (text: string) => void log.push(text),
  }
  async function* typed() {
    yield* lines
  }
  await talk(folder, { device: 'simt', maxNewTokens: 12, capacity: 256, ...options }, context, typed())
  const reused = [...log.join('').matchAll(/(\d+) tokens were cached/g)].map(([, count]) => Number(count))
  return { out: out.join(''), reused }
}

describe('heddle run of a model that continues text', () => {
  it('accepts texts, ids and messages, and ends at stop strings', async () => {
    const cases = join(folder, 'cases.jsonl')
    const messages = [{ role: 'user', content: 'In the beginning' }]
    const ids = promptIds({ messages }, await openLlamaText(folder, { bos: 1, vocab: 2048 }))
    await writeFile(cases, [{ messages }, { input_ids: ids }, { text: 'God' }].map((each) => JSON.stringify(each)).join('\n'))
    const [said, given, text] = await runLines('--cases', cases)
    expect(said).toEqual(given)
    expect([said?.finish, said?.ids.length]).toEqual(['limit', 12])
    const whole = said?.text ?? ''
    const stop = [...whole].slice(5, 8).join('')
    const [cut] = await runLines('--cases', cases, '--stop', stop)
    expect(cut).toMatchObject({ text: whole.slice(0, whole.indexOf(stop)), finish: 'stop', stop })
    expect(cut?.ids).toEqual(said?.ids.slice(0, cut?.ids.length))
    const [withPrompt] = await runLines('--text', 'God', '--json', '--with-prompt')
    expect(withPrompt?.text).toBe(`God${text?.text}`)
    expect(withPrompt?.ids.slice(-12)).toEqual(text?.ids)
  })

  it('passes tools and variables to the template', async () => {
    const template = join(folder, 'chat_template.jinja')
    await writeFile(template, "{{ tools[0].name if tools else 'none' }} {{ word }} {{ messages[0].content is none }}")
    try {
      const cases = join(folder, 'tools.jsonl')
      const messages = [{ role: 'assistant', content: null, tool_calls: [] }]
      const own = { messages, tools: [{ name: 'God' }], template_vars: { word: 'said' } }
      await writeFile(cases, [own, { messages }].map((each) => JSON.stringify(each)).join('\n'))
      const lines = await runLines('--cases', cases, '--with-prompt', '--template-vars', '{"word":"made"}')
      expect(lines.map(({ text }) => text.split(' ').slice(0, 2))).toEqual([
        ['God', 'said'],
        ['none', 'made'],
      ])
      const { exitCode, log } = await heddle(['run', folder, ...simt, '--cases', cases, '--template-vars', '[1]'])
      expect([exitCode, log]).toEqual([2, expect.stringContaining('Expected a JSON object')])
    } finally {
      await copyFile(join(kjvGqa, 'chat_template.jinja'), template)
    }
  })

  it('starts from the settings of the model, and ignores them on request', async () => {
    const path = join(folder, 'generation_config.json')
    await writeFile(path, JSON.stringify({ do_sample: true, temperature: 2, top_k: 0, typical_p: 0.5 }))
    try {
      const draw = async (...argv: string[]) => (await runLines('--text', 'God', '--json', ...argv))[0]?.ids
      const greedy = await draw('--no-settings')
      expect(await draw('--seed', '3')).not.toEqual(greedy)
      expect(await draw('--top-k', '1')).toEqual(greedy)
      const { log } = await heddle(['run', folder, ...simt, '--text', 'God'])
      expect(log).toContain('typical_p 0.5 is not supported')
    } finally {
      await rm(path)
    }
  })

  it('reads one file in the place of a folder', async () => {
    const written: Record<string, Written> = {}
    for (const [name, tensor] of randomModel()) {
      const heads = name.includes('q_proj') ? 6 : name.includes('k_proj') ? 2 : undefined
      written[ggufName(name)] = writtenAs(heads === undefined ? tensor : inPairs(tensor, heads), 'F32')
    }
    const at = 'llama'
    const metadata: Record<string, Meta> = {
      'general.architecture': at,
      ...{
        [`${at}.block_count`]: 2,
        [`${at}.context_length`]: 512,
        [`${at}.embedding_length`]: 48,
        [`${at}.feed_forward_length`]: 40,
      },
      ...{ [`${at}.attention.head_count`]: 6, [`${at}.attention.head_count_kv`]: 2, [`${at}.rope.dimension_count`]: 8 },
      'tokenizer.ggml.eos_token_id': 2,
    }
    metadata[`${at}.attention.layer_norm_rms_epsilon`] = new Float(1e-6)
    const file = join(folder, 'small.gguf')
    await writeFile(file, formatGguf(metadata, written))
    const cases = join(folder, 'ids.jsonl')
    await writeFile(cases, '{"input_ids":[1,390,391]}')
    const { out } = await heddle(['run', file, ...simt, '--cases', cases])
    const [line] = await runLines('--cases', cases, '--rotation', 'float32')
    expect(JSON.parse(out)).toEqual({ ids: line?.ids, finish: 'limit' })
    const refused = await heddle(['run', file, ...simt, '--text', 'God'])
    expect([refused.exitCode, refused.log]).toEqual([2, expect.stringContaining('has no words of a tokenizer')])
  })
})

describe('heddle run --chat', () => {
  it('gives the same answers as a conversation from Node', async () => {
    const { out } = await conversation(['In the beginning'])
    const { session, close } = await openLlama(folder, { device: 'simt' })
    try {
      let answer = ''
      const talking = await session({ capacity: 256, maxNewTokens: 12 })
      for await (const piece of talking.say('In the beginning')) answer += piece
      expect(`${answer}\n`).toBe(out)
      await expect(session({ beams: 2 })).rejects.toMatchObject({ code: 'run.option' })
    } finally {
      close()
    }
  })

  it('answers line by line, and reads only the new message of a turn', async () => {
    const one = await conversation(['In the beginning', 'And God said', '/reset', 'In the beginning'])
    const text = await openLlamaText(folder, { bos: 1, vocab: 2048 })
    const kernels = await openSimtKernels()
    const model = await loadLlama(folder, kernels)
    try {
      const tell = async (messages: { role: string; content: string }[]) => {
        const prompt = promptIds({ messages }, text)
        const [result] = await model.generate([{ inputIds: prompt }], { maxNewTokens: 12, capacity: 256 })
        const ids = result?.ids ?? []
        return { prompt, ids, answer: text.tokenizer?.decode(ids, { cleanUp: false }) ?? '' }
      }
      const said = [{ role: 'user', content: 'In the beginning' }]
      const first = await tell(said)
      const second = await tell([
        ...said,
        { role: 'assistant', content: first.answer },
        { role: 'user', content: 'And God said' },
      ])
      expect(one.out).toBe(`${first.answer}\n${second.answer}\n${first.answer}\n`)
      // Expected content of a cache: the whole prompt, and the text except its last two tokens.
      const held = ({ prompt, ids }: typeof first) => [...prompt, ...ids.slice(0, -2)]
      const found = commonPrefix(held(first), second.prompt)
      expect(found).toBeGreaterThanOrEqual(first.prompt.length)
      expect(one.reused).toEqual([0, found, first.prompt.length - 1])
    } finally {
      model.release()
      kernels.device.close()
    }
  })

  it('is refused with options that it has no use for, and of models that classify', async () => {
    for (const [argv, text] of [
      [[folder, '--chat', '--text', 'a'], 'does not combine with text'],
      [[folder, '--chat', '--batch', '2'], 'does not combine with batch'],
      [[punctuationModel, '--chat'], '--chat applies to LLaMA-like models'],
      [[punctuationModel, '--text', 'a', '--stop', 'b'], '--stop applies to LLaMA-like models'],
      [[punctuationModel, '--text', 'a', '--no-settings'], '--no-settings applies to LLaMA-like models'],
    ] as const) {
      const { exitCode, log } = await heddle(['run', ...argv])
      expect([exitCode, log]).toEqual([2, expect.stringContaining(text)])
    }
    await expect(conversation(['a'], { capacity: 1000 })).rejects.toMatchObject({ code: 'run.capacity' })
    await expect(conversation(['a'], { beam: 2 })).rejects.toMatchObject({ code: 'run.option' })
  })
})
