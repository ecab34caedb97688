/** IR of bodies: the printed kernel for each construct of the language. */
import { describe, expect, it } from 'vitest'
import { printKernel, printLayout } from '../../../src/ir/print.js'
import { read, rowBody } from '../refuse.js'

/** Printed statements of the only kernel in a module. */
function lowered(source: string | Readonly<Record<string, string>>): string[] {
  const { kernels, diagnostics } = read(source)
  expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  const lines = kernels.map(printKernel).join('').trimEnd().split('\n')
  return lines.slice(lines.findIndex((line) => line.startsWith('for') || line === 'once')).map((line) => line.trim())
}

/** The element of `y[m1, c]` that an expression over x, ids, n, eps, rows, m and c becomes. */
function element(expression: string, module = ''): string {
  const keep = '(x(m, c) + ids(m) + eps * rows)'
  const text = lowered(rowBody(`return { y: row(n, (c) => ${keep} + (${expression})) }`, module)).at(-1) ?? ''
  return text.replace(/^.*eps \* toFloat\(m\)\)? \+ /, '').replace(/ for c < n$/, '')
}

describe('expressions', () => {
  const cases: readonly (readonly [body: string, text: string])[] = [
    ['x(m, c) * 2', 'x[m1, c] * 2.0'],
    ['x(m, c) ** 2', 'square(x[m1, c])'],
    ['x(m, c) ** 3', 'pow(x[m1, c], 3.0)'],
    ['-x(m, c)', '-x[m1, c]'],
    ['n / 2', 'toFloat(n) / 2.0'],
    ['1 / 3', '0.3333333333333333'],
    ['ids(m) & 1 ^ 0xffffffff', 'toFloat(ids[m1] & 1 ^ -1)'],
    ['1e6 * 1e6', '1000000000000.0'],
    ['-1e30', '-1e+30'],
    ['Math.PI', '3.141592653589793'],
    ['Number.NEGATIVE_INFINITY', '-Infinity'],
    ['c < n - 1 ? x(m, c + 1) : 0', '(c < n - 1 ? x[m1, c + 1] : 0.0)'],
    ['c < n && !(m > 0) ? 1 : 2', 'toFloat(c < n && !(m1 > 0) ? 1 : 2)'],
    ['x(ids(m), c)', 'x[ids[m1], c]'],
    ['x(m, idiv(c, 2) % 3)', 'x[m1, c idiv 2 % 3]'],
    ['x(m, toInt(eps))', 'x[m1, toInt(eps)]'],
    ['sum(n, (k) => x(m, k))', 'sum(k < n: x[m1, k])'],
    ['argmax(n, (k) => x(m, k)) / 2', 'toFloat(argmax(k < n: x[m1, k])) / 2.0'],
    ['exp(maximum(x(m, c), 0))', 'exp(maximum(x[m1, c], 0.0))'],
    ['(x(m, c) satisfies number) as number', 'x[m1, c]'],
    ['x(m, (c >> 1) & 1)', 'x[m1, c >> 1 & 1]'],
  ]
  it.each(cases)('%s', (body, text) => expect(element(body)).toBe(text))
})

describe('names of modules', () => {
  const cases: readonly (readonly [what: string, body: string, module: string, text: string])[] = [
    ['a constant', 'K * x(m, c)', 'const K = 0.5', '0.5 * x[m1, c]'],
    ['a constant of constants', 'K', 'const J = 3\nconst K = J / 2', '1.5'],
    ['a field of a constant object', 'K.a', 'const K = { a: 2 } as const', '2.0'],
    ['a constant arrow', 'f(x(m, c))', 'const f = (a: number) => exp(a)', 'exp(x[m1, c])'],
    ['a function declaration', 'f(x(m, c))', 'function f(a: number) { const b = a * a; return b }', 'x[m1, c] * x[m1, c]'],
    ['an alias of an intrinsic', 'e(x(m, c))', 'const e = exp', 'exp(x[m1, c])'],
    [
      'an intrinsic passed as a value',
      'twice(exp, x(m, c))',
      'const twice = (f: (a: number) => number, a: number) => f(f(a))',
      'exp(exp(x[m1, c]))',
    ],
    [
      'a closure over a constant',
      'f(x(m, c))',
      'const scaleBy = (k: number) => (a: number) => a * k\nconst f = scaleBy(4)',
      'x[m1, c] * 4.0',
    ],
  ]
  it.each(cases)('%s', (_, body, module, text) => expect(element(body, module)).toBe(text))
  it('follows imports, renamed, re-exported and by namespace', () => {
    const source = rowBody(
      'return { y: row(n, (c) => a.half(x(m, c)) + h.exp(half2(x(m, c))) + ids(m) + eps * rows) }',
      "import * as a from './helper.js'\nimport * as h from 'heddle'\nimport { half as half2 } from './again.js'",
    )
    const files = {
      'helper.ts': 'export const half = (a: number): number => a / 2',
      'again.ts': "export { half } from './helper.js'",
      'm.ts': source,
    }
    expect(lowered(files).at(-1)).toContain('x[m1, c] / 2.0 + exp(x[m1, c] / 2.0)')
  })
  it('recognises op and tensor under any name', () => {
    const files = {
      'names.ts': "export { op as declare, tensor as input } from 'heddle'",
      'm.ts':
        "import { declare, input } from './names.js'\nexport const t = declare('t', { dims: ['m'], inputs: { x: input('f32', 'm') }, outputs: { y: input('f32', 'm') }, body: ({ x }) => (i) => ({ y: x(i) }) })",
    }
    expect(lowered(files)).toEqual(['once', 'y[i] = x[i] for i < m'])
  })
})

