import { expect, test } from 'vitest'
import { readableName } from '../../src/toolchain/symbol.js'

test.each([
  ['plain', 'plain'],
  ['_Z4spinPf', 'spin'],
  ['_Z6k_tmplILi3EEvPf', 'k_tmpl<3>'],
  ['_Z1kILin1ELb1EfEvv', 'k<-1, 1, float>'],
  ['_ZN6heddle3oneE', 'one'],
  ['_ZN6heddle36_GLOBAL__N__b51ce050_4_a_cu_8f6a538820layer_norm__f16_warpEPfi', 'layer_norm__f16_warp'],
  [
    '_ZN51_GLOBAL__N__2f014be6_18_layer_norm__f16_cu_0c026be415layer_norm_keptIN6heddle8WarpTeamILi4EEELi1EEEvlif',
    'layer_norm_kept<WarpTeam<4>, 1>',
  ],
  ['_Z1kIS_EvT_', 'k'],
  ['_Z', '_Z'],
])('%s is %s', (symbol, name) => {
  expect(readableName(symbol)).toBe(name)
})
