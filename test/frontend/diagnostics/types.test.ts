/** Every refusal about the kind of values: integers, floats, booleans, rows, and the dimensions of indices. */
import { describe, expect, it } from 'vitest'
import { element, read, refuses, rowBody, signature } from '../refuse.js'

const integerHint = 'indices and lengths are integers: use idiv, toInt or an integer tensor'

describe('indices', () => {
  it('refuses a float', () =>
    refuses(element('x(m, «eps»)'), { code: 'index', message: 'index 1 of x: eps is a float', hint: integerHint }))
  it('refuses a quotient', () =>
    refuses(element('x(«m / 2», c)'), { code: 'index', message: 'index 0 of x: m / 2 is a float', hint: integerHint }))
  it('refuses a float index of a row', () =>
    refuses(rowBody('const v = row(n, (c) => x(m, c))\n    return { y: row(n, (c) => v(«c * 0.5»)) }'), {
      code: 'index',
      message: 'index of row v: c * 0.5 is a float',
      hint: integerHint,
    }))
  it('refuses a float length', () =>
    refuses(element('sum(«n / 2», (k) => x(m, k))'), {
      code: 'index',
      message: 'length of sum: n / 2 is a float',
      hint: integerHint,
    }))
  it('refuses a negative index', () =>
    refuses(element('x(m, «-1»)'), {
      code: 'shape',
      message: 'index -1 of dimension 1 of x is negative',
      hint: 'indices count from 0',
    }))
})

