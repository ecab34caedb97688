/** Text in, text out from Node: prompts, conversations and sources, whole and in pieces, for small models on the CPU device. */
import { copyFile, cp, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Generator, type OpenLlama, openGenerator, openLlama, type TextStream } from '../../src/cli/index.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { writeTextModel } from '../models/text_model.js'

let folder = ''
let llama: OpenLlama
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-text-'))
  await writeTextModel(folder)
  llama = await openLlama(folder, { device: 'simt' })
})
afterAll(async () => {
  llama.close()
  await rm(folder, { recursive: true })
})

const short = { maxNewTokens: 10 }
const prompt = 'In the beginning'
const said = [{ role: 'user', content: prompt }]

async function piecesOf(stream: TextStream): Promise<string[]> {
  const pieces: string[] = []
  for await (const piece of stream) pieces.push(piece)
  return pieces
}

/** Three characters of a text, used as its stop string: their first occurrence. */
const partOf = (text: string): string => [...text].slice(4, 7).join('')

describe('text of a model that continues text', () => {
  it('continues a prompt with the ids generated for it', async () => {
    const { tokenizer, ...reader } = await llama.reader()
    const { ids = [] } = tokenizer?.encode(prompt) ?? {}
    const [result] = await llama.model.generate([{ inputIds: ids }], short)
    const text = tokenizer?.decode(result?.ids ?? [], { cleanUp: false })
    expect(reader.bos).toBe(ids[0])
    expect(await llama.text(prompt, short)).toEqual({ text, ids: result?.ids, finish: 'limit', notes: [] })
  })
  it('comes of several prompts at once, and piece by piece', async () => {
    const [first, second] = await llama.text([prompt, 'God'], short)
    expect(first).toEqual(await llama.text(prompt, short))
    expect(second).toEqual(await llama.text('God', short))
    const stream = llama.text(prompt, { ...short, stream: true })
    expect(stream.written).toBeUndefined()
    expect((await piecesOf(stream)).join('')).toBe(first?.text)
    expect(stream.written).toEqual(first)
  })
  it('ends at a stop string, which is not shown', async () => {
    const whole = await llama.text(prompt, short)
    const stop = partOf(whole.text)
    const cut = await llama.text(prompt, { ...short, stop: ['never', stop] })
    expect(cut).toMatchObject({ text: whole.text.slice(0, whole.text.indexOf(stop)), finish: 'stop', stop })
    expect(whole.ids.slice(0, cut.ids.length)).toEqual(cut.ids)
    const stream = llama.text(prompt, { ...short, stop: [stop], stream: true })
    expect((await piecesOf(stream)).join('')).toBe(cut.text)
    expect(stream.written).toEqual(cut)
    const [both] = await llama.text([prompt, 'God'], { ...short, stop: [stop] })
    expect(both).toEqual(cut)
  })
  it('may be left before its end', async () => {
    const stream = llama.text(prompt, { maxNewTokens: 200, stream: true })
    let left = ''
    for await (const piece of stream) {
      left = piece
      break
    }
    expect(stream.written).toMatchObject({ text: left, finish: undefined })
    expect((await llama.text(prompt, short)).ids).toHaveLength(10)
  })
  it('has the texts of beams', async () => {
    const { text, beams = [] } = await llama.text(prompt, { maxNewTokens: 4, beams: 2, returned: 2 })
    expect(beams).toHaveLength(2)
    expect(beams[0]?.text).toBe(text)
    expect(beams[1]?.text).not.toBe(text)
  })
  it('follows the settings of the model, and notes those it does not follow', async () => {
    const own = await mkdtemp(join(tmpdir(), 'heddle-text-own-'))
    const settings = { do_sample: true, temperature: 3, top_k: 0, max_new_tokens: 5, typical_p: 0.5, stop_strings: ['\u0001'] }
    await cp(folder, own, { recursive: true })
    await writeFile(join(own, 'generation_config.json'), JSON.stringify(settings))
    const opened = await openLlama(own, { device: 'simt' })
    try {
      const drawn = await opened.text(prompt)
      expect([drawn.ids.length, drawn.notes]).toEqual([5, [expect.stringContaining('typical_p 0.5 is not supported')]])
      const greedy = await llama.text(prompt, short)
      expect(drawn.ids).not.toEqual(greedy.ids.slice(0, 5))
      expect(await opened.text(prompt, { ...short, settings: false })).toEqual(greedy)
      const beams = await opened.text(prompt, { beams: 2 })
      expect(beams.notes).toContain("the model's own temperature 3 conflicts with the given options and is ignored")
    } finally {
      opened.close()
      await rm(own, { recursive: true })
    }
  })
  it('refuses invalid options and prompts', async () => {
    const text = llama.text as (prompt: unknown, options?: object) => Promise<unknown>
    await expect(text(prompt, { maxNewToken: 3 })).rejects.toMatchObject({
      code: 'run.option',
      message: 'text has no option maxNewToken',
      hint: expect.stringContaining('did you mean maxNewTokens?'),
    })
    await expect(text(prompt, { tools: [] })).rejects.toMatchObject({ code: 'run.option' })
    for (const wrong of [undefined, 7, [prompt, null]])
      await expect(text(wrong, short)).rejects.toMatchObject({ code: 'prompt.text' })
    const several = text([prompt, prompt], { stream: true }) as unknown as TextStream
    await expect(piecesOf(several)).rejects.toMatchObject({
      code: 'run.option',
      message: expect.stringContaining('got 2 prompts'),
    })
  })
})

