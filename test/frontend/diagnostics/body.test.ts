/** Every refusal about the text of a body: each has an example, its place, its message and its hint. */
import { describe, expect, it } from 'vitest'
import { element, type Refusal, read, refuses, rowBody } from '../refuse.js'

const reduceHint = 'reduce with sum, max or min, carry something along with fold, or make a row(n, (c) => ...)'
const constHint = 'a body has no effects: give the value a name with const'
const rest = 'return { y: row(n, (c) => x(m, c) + ids(m) + eps * rows) }'

describe('names', () => {
  it('refuses an unknown identifier', () =>
    refuses(element('«foo»'), {
      code: 'unknownIdentifier',
      message: 'unknown identifier foo',
      hint: 'declare it, or import it from its module',
    }))
  it.each([
    ['eps1', 'did you mean eps?'],
    ['idz', 'did you mean ids?'],
    ['rsqr', 'did you mean rsqrt?'],
    ['sqrt', "import { sqrt } from 'heddle'"],
    ['toFloats', "did you mean toFloat? import { toFloat } from 'heddle'"],
    ['sigmoid', 'write 1 / (1 + exp(-x))'],
  ])('says of the unknown name %s: %s', (name, hint) =>
    refuses(element(`«${name}»`), { code: 'unknownIdentifier', message: `unknown identifier ${name}`, hint }),
  )
  it('leaves files that TypeScript cannot parse to TypeScript', () => {
    const { diagnostics } = read(element('sum((n, (k) => x(m, k)) + foo'))
    expect(diagnostics.map(({ code, message }) => [code, message])).toEqual([['TS1005', "',' expected."]])
  })
  it('refuses an unknown import', () =>
    refuses(element('«missing»(1)', "import { missing } from './nowhere.js'"), {
      code: 'unknownIdentifier',
      message: 'unknown identifier missing',
      hint: 'declare it, or import it from its module',
    }))
  it('refuses an unknown field of the environment', () =>
    refuses(rowBody(rest).replace('n, eps }', 'n, «k», eps }'), {
      code: 'unknownIdentifier',
      message: 'there is no field k',
      hint: 'there are m, n, eps',
    }))
  it('refuses a field that a tensor does not have', () =>
    refuses(element('x.«length»'), {
      code: 'unknownIdentifier',
      message: 'x is a tensor without a field length',
      hint: 'a length is a dimension of the op: take it from the second parameter, as in ({ x }, { n }) => ...',
    }))
  it('refuses brackets, and shows how to read elements', () =>
    refuses(element('«x[m][c]»'), {
      code: 'dynamicAccess',
      message: 'x is a tensor, whose elements are read by calling it',
      hint: 'write x(m, c)',
    }))
  it('refuses dynamic access', () =>
    refuses(element("«Math['PI']»"), {
      code: 'dynamicAccess',
      message: "Math['PI'] picks a field while running",
      hint: 'name the field, or read an element by calling: x(m, c)',
    }))
  it('refuses a captured variable that can change', () =>
    refuses(element('«k»', 'let k = 1\nexport const change = () => { k = 2 }'), {
      code: 'mutable',
      message: 'k is captured, but can change: it is declared with let',
      hint: 'declare it const',
    }))
  it('refuses a value that exists only at run time', () =>
    refuses(element('«now»', 'const now = Date.now()'), {
      code: 'runtimeValue',
      message: 'now is not a constant known at compile time: it is Date.now()',
      hint: 'pass it as an attribute of the op, or write a number',
    }))
  it('refuses a variable without a value', () =>
    refuses(element('«k»', 'declare const k: number'), {
      code: 'runtimeValue',
      message: 'k has its value only at run time',
      hint: 'pass it as an attribute of the op, or make it a module-level const',
    }))
  it('refuses other things a module declares', () =>
    refuses(element('«K».A', 'enum K { A }'), {
      code: 'runtimeValue',
      message: 'K has its value only at run time',
      hint: 'pass it as an attribute of the op, or make it a module-level const',
    }))
  it('refuses values of type any', () =>
    refuses(element('«k»', 'const k: any = 1'), { code: 'any', message: 'k has the type any', hint: 'give it the type number' }))
  it('refuses undefined', () =>
    refuses(element('«undefined»'), {
      code: 'expression',
      message: 'undefined is not a value of a kernel',
      hint: 'every value is a number or a boolean',
    }))
})

