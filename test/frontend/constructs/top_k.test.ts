/** `topK` in bodies: its IR, and its refusals at the author's line. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { read, refuses } from '../refuse.js'

/** An op that ranks rows of x, with the given statements in its body. */
const body = (statements: string, outputs = "{ y: tensor('f32', 'm k') }"): string => `
import { op, row, tensor, topK } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n', 'k', 'w'],
  inputs: { x: tensor('f32', 'm n'), ids: tensor('i32', 'm n'), z: tensor('f32', 'm w') },
  outputs: ${outputs},
  body: ({ x, ids, z }, { n, k, w }) => (m) => {
    ${statements}
  },
})
`
const rest = 'row(k, (i) => best.values(i) + z(m, 0) + ids(m, 0))'

describe('topK', () => {
  const lowered = (source: string): string => {
    const { kernels, diagnostics } = read(source)
    expect(diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
    return kernels.map(printKernel).join('')
  }

  it('becomes a statement with two rows, called as the author does', () => {
    const text = lowered(body(`const best = topK(k, n, (c) => x(m, c))\n return { y: ${rest} }`))
    expect(text).toContain('rows bestValues, bestIndices = top k(c < n: x[m1, c])')
    expect(text).toContain('y[m1, i] = bestValues[i] + z[m1, 0] + toFloat(ids[m1, 0]) for i < k')
  })

  it('may be destructured, and returned unchanged', () => {
    const text = lowered(body('const { values } = topK(k, n, (c) => x(m, c) + z(m, 0) + ids(m, c))\n return { y: values }'))
    expect(text).toContain('rows topValues, topIndices = top k(c < n: ')
    expect(text).toContain('y[m1, i] = topValues[i] for i < k')
  })

  it('may have fewer elements read than there are', () => {
    const outputs = "{ y: tensor('f32', 'm w'), u: tensor('f32', 'm k') }"
    const statements = `const best = topK(k, n, (c) => x(m, c))
    return { y: row(w, (j) => best.values(j)), u: ${rest} }`
    expect(lowered(body(statements, outputs))).toContain('y[m1, j] = bestValues[j] for j < w')
  })

  it('takes three arguments', () =>
    refuses(body(`const best = «topK(n, (c) => x(m, c))»\n    return { y: ${rest} }`), {
      code: 'arity',
      message: 'topK takes 3 arguments, 2 given',
      hint: 'write topK(k, n, (c) => x(m, c))',
    }))

  it('may have a literal count, with elements read by literal index', () => {
    const three = (at: string): string =>
      body(`const best = topK(3, n, (c) => x(m, c))\n return { y: row(k, (i) => best.values(${at}) + z(m, i) + ids(m, 0) + w) }`)
    expect(lowered(three('2').replace('z(m, i)', 'z(m, 0 + i)'))).toContain(
      'rows bestValues, bestIndices = top 3(c < n: x[m1, c])',
    )
    refuses(three('«3»').replace('z(m, i)', 'z(m, 0 + i)'), {
      code: 'shape',
      message: 'row bestValues has 3 elements, there is no element 3',
      hint: 'indices count from 0',
    })
  })

  it('takes a dimension or a number as its count', () => {
    refuses(body(`const best = topK(«n - 1», n, (c) => x(m, c))\n    return { y: ${rest} }`), {
      code: 'shape',
      message: 'k of topK is a dimension or a number, n - 1 is neither',
      hint: 'make it a dimension of the op, which an output spans: kernels are compiled for the counts it may have',
    })
    refuses(body(`const best = topK(«4097», n, (c) => x(m, c))\n    return { y: ${rest} }`), {
      code: 'range',
      message: 'topK(4097, ...) ranks 4097 elements',
      hint: 'ranked are 1 to 4096',
    })
  })

  it('ranks floats', () =>
    refuses(body(`const best = topK(k, n, «(c) => ids(m, c)»)\n    return { y: ${rest} }`), {
      code: 'dtype',
      message: 'topK ranks floats, its element is an integer',
      hint: 'convert it with toFloat',
    }))

  it('takes a row', () =>
    refuses(body(`const best = topK(k, n, «z(m, 0)»)\n    return { y: ${rest} }`), {
      code: 'row',
      message: 'topK takes a row or a function of an index, z(m, 0) is a float',
      hint: 'write topK(k, n, (c) => x(m, c))',
    }))

  it('is defined at row level, or in an element on which it does not depend', () => {
    expect(lowered(body('return { y: row(k, (i) => topK(k, n, (c) => x(m, c)).values(i) + z(m, 0) + ids(m, 0)) }'))).toContain(
      'rows topValues, topIndices = top k(c < n: x[m1, c])',
    )
    refuses(
      body('const t = n > 0 ? «topK(k, n, (c) => x(m, c))».values(0) : 0\n return { y: row(k, (i) => z(m, 0) + ids(m, 0) + t) }'),
      {
        code: 'row',
        message: 'a topK cannot be made inside an element or a branch',
        hint: 'make it a const at row level, before the row that uses it',
      },
    )
  })
})
