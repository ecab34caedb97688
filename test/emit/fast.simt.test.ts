/** Fast forms on the simt device: special values have the results of the exact forms, and other values those of the body within the tolerance. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { call, dim, f32, index } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Expr, Form } from '../../src/ir/expr.js'
import { fastForm } from '../../src/ir/forms.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { mapStmt, rewrite } from '../../src/ir/walk.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { axis, kernel, load, T, tensor } from '../schedule/fixtures.js'
import { type Host, launch, openFiles, openKernels } from './host.js'

const at = (name: string, c: string): Expr => load(name, index('r'), index(c))
const sigmoid = (x: Expr): Expr => call('add', f32(1), call('exp', call('neg', x)))
/** Functions of `x` and `w`, by output. */
const functions: Readonly<Record<string, (x: Expr, w: Expr) => Expr>> = {
  exponential: (x) => call('exp', x),
  silu: (x) => call('div', x, sigmoid(x)),
  quotient: (x, w) => call('div', x, w),
  root: (x) => call('sqrt', x),
  one: (x) => call('div', call('exp', x), call('exp', x)),
  power: (x) => call('exp2', x),
  logarithm: (x) => call('log', x),
  sine: (x) => call('sin', x),
  cosine: (x) => call('cos', x),
}
const stored = ([name, value]: [string, (x: Expr, w: Expr) => Expr]): Stmt => {
  const c = `c_${name}`
  return { kind: 'storeRow', tensor: name, rows: [index('r')], length: dim('n'), index: c, value: value(at('x', c), at('w', c)) }
}
const inputs = (dtype: DType) => [tensor('x', 'in', 'm n', dtype), tensor('w', 'in', 'm n', dtype)]

/** A kernel of all functions in one form, in storage types of its own. */
const inForm = (name: string, form: Form): Kernel => {
  const made = kernel(
    name,
    'm n',
    [axis('r', 'm')],
    [...inputs('f32'), ...Object.keys(functions).map((output) => tensor(output, 'out', 'm n', T))],
    Object.entries(functions).map(stored),
  )
  const marked = (root: Expr): Expr =>
    rewrite(root, (node) => (node.kind === 'call' && fastForm(node.fn) !== undefined ? { ...node, form } : node))
  return { ...made, body: made.body.map((stmt) => mapStmt(stmt, marked)) }
}
const fast = inForm('forms_fast', 'fast')
const exact = inForm('forms_exact', 'exact')

const infinite = Number.POSITIVE_INFINITY
const least = 2 ** -149
const most = 2 ** 127
const special = [0, -0, infinite, -infinite, Number.NaN, least, -least, 2 ** -126, 2 ** -127, most, -most, 2 ** 126]
const exponents = [-100, -88, -87.5, -20, -1, 1, 20, 88, 90, 100, 1e6, -1e6, 8192, 9000]
const numbers = [...special, ...exponents]
const width = numbers.length ** 2
const draws = (name: string) => (i: number) =>
  numbers[name === 'x' ? i % numbers.length : Math.floor(i / numbers.length) % numbers.length] ?? 0

let host: Host
const types = ['f32', 'f16', 'bf16'] as const
const halves = tolerance({ dtype: 'f16', class: 'transcendental' })

beforeAll(async () => {
  host = await openKernels([fast, exact])
})
afterAll(() => host?.close())

describe('fast forms', () => {
  it.each(types)('have the special values of the exact forms in %s, and errors within the table otherwise', async (type) => {
    const dims = { m: 1, n: width }
    const [quick, slow] = await Promise.all(
      [fast, exact].map((subject) => launch(host, subject, host.entry(`${subject.name}__${type}`), dims, draws)),
    )
    for (const [i, { tensor: output, stored: found }] of (quick?.outputs ?? []).entries()) {
      const wanted = slow?.outputs[i]?.stored ?? []
      // An exponent of 100 has more roundings than a typical one. Nothing cancels.
      const bound = tolerance({ dtype: type, class: 'reduction', length: 32 ** 2, scale: 0 })
      expect(compare(found, wanted, bound, 'equals').summary, output.name).not.toContain('differ')
    }
  })
  it('are found when small results are flushed that a quotient needs', async () => {
    const sources = [...generate([{ ...fast, types: { T: ['f16'] } }])]
    const wrong = sources.map(([path, text]) => [path, text.replaceAll('fast::exp(', 'fast::exp_flushed(')] as const)
    const other = await openFiles(new Map(wrong))
    const subjects = [other, host].map((each) => launch(each, fast, each.entry('forms_fast__f16'), { m: 1, n: width }, draws))
    const [flushed, right] = (await Promise.all(subjects)).map(
      ({ outputs }) => outputs.find(({ tensor: output }) => output.name === 'one')?.stored ?? [],
    )
    await other.close()
    expect(compare(flushed ?? [], right ?? [], halves, 'equals').passed).toBe(false)
  })
  it('mean what the exact forms mean', () => {
    const given = { x: { data: Float64Array.from([1, 2]), shape: [1, 2] }, w: { data: Float64Array.from([3, 4]), shape: [1, 2] } }
    const results = [fast, exact].map((subject) => evaluateKernel(subject, given as never, { m: 1, n: 2 }))
    expect(results[0]).toEqual(results[1])
  })
})
