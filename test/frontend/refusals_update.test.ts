/** Every refusal about outputs that replace elements of an input in place. */
import { describe, it } from 'vitest'
import { refuses } from './refuse.js'

const hint = 'write s === place ? new : cache(..., s, ...), with a place that does not depend on s'

/** An op whose output `y` updates `cache`, with fields replaced and the value of `y`. */
const update = (value: string, fields: Readonly<Record<string, string>> = {}): string => {
  const all: Record<string, string> = {
    dims: "['s', 'r']",
    inputs: "{ cache: tensor('f32', 's r'), x: tensor('f32', 's r'), at: tensor('i32', 'r') }",
    outputs: "{ y: tensor('f32', 's r') }",
    updates: "{ y: 'cache' }",
    body: `({ cache, x, at }) => (s, r) => ({ y: ${value} })`,
    ...fields,
  }
  const text = Object.entries(all).map(([name, written]) => `  ${name}: ${written},`)
  return `import { op, row, sum, tensor } from 'heddle'\nexport const t = op('t', {\n${text.join('\n')}\n})\n`
}
const cannot = (reason: string) => ({
  code: 'update' as const,
  message: `output y cannot be replaced in place: ${reason}`,
  hint,
})

describe('bodies of outputs that update', () => {
  it('refuses what is no choice', () =>
    refuses(
      update('«cache(s, r) + x(s, r) + at(r)»'),
      cannot('it is not written as condition ? new : the same element of cache'),
    ))
  it('refuses another element of what is updated', () =>
    refuses(
      update('«s === at(r) ? x(s, r) : cache(0, r)»'),
      cannot('it is not written as condition ? new : the same element of cache'),
    ))
  it('refuses conditions that read what is replaced', () =>
    refuses(
      update('«cache(s, r) > x(s, r) + at(r) ? x(s, r) : cache(s, r)»'),
      cannot('what replaces elements reads cache, which is being replaced'),
    ))
  it('refuses new values that read what is replaced', () =>
    refuses(
      update('«s === at(r) ? x(s, r) + cache(s, r) : cache(s, r)»'),
      cannot('what replaces elements reads cache, which is being replaced'),
    ))
  it('refuses an output besides', () =>
    refuses(
      update('', {
        outputs: "{ y: tensor('f32', 's r'), z: tensor('f32', 's r') }",
        body: '({ cache, x, at }) => (s, r) => ({ y: s === at(r) ? x(s, r) : cache(s, r), z: «x(s, r)» })',
      }),
      {
        ...cannot(''),
        message:
          'output z cannot be replaced in place: a kernel that replaces elements in place stores nothing besides: every output updates an input',
        hint: hint.replace('cache', 'x'),
      },
    ))
  it('refuses reductions along the axis', () =>
    refuses(
      update('', {
        body: `({ cache, x, at }, { r: n }) => (s) => {
    const total = sum(n, (c) => x(s, c))
    return { y: «row(n, (c) => (s === at(0) ? total : cache(s, c)))» }
  }`,
      }),
      cannot('a row or reduction of the body depends on the index of dimension s, which only elements may'),
    ))
})

describe('declarations of updates', () => {
  it('refuses names that are no output or input', () => {
    refuses(update('s === at(r) ? x(s, r) : cache(s, r)', { updates: "{ y: «'z'» }" }), {
      code: 'update',
      message: 'z is no input',
      hint: "write updates: { y: 'x' } with the names of an output and an input",
    })
    refuses(update('s === at(r) ? x(s, r) : cache(s, r)', { updates: "{ «cache»: 'x' }" }), {
      code: 'update',
      message: 'cache is no output',
      hint: "write updates: { y: 'x' } with the names of an output and an input",
    })
  })
  it('refuses an input that is stored otherwise', () =>
    refuses(update('s === at(r) ? x(s, r) : cache(s, r)', { updates: "{ y: «'at'» }" }), {
      code: 'update',
      message: 'output y is f32 "s r" in layout row, input at is i32 "r" in layout row',
      hint: 'an output has the memory of the input it updates: declare both alike',
    }))
  it('refuses an input that is updated twice', () =>
    refuses(
      update('', {
        outputs: "{ y: tensor('f32', 's r'), z: tensor('f32', 's r') }",
        updates: "{ y: 'cache', z: «'cache'» }",
        body: '({ cache, x, at }) => (s, r) => ({ y: s === at(r) ? x(s, r) : cache(s, r), z: cache(s, r) })',
      }),
      { code: 'update', message: 'cache is updated by another output already', hint: 'an input is updated once' },
    ))
})
