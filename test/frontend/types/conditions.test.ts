/** Tensors of conditions: their loads and stores in the IR, and refusals. */
import { describe, expect, it } from 'vitest'
import { printKernel } from '../../../src/ir/print.js'
import { read, refuses } from '../refuse.js'

const inputs = { on: "tensor('bool', 'm n')", x: "tensor('f32', 'm n')", id: "tensor('i32', 'm')" }

/** An op of the inputs and functions that its body names. */
const source = (body: string, updates = ''): string => {
  const named = (names: readonly string[]): string[] => names.filter((name) => new RegExp(`\\b${name}\\(`).test(body))
  const read = named(Object.keys(inputs)).map((name) => `${name}: ${inputs[name as keyof typeof inputs]}`)
  return `import { op, ${[...named(['row', 'sum']), 'tensor'].join(', ')} } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { ${read.join(', ')} },${body.includes('id(') ? '\n  facts: { id: { from: 0, to: 9 } },' : ''}
  outputs: { y: tensor('bool', 'm n') },${updates}
  body: ({ ${named(Object.keys(inputs)).join(', ')} }${body.includes('(n,') ? ', { n }' : ''}) => ${body},
})`
}

/** The statements of the one kernel. */
function lowered(body: string, updates?: string): string {
  const { kernels, diagnostics } = read(source(body, updates))
  expect(diagnostics).toEqual([])
  return kernels.map(printKernel).join('')
}

describe('conditions', () => {
  it.each([
    ['a comparison', '(m, c) => ({ y: x(m, c) > 1 })', 'x[m1, c] > 1.0 ? 1 : 0'],
    ['another condition', '(m, c) => ({ y: !on(m, c) })', '!(on[m1, c] !== 0) ? 1 : 0'],
    ['two that are the same', '(m, c) => ({ y: on(m, c) === x(m, c) < 0 })', 'on[m1, c] !== 0 === x[m1, c] < 0.0 ? 1 : 0'],
    ['a choice', '(m, c) => ({ y: c > 1 ? on(m, c) : false })', 'c > 1 ? (on[m1, c] !== 0 ? 1 : 0) : 0'],
  ])('%s', (_, body, text) => expect(lowered(body).replace(/[()]/g, '')).toContain(text.replace(/[()]/g, '')))
  it('of a named row are stored as integers', () => {
    const text = lowered('(m) => { const v = row(n, (c) => x(m, c) > 1); return { y: row(n, (c) => v(c) && on(m, c)) } }')
    expect(text).toContain('row v: i32 = ')
    expect(text).toContain('v[c1] !== 0 && on[m1, c1] !== 0')
  })
  it('that stay in place are not stored again', () => {
    const replaced = "\n  updates: { y: 'on' },"
    const text = lowered('(m, c) => ({ y: c === id(m) ? true : on(m, c) })', replaced)
    expect(text).not.toContain('on[m1, c] !== 0')
  })
})

describe('values that are not conditions', () => {
  it('are refused where one is stored', () =>
    refuses(source('(m, c) => ({ y: «x(m, c)» })'), {
      code: 'dtype',
      message: 'output y holds conditions, x(m, c) is a float',
      hint: 'compare it, as in a !== 0',
    }))
  it('are required by sums', () =>
    refuses(source('(m) => { const s = sum(n, «(c) => on(m, c)»); return { y: row(n, (c) => s > c) } }'), {
      code: 'dtype',
      message: 'sum reduces numbers, its element is a boolean',
      hint: 'write condition ? 1 : 0',
    }))
})