describe('answers of a model', () => {
  it('are those of a session, whole and piece by piece', async () => {
    const answer = await llama.chat(said, short)
    expect(answer).toMatchObject({ finish: 'limit', notes: [] })
    const talk = await llama.session(short)
    let spoken = ''
    for await (const piece of talk.say(prompt)) spoken += piece
    expect(answer.text).toBe(spoken)
    const stream = llama.chat(said, { ...short, stream: true })
    expect((await piecesOf(stream)).join('')).toBe(spoken)
    expect(stream.written).toEqual(answer)
  })
  it('read only the new messages of a conversation', async () => {
    const { text } = await llama.chat(said, short)
    let reused = 0
    const next = [...said, { role: 'assistant', content: text }, { role: 'user', content: 'And then' }]
    await llama.chat(next, { ...short, reused: (tokens) => (reused = tokens) })
    const { template, tokenizer } = await llama.reader()
    const first = tokenizer?.encode(template?.render(said) ?? '', { special: false }).ids.length ?? Number.NaN
    expect(reused).toBeGreaterThanOrEqual(first)
  })
  it('take variables and tools to the template', async () => {
    const own = await mkdtemp(join(tmpdir(), 'heddle-text-own-'))
    await writeTextModel(own)
    await writeFile(
      join(own, 'chat_template.jinja'),
      "{{ tools[0].name if tools else 'none' }} {{ 'thinks' if enable_thinking is not defined or enable_thinking else 'answers' }}",
    )
    const opened = await openLlama(own, { device: 'simt' })
    try {
      const answered = async (prompt: string) => (await llama.text(prompt, short)).ids
      const bare = async (text: string) => {
        const { tokenizer } = await opened.reader()
        return (await opened.model.generate([{ inputIds: tokenizer?.encode(text, { special: false }).ids ?? [] }], short))[0]?.ids
      }
      expect(await answered(prompt)).toHaveLength(10)
      expect((await opened.chat(said, short)).ids).toEqual(await bare('none thinks'))
      const options = { ...short, tools: [{ name: 'God' }], templateVariables: { enable_thinking: false } }
      expect((await opened.chat(said, options)).ids).toEqual(await bare('God answers'))
    } finally {
      opened.close()
      await rm(own, { recursive: true })
    }
  })
  it('are refused without messages, and of a model without a template', async () => {
    const chat = llama.chat as (messages: unknown, options?: object) => Promise<unknown>
    await expect(chat(prompt)).rejects.toMatchObject({ code: 'chat.message' })
    await expect(chat(said, { system: 'x' })).rejects.toMatchObject({ code: 'run.option', message: 'chat has no option system' })
    const template = join(folder, 'chat_template.jinja')
    await rm(template)
    const bare = await openLlama(folder, { device: 'simt' })
    try {
      await expect(bare.chat(said)).rejects.toMatchObject({ code: 'prompt.template' })
      await expect(piecesOf(bare.chat(said, { stream: true }))).rejects.toMatchObject({ code: 'prompt.template' })
    } finally {
      bare.close()
      await copyFile(join(kjvGqa, 'chat_template.jinja'), template)
    }
  })
})

describe('text of a model that translates', () => {
  let words: Generator
  beforeAll(async () => {
    words = await openGenerator(numberWords, { device: 'simt' })
  })
  afterAll(() => words.close())

  it('is written of a source, of several, and piece by piece', async () => {
    const [twelve, large] = await words.text(['12', '6387969'])
    expect(twelve).toMatchObject({ text: 'twelve', finish: 'end', notes: [] })
    expect(large?.text).toBe('six million three hundred and eighty seven thousand nine hundred and sixty nine')
    const stream = words.text('6387969', { stream: true })
    const pieces = await piecesOf(stream)
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join('')).toBe(large?.text)
    expect(stream.written).toEqual(large)
  })
  it('ends at its limit, at a stop string, and may be searched with beams', async () => {
    expect(await words.text('6387969', { maxNewTokens: 2 })).toMatchObject({ text: 'six million', finish: 'limit' })
    expect(await words.text('6387969', { stop: [' hundred'] })).toMatchObject({
      ...{ text: 'six million three', finish: 'stop', stop: ' hundred' },
    })
    const searched = await words.text('12', { beams: 4, returned: 2 })
    expect([searched.text, searched.finish, searched.beams?.length]).toEqual(['twelve', 'end', 2])
    expect(await piecesOf(words.text('12', { beams: 4, stream: true }))).toEqual(['twelve'])
  })
  it('uses the forced tokens and the length of its settings, also for token ids, unless options override them', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-words-'))
    try {
      for (const name of await readdir(numberWords)) await symlink(join(numberWords, name), join(dir, name))
      await rm(join(dir, 'generation_config.json'), { force: true })
      const forced = { forced_bos_token_id: 9, forced_eos_token_id: 1, max_length: 4, num_beams: 2 }
      await writeFile(join(dir, 'generation_config.json'), JSON.stringify(forced))
      const { model, close } = await openGenerator(dir, { device: 'simt' })
      try {
        const cases = [{ inputIds: [5, 6, 7, 8, 1] }]
        const [own] = await model.generate(cases)
        expect([own?.ids[0], own?.ids.length, own?.beams]).toEqual([9, 2, undefined])
        const [other] = await model.generate(cases, { forcedBosTokenId: 11, maxNewTokens: 2 })
        expect([other?.ids[0], other?.ids.length]).toEqual([11, 2])
      } finally {
        close()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
  it('refuses options of other models', async () => {
    const text = words.text as (prompt: unknown, options?: object) => Promise<unknown>
    await expect(text('12', { capacity: 64 })).rejects.toMatchObject({
      code: 'run.option',
      message: 'text has no option capacity',
    })
  })
})
