/** Bodies that are too deep or too large, numbers float32 does not have, and divisions by 0: refused at the author's line, in time. */
import { describe, expect, it } from 'vitest'
import { printDiagnostic } from '../../../src/frontend/index.js'
import { limits } from '../../../src/ir/size.js'
import { element, read, refuses, rowBody } from '../refuse.js'

/** The refusals of a module as `line CODE: message`. */
const refusals = (text: string): string[] =>
  read(text)
    .diagnostics.filter(({ code }) => code.startsWith('HED'))
    .map(({ line, code, message }) => `${line} ${code}: ${message}`)

/** The line of a marked text in a module. */
const lineOf = (text: string, mark: string): number => text.slice(0, text.indexOf(mark)).split('\n').length

const nested = `this has more than ${limits.nesting} expressions inside one another`
const written = `this makes more than ${limits.expressions} expressions, the functions it calls written out`
const sumOf = (terms: number): string => Array.from({ length: terms }, () => 'x(m, c)').join(' + ')

describe('the size of a body', () => {
  it.each([3000, 5000])('refuses a sum of %i terms', (terms) => {
    const text = element(sumOf(terms))
    expect(refusals(text)).toEqual([`${lineOf(text, 'return {')} HED133: ${nested}`])
  })
  it.each([
    ['parentheses', `${'('.repeat(400)}x(m, c)${')'.repeat(400)}`],
    ['signs', `${'- '.repeat(1000)}x(m, c)`],
    ['calls', `${'exp('.repeat(1000)}x(m, c)${')'.repeat(1000)}`],
    ['conditions', `${'c > 1 ? 1 : '.repeat(1000)}2`],
  ])('refuses nested %s', (_, expression) => {
    const text = element(expression)
    const [first] = refusals(text)
    expect(first).toBe(`${lineOf(text, 'return {')} HED133: ${nested}`)
  })
  it('reports when the parser itself cannot read a file', () => {
    const deep = element(`${'('.repeat(9000)}x(m, c)${')'.repeat(9000)}`)
    const message = `specs/memory/refused.ts:${lineOf(deep, 'return {')} cannot be parsed: this is nested deeper than TypeScript can read`
    expect(() => read(deep)).toThrow(expect.objectContaining({ code: 'frontend.parse', message }))
  })
  it('accepts bodies within the limit', () => {
    expect(refusals(element(sumOf(200)))).toEqual([])
    expect(refusals(element(`${'exp('.repeat(150)}x(m, c)${')'.repeat(150)}`))).toEqual([])
  })

  const chain = (functions: number): string =>
    Array.from({ length: functions }, (_, i) => {
      const body = i === 0 ? 'exp(v)' : `f${i - 1}(v) + f${i - 1}(v)`
      return `const f${i} = (v: number): number => ${body}`
    }).join('\n')
  it.each([16, 22])('refuses a chain of %i functions that call each other twice, at the call in the body', (functions) => {
    const text = element(`f${functions - 1}(x(m, c))`, chain(functions))
    expect(refusals(text)).toEqual([`${lineOf(text, 'return {')} HED133: ${written}`])
  })
  it('takes a short chain', () => expect(refusals(element('f7(x(m, c))', chain(8)))).toEqual([]))

  it('refuses values that are too deep or too often used, by way of names', () => {
    const steps = (count: number, step: string): string =>
      `return { y: row(n, (c) => {
        const a0 = x(m, c) + ids(m) + eps * rows
        ${Array.from({ length: count }, (_, i) => `const a${i + 1}: number = ${step.replaceAll('a', `a${i}`)}`).join('\n')}
        return a${count}
      }) }`
    const deep = rowBody(steps(600, 'a * eps'))
    expect(refusals(deep)).toEqual([
      `${lineOf(deep, 'row(n')} HED133: output y is too large: its depth is 605 operations, at most ${limits.depth} are allowed`,
    ])
    const shared = rowBody(steps(30, 'a * a'))
    const [refusal = ''] = refusals(shared)
    expect(refusal).toMatch(/HED133: output y is too large: it has \d+ operations with shared ones expanded, at most 200000/)
    expect(refusals(rowBody(steps(400, 'a * eps')))).toEqual([])
    expect(refusals(rowBody(steps(12, 'a * a')))).toEqual([])
  })
})

