/** The channels file: a written file is read back, and an invalid one is refused with the field. */
import { describe, expect, it } from 'vitest'
import { type ChannelMaxima, expectChannels, formatChannels, parseChannels } from '../../src/quant/index.js'
import { refusal } from '../refusal.js'

const model = { layers: 2, hidden: 4, heads: 2, inner: 8, digest: 'a'.repeat(64) }
const channels: ChannelMaxima = {
  model,
  calibration: { cases: 1, tokens: 5, dtype: 'f32' },
  values: { 'layer0/layer0.gated': [0, 1.5, Math.fround(0.1)], 'layer1/layer1.gated': [2, 3, 4] },
}

describe('channels files', () => {
  it('are read as they were written', () => {
    const text = formatChannels(channels)
    expect(parseChannels(text, 'file')).toMatchObject(channels)
    expect(text.split('\n')).toHaveLength(11)
  })

  it.each<readonly [string, string, string]>([
    ['channels.json', '{"format"', 'file is not JSON'],
    ['channels.schema', formatChannels(channels).replace('1.5', '-1.5'), 'values.layer0/layer0.gated.1'],
    ['channels.schema', formatChannels(channels).replace('heddle-channels', 'heddle-scales'), 'format'],
    ['channels.schema', formatChannels(channels).replace('"version": 1', '"version": 2'), 'version'],
  ])('are refused with %s', (code, text, words) => {
    const found = refusal(() => parseChannels(text, 'file'))
    expect(found.code).toBe(code)
    expect(found.message).toContain(words)
  })

  it('belong to one model', () => {
    expectChannels(channels, model)
    expect(refusal(() => expectChannels(channels, { ...model, digest: 'b'.repeat(64) })).code).toBe('scales.model')
  })
})
