/** Output of shell completion, and suggestions for unknown names. */
import { spawnSync } from 'node:child_process'
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
    ['a verb', [''], 'gen\tcompile specs to CUDA source'],
    ['a verb below another', ['plan', ''], 'show\t'],
    ['an option', ['check', '--th'], '--thorough\t'],
    ['a choice', ['completion', ''], 'zsh\t'],
  ])('offers %s as the next word', async (_, words, expected) => {
    listen()
    expect((await heddle(['complete', '--', ...words])).exitCode).toBe(0)
    expect(said.join('\n')).toContain(expected)
    expect(said.join('\n')).not.toContain('complete\t')
  })

  it('prints a script for a shell that there is, and refuses others', async () => {
    const { exitCode, out } = await heddle(['completion', 'bash'])
    expect(exitCode).toBe(0)
    expect(out).toContain('heddle complete -- ')
    expect((await heddle(['completion', 'csh'])).exitCode).toBe(2)
    // Sourced again, and after the script of another program by the same engine, it prints nothing.
    const other = 'readonly ShellCompDirectiveError=1'
    const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-euc', `${other}\n${out}\n${out}\ncomplete -p heddle`], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('heddle')
  })
})

describe('knownHint', () => {
  const many = Array.from({ length: 40 }, (_, i) => `kernel_${i}`)

  it('shows all of a short list, and the similar names of a long one', () => {
    expect(knownHint('softmx', ['softmax', 'gelu'])).toBe('known: softmax, gelu')
    expect(knownHint('layer_nrom', [...many, 'layer_norm', 'rms_norm'])).toBe('nearest of 42: layer_norm')
    expect(knownHint('kernel_77', many).split(', ')).toHaveLength(6)
  })

  it("shows the project's names first, and no dissimilar ones", () => {
    expect(knownHint('kernel_1', many, ['my_kernel'])).toMatch(/^nearest of 41: my_kernel, kernel_1, /)
    expect(knownHint('nope', many, ['gelu'])).toBe('the project has gelu')
    expect(knownHint('nope', many)).toBe('none of the 40 known names is similar')
  })
})