describe('divisions by 0', () => {
  const zero = (expression: string, divisor: string, module = ''): void =>
    refuses(element(expression.replace(divisor, `«${divisor}»`), module), {
      code: 'zero',
      message: `${expression} divides an integer by 0`,
      hint: 'divide by something else',
    })
  it('refuses a literal', () => {
    zero('c % 0', '0')
    zero('idiv(c, 0)', '0')
    zero('7 % 0', '0')
  })
  it('refuses divisors that fold to 0', () => {
    zero('c % (3 - 3)', '(3 - 3)')
    zero('idiv(c, toInt(0.5))', 'toInt(0.5)')
    zero('c % K', 'K', 'const K = 2 - 2')
  })
  it('takes another divisor, and the float quotient', () => {
    expect(refusals(element('c % 3 + idiv(c, n) + x(m, c) / 0'))).toEqual([])
  })
  it('refuses an attribute that is 0 by default', () =>
    refuses(element('c % shift').replace('eps: 0.5', 'eps: 0.5, «shift»: int(0)').replace('n, eps', 'n, eps, shift'), {
      code: 'zero',
      message: 'attribute shift divides an integer, and its default is 0',
      hint: 'give it a default that can divide',
    }))
})

describe('numbers beyond float32', () => {
  it('refuses one that would become an infinity', () => {
    const hint = 'write Infinity or -Infinity where that is meant'
    const beyond = 'beyond float32, whose largest number is 3.4028234663852886e+38'
    refuses(element('x(m, c) * «1e300»'), { code: 'range', message: `1e300 is 1e+300, ${beyond}`, hint })
    refuses(element('x(m, c) * («2e38 * 2»)'), { code: 'range', message: `2e38 * 2 is 4e+38, ${beyond}`, hint })
    refuses(element('x(m, c)').replace('eps: 0.5', 'eps: «1e39»'), { code: 'range', message: `1e39 is 1e+39, ${beyond}`, hint })
  })
  it('refuses one that would vanish', () =>
    refuses(element('x(m, c) * «1e-320»'), {
      code: 'range',
      message: '1e-320 is 1e-320, which float32 rounds to 0: its smallest number is 1.401298464324817e-45',
      hint: 'write 0',
    }))
  it('refuses a default that is not a finite number', () => {
    for (const value of ['1e400', 'Infinity', 'Number.NEGATIVE_INFINITY'])
      refuses(element('x(m, c)').replace('eps: 0.5', `eps: «${value}»`), {
        code: 'range',
        message: `the default ${value} of an attribute is ${value.startsWith('Number') ? '-Infinity' : 'Infinity'}`,
        hint: 'attributes are finite numbers',
      })
    refuses(element('x(m, c)').replace('eps: 0.5', 'eps: «int(3000000000)»'), {
      code: 'range',
      message: 'int(3000000000) is beyond int32',
      hint: 'integers are -2147483648 to 2147483647',
    })
  })
  it('accepts the numbers of float32, including infinities', () => {
    for (const value of ['3.4e38', '-3.4028234e38', '1e-45', 'Infinity', '-Infinity', '0', '1 / 0'])
      expect(refusals(element(`x(m, c) * (${value})`))).toEqual([])
  })
})

describe('constants that are defined by themselves', () => {
  it.each([
    ['const q = { ...q }', 'outputs: { ...q, y'],
    ['const q = r\nconst r = q', 'outputs: { ...q, y'],
    ['const q = { ...r }\nconst r = { ...q }', 'outputs: { ...q, y'],
  ])('%s', (module, outputs) => {
    const text = element('x(m, c)', module.replace('const', 'const')).replace('outputs: { y', outputs)
    const [first = ''] = refusals(text)
    expect(first).toMatch(/HED113: .* is defined by itself/)
  })
  it('in a body', () => {
    const [first = ''] = refusals(element('x(m, c) * a', 'const a: number = b\nconst b: number = a'))
    expect(first).toMatch(/HED123: a is not a constant known at compile time/)
  })
})

it('shows the whole refusal on a few lines, however long the body is', () => {
  const [diagnostic] = read(element(sumOf(3000))).diagnostics
  expect(diagnostic === undefined ? 0 : printDiagnostic(diagnostic).length).toBeLessThan(1000)
})
