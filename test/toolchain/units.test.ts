/** Grouping of files into compilation units, the source of each unit, and the attribution of its kernels to files. */
import { expect, test } from 'vitest'
import type { KernelResources } from '../../src/toolchain/ptxas.js'
import type { Recipe } from '../../src/toolchain/recipe.js'
import type { KeyedFile } from '../../src/toolchain/sources.js'
import { readableNames } from '../../src/toolchain/symbol.js'
import { isOfHeaders, resourcesByFile, unitKey, unitsOf, unitText } from '../../src/toolchain/units.js'

const file = (name: string, op: string | undefined, headers: readonly string[] = []): KeyedFile => ({
  source: `cuda/${name}.cu`,
  path: `/generated/cuda/${name}.cu`,
  op,
  key: `key of ${name}`,
  text: '',
  headers,
})

const recipe: Recipe = {
  target: 'cuda',
  compiler: { path: '/bin/true', version: '1' },
  isCode: false,
  include: [],
  compileFlags: (headers) => headers.filter((header) => header.startsWith('special')),
  linkFlags: [],
  portable: [],
}

const namesOf = (units: readonly (readonly KeyedFile[])[]) => units.map((unit) => unit.map(({ source }) => source.slice(5, -3)))

test('a unit has at most eight instances of one op with the same flags', () => {
  const many = Array.from({ length: 9 }, (_, i) => file(`b__${i}`, 'b'))
  const files = [
    file('a__1', 'a'),
    file('a__2', 'a', ['special.cuh']),
    file('a__3', 'a', ['other.cuh']),
    file('r', undefined),
    ...many,
  ]
  // The unit that reaches most headers takes longest, and comes first.
  expect(namesOf(unitsOf(recipe, files))).toEqual([
    ['a__1', 'a__3'],
    ['a__2'],
    ['r'],
    ['b__0', 'b__2', 'b__4', 'b__6', 'b__8'],
    ['b__1', 'b__3', 'b__5', 'b__7'],
  ])
})

test('if everything is compiled once, a unit has the files that reach the same headers', () => {
  const files = [
    file('a__1', 'a', ['kernel.cuh']),
    file('b__1', 'b', ['kernel.cuh', 'special.cuh']),
    file('c__1', 'c', ['special.cuh', 'kernel.cuh']),
    file('d__1', 'd', ['kernel.cuh']),
    file('r', undefined),
  ]
  expect(namesOf(unitsOf(recipe, files, 'headers'))).toEqual([['b__1', 'c__1'], ['a__1', 'd__1'], ['r']])
})

test('a unit is keyed by its files, and a single file by its own key', () => {
  const [a, b, c] = [file('a__1', 'a'), file('a__2', 'a'), file('a__3', 'a')]
  expect(unitKey([a])).toBe(a.key)
  expect(unitKey([a, b])).not.toBe(unitKey([a, c]))
  expect(unitKey([a, b])).not.toBe(unitKey([a, { ...b, key: 'another' }]))
})

test('headers come first, sources in separate scopes with their lines', () => {
  const text = (type: string) => `// ${type}\n#include "kernel.cuh"\nusing T = ${type};\n`
  const [int, char] = [
    { ...file('a__1', 'a'), text: text('int') },
    { ...file('a__2', 'a'), text: text('char') },
  ]
  expect(unitText([int])).toBe(`#line 1 "/generated/cuda/a__1.cu"\n${int.text}`)
  expect(unitText([int, char])).toBe(
    [
      '#include "kernel.cuh"',
      'namespace instance_of_a__1 {\n#line 1 "/generated/cuda/a__1.cu"\n// int\n\nusing T = int;\n\n}',
      'namespace instance_of_a__2 {\n#line 1 "/generated/cuda/a__2.cu"\n// char\n\nusing T = char;\n\n}\n',
    ].join('\n'),
  )
})

test('kernels belong to the file whose scope is in their symbol, and readers see no scope', async () => {
  const files = [file('a__k1', 'a'), file('a__k16', 'a')]
  const kernel = (symbol: string): KernelResources => ({
    kernel: symbol,
    arch: 'sm_90',
    registers: 1,
    spillStoreBytes: 0,
    spillLoadBytes: 0,
    stackBytes: 0,
    sharedBytes: 0,
  })
  const first = '_ZN17instance_of_a__k112_GLOBAL__N_14keptEv'
  const second = '_ZN18instance_of_a__k1612_GLOBAL__N_15otherEv'
  const [one, two] = resourcesByFile(files, [first, second, '_Z6sharedv'].map(kernel))
  expect(one?.map((each) => each.kernel)).toEqual([first, '_Z6sharedv'])
  expect(two?.map((each) => each.kernel)).toEqual([second])
  expect((await readableNames([[first], [second]])).map((names) => [...names.values()])).toEqual([['kept'], ['other']])
})

test('a kernel of the headers that no source parametrises is known by its symbol', () => {
  expect(isOfHeaders('_ZN6heddle10align_rowsI6__halfLi2EEEviiNS_12aligned_rows7SourcesIT_XT0_EEENS_3OutIS4_EE')).toBe(true)
  expect(isOfHeaders('_ZN6heddle13matmul_simpleI6__halfLb1EN25slots_of_matmul_bias__f168EpilogueEEEvlll')).toBe(false)
  expect(isOfHeaders('_ZN26instance_of_softmax__f3212softmax_keptIN6heddle8WarpTeamILi4ELi32EEELi1EEEv')).toBe(false)
  expect(isOfHeaders('_Z12softmax_keptIN6heddle8WarpTeamILi4ELi32EEELi1EEvv')).toBe(false)
})
