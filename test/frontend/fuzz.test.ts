/**
 * Random ops through the whole of `gen`: names of every kind, bodies of every construct, most of them wrong somewhere. Each is compiled or refused
 * with a code and a line; nothing else may happen.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { HeddleError } from '../../src/errors.js'
import { read } from './refuse.js'

const odd = [
  'constructor toString hasOwnProperty __proto__ valueOf prototype name length arguments NaN Infinity Math',
  'blockIdx threadIdx gridDim blockDim warpSize std heddle main NULL assert errno INFINITY M_PI EOF signed operator int float',
  'class template this register I T VEC Team row rows sum max value x0 x_y größe $a a$ _ __ c c0 m1',
]
  .join(' ')
  .split(' ')
const plain = [...'abcdefghkmnpqrstuvwxyz']

interface Names {
  readonly m: string
  readonly n: string
  readonly x: string
  readonly ids: string
  readonly y: string
  readonly eps: string
  readonly i: string
  readonly c: string
  readonly t: string
}

const names: fc.Arbitrary<Names> = fc
  .tuple(
    fc.uniqueArray(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...plain) }, fc.constantFrom(...odd)), {
      minLength: 9,
      maxLength: 9,
    }),
  )
  .map(([[m = '', n = '', x = '', ids = '', y = '', eps = '', i = '', c = '', t = '']]) => ({ m, n, x, ids, y, eps, i, c, t }))

/** Expressions over the names, by a depth. */
const expression = (at: Names): fc.Arbitrary<string> => {
  const { n, x, ids, eps, i, c, t } = at
  const { tree } = fc.letrec<{ tree: string }>((tie) => {
    const e = tie('tree')
    return {
      tree: fc.oneof(
        { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
        { weight: 12, arbitrary: fc.constantFrom(c, i, n, eps, t, '0', '1', '2', '0.5', '-1', 'K') },
        fc.constantFrom('1e300', '1e-320', 'Infinity', 'true', '1e9', '7 % 0'),
        { weight: 12, arbitrary: fc.constantFrom(`${x}(${i}, ${c})`, `${ids}(${i})`, `${x}(${i}, 0)`) },
        fc
          .tuple(fc.constantFrom(...'+-*/%&|<'.split(''), '<<', '>>', '===', '**', '&&'), e, e)
          .map(([o, a, b]) => `(${a} ${o} ${b})`),
        fc.tuple(fc.constantFrom('maximum', 'minimum', 'idiv', 'pow', 'twice'), e, e).map(([f, a, b]) => `${f}(${a}, ${b})`),
        fc.tuple(fc.constantFrom('exp', 'toInt', 'round', '-', '!', 'abs', 'half', 'toFloat'), e).map(([f, a]) => `${f}(${a})`),
        fc.tuple(e, e, e).map(([a, b, d]) => `(${a} < ${b} ? ${b} : ${d})`),
        fc.tuple(fc.constantFrom('sum', 'max', 'argmax'), e).map(([f, a]) => `${f}(${n}, (k) => ${x}(${i}, k) + (${a}))`),
        fc.tuple(e, e).map(([a, b]) => `${x}(${a}, ${b})`),
      ),
    }
  })
  return tree
}

const module = `import { abs, argmax, exp, idiv, int, max, maximum, minimum, op, pow, round, row, sum, scan, tensor, toFloat, toInt } from 'heddle'
const K = 3
const half = (v: number): number => v / 2
const twice = (v: number, w: number): number => half(v) + half(w)
`

const spec: fc.Arbitrary<string> = names.chain((at) =>
  fc
    .tuple(
      expression(at),
      expression(at),
      fc.constantFrom('f32', 'f16', 'i8', 'u8', 'i32', 'T'),
      fc.constantFrom('1', '0', '1e400', 'int(0)', 'int(3)', '-0.5', 'Infinity'),
      fc.constantFrom('row', 'element', 'scan'),
    )
    .map(([first, second, dtype, initial, form]) => {
      const { m, n, x, ids, y, eps, i, c, t } = at
      const value = form === 'scan' ? `scan(${n}, (${c}) => ${second})` : `row(${n}, (${c}) => ${second})`
      const body =
        form === 'element'
          ? `(${i}, ${c}) => { const ${t} = ${first}; return { ${y}: ${second} } }`
          : `(${i}) => { const ${t} = ${first.replaceAll(c, '1')}; return { ${y}: ${value} } }`
      return `${module}export const it = op('fuzzed', {
  dims: ['${m}', '${n}'],
  types: { T: ['f32', 'f16'] },
  inputs: { ${x}: tensor('T', '${m} ${n}'), ${ids}: tensor('i32', '${m}') },
  outputs: { ${y}: tensor('${dtype}', '${m} ${n}') },
  attrs: { ${eps}: ${initial} },
  body: ({ ${x}, ${ids} }, { ${m}, ${n}, ${eps} }) => ${body},
})
`
    }),
)

/** Outcome for a module: `made`, or the codes of its refusals. Any other error is thrown. */
function outcome(text: string): string {
  const { kernels, diagnostics: all } = read(text)
  // Unused imports of a module are allowed here.
  const diagnostics = all.filter(({ code }) => code !== 'TS6133')
  if (diagnostics.length > 0) {
    for (const { code, line } of diagnostics) {
      expect(code).toMatch(/^(HED|TS)\d+$/)
      expect(line).toBeGreaterThan(0)
    }
    return [...new Set(diagnostics.map(({ code }) => code))].join(' ')
  }
  try {
    for (const generated of generate(kernels).values()) expect(generated).not.toMatch(/undefined|\[object|native code/)
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    return error.code
  }
  return 'made'
}

describe('random ops', () => {
  it('are compiled or refused with a code', () => {
    const seen = new Map<string, number>()
    fc.assert(
      fc.property(spec, (text) => {
        const result = outcome(text)
        seen.set(result, (seen.get(result) ?? 0) + 1)
      }),
      { numRuns: 50, seed: 12 },
    )
    // A draw is useless if it is always refused for one reason.
    expect(seen.size).toBeGreaterThan(5)
  })

  it('compile with odd names and no errors', () => {
    const good = names.map(
      ({ m, n, x, y, eps, i, c, t }) => `${module}export const it = op('fuzzed', {
  dims: ['${m}', '${n}'],
  inputs: { ${x}: tensor('f32', '${m} ${n}') },
  outputs: { ${y}: tensor('f32', '${m} ${n}') },
  attrs: { ${eps}: 1 },
  body: ({ ${x} }, { ${n}, ${eps} }) => (${i}) => {
    const ${t} = sum(${n}, (${c}) => ${x}(${i}, ${c}))
    return { ${y}: row(${n}, (${c}) => ${x}(${i}, ${c}) * ${t} + ${eps}) }
  },
})
`,
    )
    let made = 0
    fc.assert(
      fc.property(good, (text) => {
        if (outcome(text) === 'made') made += 1
      }),
      { numRuns: 25, seed: 7 },
    )
    expect(made).toBeGreaterThan(3)
  })
})