describe('callees', () => {
  it('refuses Math functions and names their counterpart', () =>
    refuses(element('«Math.exp»(1)'), {
      code: 'callee',
      message: 'Math.exp has no counterpart on a device',
      hint: "import { exp } from 'heddle' and call exp(...)",
    }))
  it('suggests counterparts with other names', () =>
    refuses(element('«Math.max»(1, 2)'), {
      code: 'callee',
      message: 'Math.max has no counterpart on a device',
      hint: "import { maximum } from 'heddle' and call maximum(...)",
    }))
  it.each(['log2', 'log10', 'log1p', 'expm1', 'ceil', 'trunc'])('names the counterpart of Math.%s', (name) =>
    refuses(element(`«Math.${name}»(1)`), {
      code: 'callee',
      message: `Math.${name} has no counterpart on a device`,
      hint: `import { ${name} } from 'heddle' and call ${name}(...)`,
    }),
  )
  it('names the bit functions instead of a bit cast', () =>
    refuses(element('«bitcast»(1)'), {
      code: 'unknownIdentifier',
      message: 'unknown identifier bitcast',
      hint: 'write bitsOf(x), the bits of a float as an integer, or floatOfBits(i), the float of such bits; both of heddle',
    }))
  it('refuses other globals', () =>
    refuses(element('«performance».now()'), {
      code: 'unknownIdentifier',
      message: 'unknown identifier performance',
      hint: 'declare it, or import it from its module',
    }))
  it('refuses functions without a body', () =>
    refuses(element('«parseFloat»(eps)'), {
      code: 'callee',
      message: 'parseFloat has no counterpart on a device',
      hint: 'an integer becomes a float by toFloat(a)',
    }))
  it.each([
    ['Number', '«Number»(eps)', 'an integer becomes a float by toFloat(a), a boolean a number by condition ? 1 : 0'],
    ['isNaN', '«isNaN»(eps) ? 1 : 0', 'write a !== a'],
    [
      'Math.random',
      '«Math.random»()',
      "import { uniform } from 'heddle': uniform(seedLow, seedHigh, counter) draws the same numbers wherever it runs",
    ],
    ['Math.clz32', '«Math.clz32»(eps)', 'a body may call the functions of heddle and functions of the same subset'],
  ])('names the replacement of %s', (name, text, hint) =>
    refuses(element(text), { code: 'callee', message: `${name} has no counterpart on a device`, hint }),
  )
  it.each([
    ['map', 'make a row: row(n, (c) => ...), which reads x by calling it'],
    ['push', 'a body changes nothing: make a row(n, (c) => ...)'],
  ])('says what takes the place of .%s', (name, hint) =>
    refuses(element(`x.«${name}»(eps)`), { code: 'unknownIdentifier', message: `x is a tensor without a field ${name}`, hint }),
  )
  it('refuses to call a number', () =>
    refuses(element('«eps(1)»'), {
      code: 'callee',
      message: 'eps is a float, not a function',
      hint: 'only functions, tensors and rows can be called',
    }))
  it('refuses to call an object, and names its fields', () =>
    refuses(rowBody('const h = { v: row(n, (c) => x(m, c)), eps }\n    return { y: row(n, (c) => «h(c)») }'), {
      code: 'callee',
      message: 'h is an object, not a function',
      hint: 'call a field of it: h.v(...)',
    }))
  it('refuses recursion', () =>
    refuses(element('f(1)', 'const f = (a: number): number => a > 0 ? «f(a - 1)» : 0'), {
      code: 'recursion',
      message: 'f calls itself: f -> f',
      hint: 'a body has no recursion; repeat with a reduction over a row',
    }))
  it('refuses mutual recursion', () =>
    refuses(element('f(1)', 'function f(a: number): number { return g(a) }\nfunction g(a: number): number { return «f(a)» }'), {
      code: 'recursion',
      message: 'f calls itself: f -> g -> f',
      hint: 'a body has no recursion; repeat with a reduction over a row',
    }))
  it('refuses async functions', () =>
    refuses(element('«f(1)»', 'const f = async (a: number) => a'), {
      code: 'expression',
      message: 'f is async',
      hint: 'write an ordinary function: a body is computed at once',
    }))
})

