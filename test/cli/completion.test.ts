/** What shells are told, and what names that nobody knows may have meant. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { knownHint } from '../../src/nearest.js'
import { heddle } from './host.js'

const said: string[] = []
const listen = () => vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(text))
afterEach(() => {
  vi.restoreAllMocks()
  said.length = 0
})

describe('completion', () => {
  it.each([
    ['a verb', [''], 'gen\tcompile specs to CUDA text'],
    ['a verb below another', ['plan', ''], 'show\t'],
    ['an option', ['check', '--th'], '--thorough\t'],
    ['a choice', ['completion', ''], 'zsh\t'],
  ])('says %s that may come next', async (_, words, expected) => {
    listen()
    expect((await heddle(['complete', '--', ...words])).exitCode).toBe(0)
    expect(said.join('\n')).toContain(expected)
    expect(said.join('\n')).not.toContain('complete\t')
  })

  it('prints a script for a shell that there is, and refuses others', async () => {
    listen()
    expect((await heddle(['completion', 'bash'])).exitCode).toBe(0)
    expect(said.join('\n')).toContain('heddle complete -- ')
    expect((await heddle(['completion', 'csh'])).exitCode).toBe(2)
  })
})

describe('knownHint', () => {
  const many = Array.from({ length: 40 }, (_, i) => `kernel_${i}`)

  it('shows what is few, and of many what is like the name', () => {
    expect(knownHint('softmx', ['softmax', 'gelu'])).toBe('known: softmax, gelu')
    const hint = knownHint('layer_nrom', [...many, 'layer_norm', 'rms_norm'])
    expect(hint).toMatch(/^nearest of 42: layer_norm, rms_norm, /)
    expect(hint.split(', ')).toHaveLength(6)
  })
})