describe('shapes', () => {
  it('refuses an index of another dimension', () =>
    refuses(element('x(m, «m»)'), {
      code: 'shape',
      message: 'index m runs over m, but dimension 1 of x is n long',
      hint: 'loop over n, give both the same dimension name, or read it where it is inside, m < n ? ... : 0, or as an offset, first + m; the indices of a body run over the leading dimensions of its outputs, in their order',
    }))
  it('refuses a loop over another dimension', () =>
    refuses(element('sum(rows, (k) => x(m, «k»))'), {
      code: 'shape',
      message: 'index k runs over m, but dimension 1 of x is n long',
      hint: 'loop over n, give both the same dimension name, or read it where it is inside, k < n ? ... : 0, or as an offset, first + k',
    }))
  it('accepts an index of another dimension only under a condition that bounds it', () => {
    const inside = [
      '(k < n ? x(m, k) : 0)',
      '(k >= n ? 0 : x(m, k))',
      '(n > k && ids(m) > 0 ? x(m, k) : 0)',
      '(k + 2 <= n - 1 ? x(m, k) : 0)',
      '(!(2 * k >= n || ids(m) > 0) ? x(m, k) : 0)',
      '(k < n && x(m, k) > 0 ? 1 : 0)',
      '(k >= n || x(m, k) > 0 ? 1 : 0)',
      '(m < n ? x(m, m) : 0)',
    ]
    // Named at row level, and read in an inner loop.
    const named = `const isInside = m < n
    const v = row(n, (c) => x(m, c) + (isInside ? sum(n, () => x(m, m)) : 0))
    return { y: row(n, (c) => v(c) + ids(m) + eps * rows + sum(rows, (k) => ${inside.join(' + ')})) }`
    expect(read(rowBody(named)).diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    for (const value of [
      'k < rows ? x(m, «k») : 0',
      'k <= n ? x(m, «k») : 0',
      'k < n ? 0 : x(m, «k»)',
      'k < n || ids(m) > 0 ? x(m, «k») : 0',
      'k - 1 < n ? x(m, «k») : 0',
      'k < n + 1 ? x(m, «k») : 0',
      'k < n && 0 < x(m, k) ? 0 : x(m, «k»)',
    ])
      refuses(element(`sum(rows, (k) => ${value})`), {
        code: 'shape',
        message: 'index k runs over m, but dimension 1 of x is n long',
        hint: 'loop over n, give both the same dimension name, or read it where it is inside, k < n ? ... : 0, or as an offset, first + k',
      })
  })
  it('explains that a fold leaves only its last row', () =>
    refuses(
      `import { foldRow, op, row, sum, tensor } from 'heddle'
export const t = op('t', {
  dims: ['b', 't', 'k'], inputs: { x: tensor('f32', 'b t k') }, outputs: { y: tensor('f32', 'b t k') },
  body: ({ x }, { t, k }) => «(b) => {
    const all = foldRow(t, { s: row(k, () => 0) }, ({ s }, i) => ({ s: row(k, (c) => x(b, i, c) + s(c)) }))
    return { y: row(k, (c) => all.s(c)) }
  }»,
})
`,
      {
        code: 'shape',
        message:
          'output y has the dimensions (b t k), but the body takes 1 row indices, and stores a number or a row with them: of a row that a fold carries only the last is left',
        hint: 'return the last row, and numbers of each step; for a row of each step make the step an op of its own, launched for each, whose row is an output',
      },
    ))
  it('refuses a row of another length', () =>
    refuses(rowBody('const v = row(rows, (r) => x(r, 0))\n    return { y: row(n, (c) => v(«c»)) }'), {
      code: 'shape',
      message: 'index c runs over n, but row v is m long',
      hint: 'loop over m, give both the same dimension name, or read it where it is inside, c < m ? ... : 0, or as an offset, first + c',
    }))
  it('refuses an output row of another length', () =>
    refuses(rowBody('return { y: «row(rows, (r) => x(r, 0))» }'), {
      code: 'shape',
      message: 'output y has rows of n elements, this row has m',
      hint: 'write row(n, (c) => ...)',
    }))
  it('refuses an output row of constant length', () =>
    refuses(rowBody('return { y: «row(4, (r) => x(r, 0))» }'), {
      code: 'shape',
      message: 'output y has rows of n elements, this row has 4',
      hint: 'write row(n, (c) => ...)',
    }))
  it('refuses a number for a row', () =>
    refuses(rowBody('return { y: «eps» }'), {
      code: 'shape',
      message: "output y has the dimensions (m n), the body's indices run over (m): it takes a row, eps is a number",
      hint: 'write row(n, (c) => ...)',
    }))
  it('refuses a row for a number', () =>
    refuses(
      signature(`  dims: ['m'],
  inputs: { x: tensor('f32', 'm') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x }, { m: n }) => (m) => ({ y: «row(n, (c) => x(c))» }),`),
      {
        code: 'shape',
        message:
          "output y has the dimensions (m), the body's indices run over (m): each of its elements is a number, row(n, (c) => x(c)) is a row",
        hint: 'reduce the row, or take one row index less',
      },
    ))
  it('refuses too many row indices', () =>
    refuses(
      signature(`  dims: ['m'],
  inputs: { x: tensor('f32', 'm') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x }) => «(a, b) => ({ y: x(a) })»,`),
      {
        code: 'shape',
        message: 'output y has the dimensions (m), but the body takes 2 row indices',
        hint: 'take an index for every dimension, or for all but the last',
      },
    ))
  it('refuses outputs over different rows', () =>
    refuses(
      signature(`  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n'), «z»: tensor('f32', 'n m') },
  body: ({ x }) => (a, b) => ({ y: x(a, b), z: x(b, a) }),`),
      {
        code: 'shape',
        message: 'output z has the dimensions (n m), but the rows run over (m n)',
        hint: 'outputs of one op share their leading dimensions: make z an op of its own',
      },
    ))
})

describe('scalars', () => {
  it('refuses a boolean in arithmetic', () =>
    refuses(element('1 + («eps > 0» as unknown as number)').replace('(«eps > 0» as unknown as number)', '«(eps > 0)»'), {
      code: 'dtype',
      message: '+ takes numbers, (eps > 0) is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
  it('refuses a number as a condition', () =>
    refuses(element('«n» ? 1 : 2'), { code: 'dtype', message: 'the condition n is a number', hint: 'compare it, as in a !== 0' }))
  it('refuses a number in logic', () =>
    refuses(element('eps > 0 && «n» ? 1 : 2'), {
      code: 'dtype',
      message: '&& takes booleans, n is an integer',
      hint: 'compare it, as in a !== 0',
    }))
  it('refuses a float in place of an integer', () =>
    refuses(element('«eps» % 2'), {
      code: 'dtype',
      message: '% takes integers, eps is a float',
      hint: 'use toInt, idiv or an integer tensor',
    }))
  it('refuses branches of different kinds', () =>
    refuses(element('(eps > 0 ? 1 : «eps > 1») ? 1 : 2'), {
      code: 'dtype',
      message: '?: takes integers, eps > 1 is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
  it('refuses a reduction of booleans', () =>
    refuses(element('sum(n, «(k) => x(m, k) > 0»)'), {
      code: 'dtype',
      message: 'sum reduces numbers, its element is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
  it('refuses a scan of booleans', () =>
    refuses(rowBody('const ends = scan(n, «(k) => x(m, k) > 0»)\n    return { y: row(n, (c) => ends(c)) }'), {
      code: 'dtype',
      message: 'scan combines numbers, its element is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
  it('refuses a boolean output', () =>
    refuses(rowBody('return { y: «row(n, (c) => x(m, c) > 0)» }'), {
      code: 'dtype',
      message: 'output y holds floats, row(n, (c) => x(m, c) > 0) is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
  it('refuses a float in an integer output', () =>
    refuses(rowBody('return { y: «row(n, (c) => x(m, c))» }').replace("y: tensor('f32'", "y: tensor('i32'"), {
      code: 'dtype',
      message: 'output y holds integers, row(n, (c) => x(m, c)) is a float',
      hint: 'convert it with toInt',
    }))
  it('refuses a tensor as a number', () =>
    refuses(element('«x» * 2'), {
      code: 'dtype',
      message: 'x is a tensor where a number is expected',
      hint: 'index it: x(m, c)',
    }))
  it('refuses to compare a boolean with a number', () =>
    refuses(element('«(eps > 0) === n» ? 1 : 2'), {
      code: 'comparison',
      message: '(eps > 0) === n compares a boolean with an integer',
      hint: 'use the boolean as it is',
    }))
  it('refuses to compare an integer with a float', () =>
    refuses(element('«c < eps» ? 1 : 2'), {
      code: 'comparison',
      message: 'c < eps compares an integer with a float',
      hint: 'convert the integer with toFloat, or declare the other as an integer',
    }))
})

describe('rows', () => {
  it('refuses a row as a number', () =>
    refuses(rowBody('const v = row(n, (c) => x(m, c))\n    return { y: row(n, (c) => «v» + 1) }'), {
      code: 'row',
      message: 'v is a row where a number is expected',
      hint: 'read an element of it, as in v(c), or reduce it',
    }))
  it('refuses a row inside an element', () =>
    refuses(element('f(n, c)', 'const f = (n: number, c: number) => { const v = «row(n, (k) => k)»; return v(c) }'), {
      code: 'row',
      message: 'a row cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
  it('refuses a scan inside an element', () =>
    refuses(element('f(n, c)', 'const f = (n: number, c: number) => { const v = «scan(n, (k) => k)»; return v(c) }'), {
      code: 'row',
      message: 'a scan cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
  it('refuses a scan in a branch', () =>
    refuses(rowBody('const t = eps > 0 ? «scan(n, (c) => x(m, c))»(0) : 0\n    return { y: row(n, (c) => x(m, c) + t) }'), {
      code: 'row',
      message: 'a scan cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
  it('refuses a scan as a number', () =>
    refuses(rowBody('const ends = scan(n, (c) => x(m, c))\n    return { y: row(n, (c) => «ends» + 1) }'), {
      code: 'row',
      message: 'ends is a row where a number is expected',
      hint: 'read an element of it, as in v(c), or reduce it',
    }))
  it('refuses to scan a number', () =>
    refuses(rowBody('const ends = scan(n, «eps»)\n    return { y: row(n, (c) => ends(c) + x(m, c)) }'), {
      code: 'row',
      message: 'scan takes a row or a function of an index, eps is a float',
      hint: 'write scan(n, (c) => x(m, c))',
    }))
  it('refuses a scan without an element', () =>
    refuses(rowBody('const ends = «scan(n)»\n    return { y: row(n, (c) => ends(c) + x(m, c)) }'), {
      code: 'arity',
      message: 'scan takes 2 arguments, 1 given',
      hint: 'write scan(n, (c) => x(m, c))',
    }))
  it('refuses a scan of a fractional length', () =>
    refuses(rowBody('const ends = scan(«eps», (c) => x(m, c))\n    return { y: row(n, (c) => ends(c)) }'), {
      code: 'index',
      message: 'length of scan: eps is a float',
      hint: 'indices and lengths are integers: use idiv, toInt or an integer tensor',
    }))
  it('refuses a scan of another length as an output', () =>
    refuses(rowBody('return { y: «scan(rows, ids)» }'), {
      code: 'shape',
      message: 'output y has rows of n elements, this row has m',
      hint: 'write row(n, (c) => ...)',
    }))
  it('refuses a histogram inside an element', () =>
    refuses(element('f(n, c)', 'const f = (n: number, c: number) => { const v = «histogram(n, n, (k) => k)»; return v(c) }'), {
      code: 'row',
      message: 'a histogram cannot be made inside an element or a branch',
      hint: 'make it a const at row level, before the row that uses it',
    }))
  it('refuses a histogram as a number', () => {
    const named = 'name it, and read its counts: const count = histogram(...), then count(j)'
    refuses(rowBody('const h = «histogram(n, n, (i) => i)» + 1\n    return { y: row(n, (c) => x(m, c) + h) }'), {
      code: 'row',
      message: 'histogram(n, n, (i) => i) is a histogram where a number is expected',
      hint: named,
    })
    refuses(rowBody('const h = histogram(n, n, (i) => i)\n    return { y: row(n, (c) => x(m, c) + «h») }'), {
      code: 'row',
      message: 'h is a row where a number is expected',
      hint: 'read an element of it, as in v(c), or reduce it',
    })
  })
  it('refuses a histogram without bins', () =>
    refuses(rowBody('const h = «histogram(n, ids)»\n    return { y: h }'), {
      code: 'arity',
      message: 'histogram takes 3 arguments, 2 given',
      hint: 'write histogram(bins, n, (c) => toInt(x(m, c)))',
    }))
  it('refuses a histogram of a number', () =>
    refuses(rowBody('return { y: histogram(n, n, «eps») }'), {
      code: 'row',
      message: 'histogram takes a row or a function of an index, eps is a float',
      hint: 'write histogram(bins, n, (c) => toInt(x(m, c)))',
    }))
  it('refuses a histogram of other bins than its output has', () =>
    refuses(rowBody('return { y: «histogram(rows, n, (c) => c)» }'), {
      code: 'shape',
      message: 'output y has rows of n elements, this row has m',
      hint: 'write histogram(n, n, (c) => ...)',
    }))
  it('refuses a histogram in a tensor of floats', () =>
    refuses(rowBody('return { y: «histogram(n, n, (c) => c)» }'), {
      code: 'dtype',
      message: 'output y is stored as f32, a histogram counts in 32 bits',
      hint: 'declare it as i32',
    }))
  it('refuses a histogram of floats', () =>
    refuses(rowBody('return { y: histogram(n, n, «(c) => x(m, c)») }').replace("y: tensor('f32'", "y: tensor('i32'"), {
      code: 'dtype',
      message: 'a histogram counts integers, its element is a float',
      hint: 'use toInt',
    }))
  it('refuses to reduce a number', () =>
    refuses(element('max(n, «eps»)'), {
      code: 'row',
      message: 'max takes a row or a function of an index, eps is a float',
      hint: 'the max of two values is maximum(a, b)',
    }))
  it('refuses a reduction in a branch', () =>
    refuses(rowBody('const t = eps > 0 ? «sum(n, (c) => x(m, c))» : 0\n    return { y: row(n, (c) => x(m, c) + t) }'), {
      code: 'branch',
      message: 'sum is in a branch, but a row reduction always runs',
      hint: 'make it a const before the conditional: const t = sum(n, (c) => x(m, c))',
    }))
})