describe('arity', () => {
  it('refuses a wrong number of indices', () =>
    refuses(element('«x(c)»'), { code: 'arity', message: 'x has 2 dimensions (m n), 1 indices given', hint: 'write x(m, c)' }))
  it('refuses too many indices', () =>
    refuses(element('«ids(m, c)»'), {
      code: 'arity',
      message: 'ids has 1 dimensions (m), 2 indices given',
      hint: 'write ids(c)',
    }))
  it('refuses a wrong number of intrinsic arguments', () =>
    refuses(element('«exp(1, 2)»'), { code: 'arity', message: 'exp takes 1 arguments, 2 given', hint: 'write exp(a)' }))
  it('refuses a wrong number of helper arguments', () =>
    refuses(element('«f(1)»', 'const f = (a: number, b: number) => a + b'), {
      code: 'arity',
      message: 'f takes 2 arguments, 1 given',
      hint: 'its parameters are (a, b)',
    }))
  it('refuses a wrong number of row indices', () =>
    refuses(rowBody(`const v = row(n, (c) => x(m, c))\n    return { y: row(n, (c) => «v(c, 1)») }`), {
      code: 'arity',
      message: 'row v takes 1 index, 2 given',
      hint: 'write v(c)',
    }))
  it('refuses a row construct without an element', () =>
    refuses(element('«sum(n)»'), {
      code: 'arity',
      message: 'sum takes 2 arguments, 1 given',
      hint: 'write sum(n, (c) => x(m, c))',
    }))
  it('refuses default parameters', () =>
    refuses(element('f(1)', 'const f = («a: number = 2») => a'), {
      code: 'parameter',
      message: 'parameter a: number = 2 has a default',
      hint: 'write plain parameters and pass every argument',
    }))
  it('refuses optional parameters', () =>
    refuses(element('f(1)', 'const f = (a: number, «b?: number») => a'), {
      code: 'parameter',
      message: 'parameter b?: number is optional',
      hint: 'write plain parameters and pass every argument',
    }))
  it('refuses rest parameters', () =>
    refuses(element('f(1)', 'const f = («...a: number[]») => 1'), {
      code: 'parameter',
      message: 'parameter ...a: number[] is a rest parameter',
      hint: 'write plain parameters and pass every argument',
    }))
  it('refuses destructuring of a number', () =>
    refuses(rowBody('const «{ toFixed }» = eps\n    return { y: row(n, (c) => x(m, c)) }'), {
      code: 'parameter',
      message: '{ toFixed } cannot destructure a float',
      hint: 'take fields by name: ({ x, gamma }, { n, eps })',
    }))
  it('refuses defaults in a pattern', () =>
    refuses(rowBody(rest).replace('n, eps }', 'n, «eps = 1» }'), {
      code: 'parameter',
      message: 'eps = 1: a pattern has no default',
      hint: 'every field is there: an attribute has its default in attrs of the op',
    }))
})

describe('statements', () => {
  const cases: readonly (readonly [name: string, text: string, what: string, hint: string])[] = [
    ['if', '«if (eps > 0) { }»', 'an if statement', 'write condition ? a : b'],
    ['for', '«for (;;) { }»', 'a for loop', reduceHint],
    [
      'a for loop that adds up',
      '«for (const a of [eps]) { eps += a }»',
      'a for loop',
      'write const total = sum(n, (c) => ...), where the index c takes the place of the loop',
    ],
    ['while', '«while (true) { }»', 'a while loop', reduceHint],
    [
      'an early return',
      '«return { y: row(n, (c) => x(m, c)) }»',
      'a return before the end',
      'return once, at the end; choose with condition ? a : b',
    ],
    [
      'an inner function',
      '«function f() { }»',
      'a function declaration inside a body',
      'write it as a const arrow function, or at module level',
    ],
    ['try', '«try { } catch { }»', 'a try statement', 'a kernel throws nothing: choose with condition ? a : b'],
    ['throw', '«throw 1»', 'a throw statement', 'a kernel throws nothing: state what inputs may be in facts of the op'],
    ['switch', '«switch (1) { }»', 'a switch statement', 'write nested conditions: a ? x : b ? y : z'],
  ]
  it.each(cases)('refuses %s', (_, text, what, hint) =>
    refuses(rowBody(`${text}\n    ${rest}`), { code: 'statement', message: `${what} is not part of the language`, hint }),
  )
  it.each<[string, string, Refusal['code'], string, string]>([
    ['a bare call', '«exp(1)»', 'statement', 'the value of exp(1) is not used', constHint],
    [
      'console.log',
      '«console.log(eps)»',
      'statement',
      'a kernel prints nothing',
      'a body runs under Node as it stands: set a breakpoint there, or call it from a test',
    ],
    ['an increment', '«eps++»', 'mutable', 'eps++ changes a value, but a body changes nothing', 'name the new value with const'],
    [
      'storing an element',
      '«x[0] = 1»',
      'mutable',
      'x[0] = 1 assigns, but a body changes nothing',
      'outputs are returned: return { y: row(n, (c) => ...) }',
    ],
  ])('refuses %s', (_, text, code, message, hint) => refuses(rowBody(`${text}\n    ${rest}`), { code, message, hint }))
  it('refuses let once, whatever is assigned to it', () =>
    refuses(rowBody(`«let a»\n    a = 1\n    a += 1\n    ${rest}`), {
      code: 'statement',
      message: 'let is not part of the language: a body changes nothing',
      hint: 'use const; a new value gets a new name',
    }))
  it('names the replacement of let in a loop', () => {
    const { diagnostics } = read(rowBody(`let total = 0\n    for (const a of [1]) total += a\n    ${rest}`))
    expect(diagnostics.flatMap(({ code, hint }) => (code === 'HED103' ? [hint] : []))).toEqual([
      'write const total = sum(n, (c) => ...), or carry it along with fold',
      'write const total = sum(n, (c) => ...), where the index c takes the place of the loop',
    ])
  })
  it('refuses an element without its value', () =>
    refuses(rowBody('return { y: row(n, (c) => { «x(m, c)» }) }'), {
      code: 'statement',
      message: 'the value of x(m, c) is not used',
      hint: 'return it, or leave out the braces: (c) => x(m, c)',
    }))
  it('refuses a body without a result', () =>
    refuses(rowBody('const a = 1').replace('(m) => {\n    const a = 1\n  }', '(m) => «{\n    const a = 1\n  }»'), {
      code: 'statement',
      message: 'the function returns nothing',
      hint: 'end it with return and a value',
    }))
})

