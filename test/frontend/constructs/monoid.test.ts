/** User-defined monoids: their IR, and every refusal. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { read, refuses } from '../refuse.js'

const linear = 'identity: { a: 1, b: 0 }, combine: (x, y) => ({ a: x.a * y.a, b: x.b * y.a + y.b })'

/** An op that uses a monoid, from its declaration and the use in the body. */
const op = (
  config: string,
  body: string,
  result = 'row(n, (c) => h.b(c))',
): string => `import { int, monoid, op, row, scan, tensor, threshold } from 'heddle'
const own = monoid({ ${config} })
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), k: tensor('i32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x, k }, { n }) => (m) => {
    const h = ${body}
    return { y: ${result} }
  },
})
export const used = { int, row, scan, threshold }
`
const scanned = 'own.scan(n, (c) => ({ a: x(m, c) + k(m, c), b: x(m, c) }))'
const scalar = 'row(n, (c) => h.b + x(m, c) + k(m, c))'

describe('a monoid of several fields', () => {
  it('becomes one statement with a name for each field', () => {
    const { kernels, diagnostics } = read(op(linear, scanned))
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    const [kernel] = kernels
    expect(kernel === undefined ? '' : printKernel(kernel)).toContain(
      'scan (h_a, h_b) = (c < n: x[m1, c] + toFloat(k[m1, c]), x[m1, c])',
    )
  })

  it('is refused as a scan if it is not associative', () => {
    const minus = 'identity: { a: 0, b: 0 }, combine: (x, y) => ({ a: x.a - y.a, b: x.b + y.b })'
    refuses(op(minus, `«${scanned}»`), {
      code: 'monoid',
      message:
        'own is not a monoid over these elements: { a: 0, b: 0 } is not the identity: with { a: -7.25, b: -1.75 } it gives { a: 7.25, b: -1.75 } and { a: -7.25, b: -1.75 }',
      hint: 'a scan combines parts of a row in any grouping: (a b) c and a (b c) must be the same',
    })
    const mean =
      'identity: { a: 0, b: 0 }, combine: (x, y) => ({ a: x.a + y.a, b: x.a === 0 ? y.b : y.a === 0 ? x.b : (x.b + y.b) / 2 })'
    const { diagnostics } = read(op(mean, 'own.scan(n, (c) => ({ a: 1, b: x(m, c) + k(m, c) }))'))
    expect(diagnostics.map(({ message }) => message).join()).toContain('it is not associative: four elements')
  })

  it('chooses between its parts field by field', () => {
    const picks = (combine: string): string => `identity: { a: 0, b: 0 }, combine: (x, y) => ${combine}`
    refuses(op(picks('x.a > y.a ? «x» : y'), scanned), {
      code: 'dtype',
      message: 'x is an object where a number is expected',
      hint: 'choose field by field: ({ a: x.a > y.a ? x.a : y.a, b: x.a > y.a ? x.b : y.b })',
    })
    refuses(op(picks('({ a: x.a, b: x.a > y.a ? x.b : «(y as unknown as number)» })'), scanned), {
      code: 'dtype',
      message: '(y as unknown as number) is an object where a number is expected',
      hint: 'read a field of it: a, b',
    })
  })

  it('is refused as a reduction if the order of elements matters, which a scan preserves', () =>
    refuses(op(linear, `«${scanned.replace('scan', 'reduce')}»`, scalar), {
      code: 'monoid',
      message:
        'own is not a monoid over these elements: it is not commutative: { a: -2, b: -2 } and { a: 5.25, b: 0.25 } give { a: -10.5, b: -10.25 }, in the other order { a: -10.5, b: -2.5 }',
      hint: 'the compiler chooses the order and grouping of a reduction, so combine must be associative and commutative; where the order matters, use a scan',
    }))

  it('is read at the index of a loop over its row, and so are values computed from it', () => {
    const hint = (row: string): string =>
      `read it at the index of a loop over the row: row(n, (c) => ${row}(c)); all elements combined are a reduce, or the last of a row; for any other order return the row, and read it in another op`
    refuses(op(linear, scanned, 'row(n, (c) => h.b(«n - 1 - c»))'), {
      code: 'row',
      message: 'h_b is a scan by a monoid of its own, read at n - 1 - c',
      hint: hint('h.b'),
    })
    for (const made of ['row(n, (c) => h.b(c) + 1)', 'row(n, h.b)', 'scan(n, (c) => h.b(c))'])
      refuses(op(linear, `${scanned}\n    const copy = ${made}`, 'row(n, (c) => copy(«n - 1 - c»))'), {
        code: 'row',
        message: 'copy is computed from h_b, a scan by a monoid of its own, read at n - 1 - c',
        hint: hint('copy'),
      })
  })

  it.each(['row(n, (c) => h.b(c) + 1)', 'row(n, h.b)', 'scan(n, (c) => h.b(c))', 'own.scan(n, (c) => ({ a: 1, b: h.b(c) })).b'])(
    'may be read by %s, at its own index',
    (made) => {
      const { diagnostics } = read(op(linear, `${scanned}\n    const copy = ${made}`, 'row(n, (c) => copy(c))'))
      expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    },
  )

  it('may be copied to a short row, which is stored and read at any index', () => {
    const short = scanned.replace('scan(n,', 'scan(8,')
    const { diagnostics } = read(
      op(linear, `${short}\n    const copy = row(8, (c) => h.b(c))`, 'row(n, (c) => copy(7) + x(m, c))'),
    )
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  })

  it('cannot be searched for a threshold', () =>
    refuses(op(linear, `${scanned}\n    const cut = threshold(n, 3, «(c) => h.b(c)», (c) => 1)`, 'row(n, (c) => h.b(c) + cut)'), {
      code: 'row',
      message: 'threshold walks over its row many times, h_b is a scan by a monoid of its own, which is made once',
      hint: 'return h_b as an output, and take the threshold in an op of its own',
    }))

  it('has elements of its fields', () => {
    refuses(
      op(
        linear,
        'own.scan(n, «(c) => ({ a: x(m, c) > 0, b: x(m, c) + k(m, c) })»)'.replace(
          'x(m, c) > 0',
          '(x(m, c) > 0) as unknown as number',
        ),
      ),
      {
        code: 'dtype',
        message: 'field a is a float, an element has a boolean',
        hint: 'declare the identity as int(...)',
      },
    )
    const counted = 'identity: { a: int(0), b: 0 }, combine: (x, y) => ({ a: x.a + y.a, b: x.b + y.b })'
    refuses(op(counted, 'own.scan(n, «(c) => ({ a: x(m, c), b: x(m, c) + k(m, c) })»)'), {
      code: 'dtype',
      message: 'field a is an integer, an element has a float',
      hint: 'use toInt, or declare the identity without int',
    })
  })

  it('is defined at row level', () =>
    refuses(op(linear, 'x(m, 0) + k(m, 0)', 'row(n, (c) => «own.reduce(n, (j) => ({ a: h, b: x(m, j) }))».b + x(m, c))'), {
      code: 'row',
      message: 'a reduction by a monoid of its own cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
})