describe('statements', () => {
  const end = 'ids(m) + eps * rows'
  it('names reductions after their constants', () =>
    expect(
      lowered(
        rowBody(
          `const total = sum(n, (c) => x(m, c))\n const mean = sum(n, (c) => x(m, c)) / n\n return { y: row(n, (c) => x(m, c) + total + mean + ${end}) }`,
        ),
      ).slice(1, 4),
    ).toEqual([
      'let total: f32 = sum(c < n: x[m1, c])',
      'let sum0: f32 = sum(c1 < n: x[m1, c1])',
      'let mean: f32 = sum0 / toFloat(n)',
    ]))
  it('reduces named rows and tensors', () =>
    expect(
      lowered(
        rowBody(
          `const v = row(n, (c) => x(m, c))\n const a = max(n, v)\n const b = sum(rows, ids)\n return { y: row(n, (c) => v(c) + a + b + ${end}) }`,
        ),
      ).slice(1, 4),
    ).toEqual(['row v: f32 = [c < n: x[m1, c]]', 'let a: f32 = max(i < n: v[i])', 'let b: i32 = sum(i1 < m: ids[i1])']))
  it('binds the arguments of helpers once a row', () =>
    expect(
      lowered(
        rowBody(`const v = f(eps * 3)\n return { y: row(n, (c) => x(m, c) + v + ${end}) }`, 'const f = (a: number) => a * a + a'),
      ).slice(1, 3),
    ).toEqual(['let a: f32 = eps * 3.0', 'let v: f32 = a * a + a']))
  it('lets helpers return rows and records', () =>
    expect(
      lowered(
        rowBody(
          `const { mean, v } = stats(n, (c) => x(m, c))\n return { y: row(n, (c) => v(c) - mean + ${end}) }`,
          'const stats = (n: number, f: (c: number) => number) => { const v = row(n, f); return { mean: sum(n, v) / n, v } }',
        ),
      ).slice(1, 4),
    ).toEqual([
      'row v: f32 = [c < n: x[m1, c]]',
      'let sum0: f32 = sum(i < n: v[i])',
      expect.stringMatching(/^y\[m1, c1\] = v\[c1\] - sum0 \/ toFloat\(n\)/),
    ]))
  it('stores a named row and a plain function', () => {
    expect(lowered(rowBody(`const y = row(n, (c) => x(m, c) + ${end})\n return { y }`)).at(-1)).toBe('y[m1, i] = y1[i] for i < n')
    expect(lowered(rowBody(`return { y: (c: number) => x(m, c) + ${end} }`)).at(-1)).toMatch(
      /^y\[m1, c\] = x\[m1, c\] .* for c < n$/,
    )
  })
  it('scans rows, named after their constants', () =>
    expect(
      lowered(
        rowBody(
          `const ends = scan(n, (c) => x(m, c))\n const counts = scan(rows, ids)\n const top = max(n, scan(n, ends))\n return { y: row(n, (c) => ends(c) + counts(m) + top + ${end}) }`,
        ),
      ).slice(1, 5),
    ).toEqual([
      'row ends: f32 = scan sum(c < n: x[m1, c])',
      'row counts: i32 = scan sum(i < m: ids[i])',
      'row scan0: f32 = scan sum(i1 < n: ends[i1])',
      'let top: f32 = max(i2 < n: scan0[i2])',
    ]))
  it('stores a scan', () =>
    expect(lowered(rowBody(`return { y: scan(n, (c) => x(m, c) + ${end}) }`)).slice(1)).toEqual([
      expect.stringMatching(/^row y1: f32 = scan sum\(c < n: x\[m1, c\]/),
      'y[m1, i] = y1[i] for i < n',
    ]))
  it('stores histograms, named or not', () => {
    const counted = (statements: string) =>
      rowBody(`return { y: row(n, (c) => x(m, c) + ${end}) }`) +
      `export const u = op('u', {
        dims: ['m', 'n', 'k'],
        inputs: { x: tensor('f32', 'm n') },
        outputs: { y: tensor('i32', 'm k') },
        body: ({ x }, { n, k }) => (m) => { ${statements} },
      })`
    const text = 'y[m1, *] = histogram(c < n: toInt(x[m1, c])) of k'
    expect(lowered(counted('return { y: histogram(k, n, (c) => toInt(x(m, c))) }')).at(-1)).toBe(text)
    expect(lowered(counted('const y = histogram(k, n, (c) => toInt(x(m, c)))\n return { y }')).at(-1)).toBe(text)
  })
  it('drops unused values', () =>
    expect(
      lowered(rowBody(`const a = sum(n, (c) => x(m, c))\n const b = a * 2\n return { y: row(n, (c) => x(m, c) + ${end}) }`)),
    ).toHaveLength(2))
})

describe('elementwise bodies', () => {
  const op = (dims: string, body: string): string =>
    `import { op, sum, tensor } from 'heddle'\nexport const t = op('t', { dims: ${JSON.stringify(dims.split(' '))}, inputs: { x: tensor('f32', '${dims}') }, outputs: { y: tensor('f32', '${dims}'), z: tensor('f32', '${dims}') }, body: ${body} })`
  it('become rows, one loop an output', () =>
    expect(
      lowered(op('m n', '({ x }) => (i, j) => { const a = x(i, j) * 2; const b = x(i, 0) + 1; return { y: a * a, z: a + b } }')),
    ).toEqual([
      'for i < m',
      'let b: f32 = x[i, 0] + 1.0',
      'y[i, j] = x[i, j] * 2.0 * (x[i, j] * 2.0) for j < n',
      'z[i, j1] = x[i, j1] * 2.0 + b for j1 < n',
    ]))
  it('stay scalar if a row is reduced', () =>
    expect(
      lowered(op('m n', '({ x }, { n }) => (i, j) => { const s = sum(n, (k) => x(i, k)); return { y: s, z: x(i, j) } }')),
    ).toEqual(['for i < m, j < n', 'let s: f32 = sum(k < n: x[i, k])', 'y[i, j] = s', 'z[i, j] = x[i, j]']))
})

describe('signatures', () => {
  it('come from constants of any module', () => {
    const files = {
      'types.ts': "export const floats = ['f32', 'f16'] as const\nexport const all = { T: [...floats, 'bf16'] } as const",
      'm.ts': `import { int, op, tensor } from 'heddle'
import { all } from './types.js'
const dims = ['m'] as const
const eps = 1e-5
export const t = op('t', {
  dims, types: all, inputs: { x: tensor('T', 'm') }, outputs: { y: tensor('f32', 'm') }, attrs: { eps, window: int(-3), low: -1e30 },
  body: ({ x }, { eps, window, low }) => (i) => ({ y: i > window ? x(i) * eps : low }),
})`,
    }
    const [kernel] = read(files).kernels
    expect(kernel && printKernel(kernel)).toBe(`kernel t<T: f32 | f16 | bf16>(m)
  in  x: T[m]
  out y: f32[m]
  attr eps: f32 = 0.00001
  attr window: i32 = -3
  attr low: f32 = -1e+30
once
  y[i] = i > window ? x[i] * eps : low for i < m
`)
    expect(kernel?.source).toEqual({ file: 'specs/memory/m.ts', line: 5, column: 18 })
  })
  it('have layouts, which are lowered and proved', () => {
    const { layouts, kernels } = read(`import { idiv, layout, op, tensor } from 'heddle'
export const col32 = layout('col32', ['r', 'c'], {
  offset: (i, n) => (i.c >> 5) * 32 * n.r + i.r * 32 + (i.c & 31),
  size: (n) => idiv(n.c + 31, 32) * 32 * n.r,
})
export const t = op('t', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', 'm n', col32) }, body: ({ x }) => (m, c) => ({ y: x(m, c) }) })`)
    expect(layouts.map(printLayout)).toEqual([
      'layout col32(r, c) = (c >> 5) * 32 * #r + r * 32 + (c & 31) of (#c + 31) idiv 32 * 32 * #r\n',
    ])
    expect(kernels[0]?.tensors[1]?.layout).toBe(layouts[0])
  })
})
