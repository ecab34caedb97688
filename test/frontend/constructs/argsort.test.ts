/** `argsort` in bodies: its order, and its refusals at the author's line. */
import { describe, expect, it } from 'vitest'
import { argsort } from '../../../src/lang/index.js'
import { refuses } from '../refuse.js'

const op = (made: string, more = ''): string => `import { argsort, foldRow, op, row, tensor } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), k: tensor('i32', 'm') },
  outputs: { y: tensor('f32', 'm n') },
  body: ({ x, k }, { n }) => (m) => {
    const order = ${made}
    ${more}
    return { y: row(n, (c) => x(m, order(c)) + k(m)) }
  },
})
export const used = { foldRow }
`

describe('argsort', () => {
  it('is stable, with NaN last and zeros of either sign equal', () => {
    const values = [3, Number.NaN, -0, Number.NEGATIVE_INFINITY, 0, 3, Number.POSITIVE_INFINITY, -0]
    const order = argsort(8, values.length, (c) => values[c] ?? 0)
    expect(values.map((_, i) => order(i))).toEqual([3, 2, 4, 7, 0, 5, 6, 1])
    expect(() => argsort(4, 8, () => 0)).toThrow('argsort is for rows of at most 4 elements, this one has 8')
    const unused = (): void => {
      // @ts-expect-error the longest row is missing
      argsort(8, (c) => c)
      // @ts-expect-error a row, not an array
      argsort(8, 8, (c) => c)[0] + 1
    }
    expect(unused).toBeTypeOf('function')
  })

  it('is refused if a block has no memory for the row', () => {
    refuses(op('argsort(«5000», n, (c) => x(m, c))'), {
      code: 'range',
      message: 'argsort(5000, ...) sorts rows of at most 5000 elements, allowed are 1 to 4096',
      hint: 'a row is sorted in the shared memory of one block; for the largest elements of a longer row take topK, to cut it off take threshold',
    })
    refuses(op('argsort(64, «k(m)», (c) => x(m, c))'), {
      code: 'shape',
      message: 'expected a dimension as the length of argsort, got k(m)',
      hint: 'sort the whole row, with keys of Infinity for missing elements',
    })
    const two = op('argsort(4096, n, (c) => x(m, c) + other(c))').replace(
      'const order',
      'const other = argsort(64, n, (c) => x(m, c))\n    const order',
    )
    refuses(two.replace("op('t'", "op(«'t'»"), {
      code: 'size',
      message: 'the op sorts rows of 64 and 4096 elements, allowed are 4096 together',
      hint: 'make it two ops',
    })
  })
})