describe('expressions', () => {
  const cases: readonly (readonly [name: string, text: string, what: string, hint: string])[] = [
    ['a string', "«'a'»", 'a string', 'a body computes numbers and booleans'],
    ['a template string', `«\`\${eps}\`»`, 'a template string', 'a body computes numbers and booleans'],
    ['an array', '«[1]»', 'an array', 'make a row: row(n, (c) => ...)'],
    ['new', '«new Date()»', 'new', 'a body computes numbers and booleans'],
    ['a prefix increment', '«++eps»', 'an increment or decrement', 'name a new value with const'],
    ['a postfix increment', '«eps++»', 'an increment or decrement', 'name a new value with const'],
    ['typeof', '«typeof eps»', 'typeof', 'types are known at compile time'],
    ['null', '«null»', 'null', 'every value is a number or a boolean'],
    ['a non-null assertion', '«eps!»', 'a non-null assertion', 'a value of a kernel is never missing'],
    ['a spread argument', 'exp(«...[1]»)', 'a spread', 'pass every argument'],
    ['await', '«await eps»', 'await', 'a body is computed at once'],
    ['a bigint', '«1n»', 'a bigint', 'write a plain number'],
    ['a regular expression', '«/a/»', 'a regular expression', 'a body computes numbers and booleans'],
    ['loose equality', 'eps «==» 1 ? 1 : 2', 'the operator ==', 'write ==='],
    ['the comma', '1 «,» 2', 'the operator ,', 'give each value a name with const'],
    ['??', '1 «??» 2', 'the operator ??', 'a value of a kernel is never missing'],
    [
      'a shift without a sign, whose result JavaScript has no sign of',
      '1 «>>>» 2',
      'the operator >>>',
      'write shiftRightUnsigned(a, b): its 32 bits are those of a >>> b, as an integer with a sign',
    ],
    ['a unary plus', '«+eps»', 'the operator + of one operand', 'write it with arithmetic'],
    ['an optional call', '«exp?.(1)»', 'an optional call', 'write a plain call'],
  ]
  it.each(cases)('refuses %s', (_, text, what, hint) =>
    refuses(element(text), { code: 'expression', message: `${what} is not part of the language`, hint }),
  )
  it('refuses an object spread', () =>
    refuses(rowBody('const a = { y: row(n, (c) => x(m, c)) }\n    return { «...a» }'), {
      code: 'expression',
      message: 'an object spread is not part of the language',
      hint: 'name every field: { y: ... }',
    }))
  it('refuses computed fields', () =>
    refuses(rowBody("return { «['y']: row(n, (c) => x(m, c))» }"), {
      code: 'expression',
      message: "the property ['y']: row(n, (c) => x(m, c)) is not part of the language",
      hint: 'name every field: { y: ... }',
    }))
  it('refuses assignment', () =>
    refuses(element('(«k = 2»)', 'let k = 1'), {
      code: 'mutable',
      message: 'k is assigned, but a body changes nothing',
      hint: 'name the new value with const',
    }))
  it('refuses compound assignment', () =>
    refuses(element('(«k += 2»)', 'let k = 1'), {
      code: 'mutable',
      message: 'k is assigned, but a body changes nothing',
      hint: 'name the new value with const',
    }))
})
