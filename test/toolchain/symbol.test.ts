import { expect, test } from 'vitest'
import { plainName, readableNames } from '../../src/toolchain/symbol.js'

const kept = '_ZN51_GLOBAL__N__2f014be6_18_layer_norm__f16_cu_0c026be415layer_norm_keptIN6heddle8WarpTeamILi4EEELi1EEEvlif'
const simple = (flag: 0 | 1): string =>
  `_ZN6heddle13matmul_simpleI6__halfLb${flag}EN30slots_of_matmul_bias_gelu__f168EpilogueEEEvllllNS_2InIT_EES6_T1_`

test.each([
  ['plain', 'plain'],
  ['_Z4spinPf', 'spin'],
  ['_Z6k_tmplILi3EEvPf', 'k_tmpl<3>'],
  ['_ZN6heddle36_GLOBAL__N__b51ce050_4_a_cu_8f6a538820layer_norm__f16_warpEPfi', 'layer_norm__f16_warp'],
  [kept, 'layer_norm_kept<WarpTeam<4>, 1>'],
  // Names that a hand-written demangler did not read: signed char, substitutions, half precision.
  ['_ZN6heddle14attention_rowsIfaLi4EEEvPT_', 'attention_rows<float, signed char, 4>'],
  [simple(1), 'matmul_simple<__half, true, Epilogue>'],
  ['_Z', '_Z'],
])('%s is %s', async (symbol, name) => {
  expect((await readableNames([[symbol]]))[0]?.get(symbol)).toBe(name)
})

test('different symbols of a file have different names, whatever is left out of them', async () => {
  const symbols = [simple(0), simple(1), kept, kept.replace('2f014be6', '3f014be6'), '_ZN6heddle4spinEPf', '_Z4spinPf']
  const [names, other] = await readableNames([symbols, [kept]])
  expect(new Set(names?.values()).size).toBe(symbols.length)
  expect(names?.get('_Z4spinPf')).toBe('_Z4spinPf')
  expect(other?.get(kept)).toBe('layer_norm_kept<WarpTeam<4>, 1>')
})

test('without a demangler symbols stay as they are', async () => {
  const path = process.env.PATH
  process.env.PATH = ''
  try {
    expect((await readableNames([[kept]]))[0]?.get(kept)).toBe(kept)
  } finally {
    process.env.PATH = path
  }
})

test.each([
  [kept, 'layer_norm_kept'],
  ['_Z1k3Foo', 'k'],
  ['_Z4spinPf', 'spin'],
  ['attention_pipelined<__half, Slots<a::b>>', 'attention_pipelined'],
  ['slots::k<3>', 'k'],
  ['_Z', '_Z'],
])('%s is plainly %s', (name, plain) => expect(plainName(name)).toBe(plain))
