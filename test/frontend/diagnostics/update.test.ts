/** Every refusal about outputs that replace elements of an input in place. */
import { describe, expect, it } from 'vitest'
import { read, refuses } from '../refuse.js'

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
const gather =
  'to accumulate into an element, let it gather: cache(k) + sum(t, (i) => (place(i) === k ? x(i) : 0)); to read other rows, leave y out of updates: it then has its own memory'
const apart = 'split it into two ops: one that replaces the chosen elements, and one that computes z'
const alone = 'leave y out of updates: it then has its own memory'
const own = (text: string) => read(text.replace(/[«»]/g, '')).diagnostics.filter(({ code }) => code.startsWith('HED'))
const cannot = (reason: string, instead = hint) => ({
  code: 'update' as const,
  message: `output y cannot be replaced in place: ${reason}`,
  hint: instead,
})

describe('bodies of outputs that update', () => {
  it.each([
    'cache(s, r) + x(s, r) + at(r)',
    'cache(s, r) > x(s, r) + at(r) ? x(s, r) : cache(s, r)',
    's === at(r) ? x(s, r) + cache(s, r) : cache(s, r)',
  ])('accepts %s, which depends only on its own element', (value) =>
    expect(read(update(value)).diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([]),
  )
  it('refuses another element of what is updated', () => {
    const elsewhere = cannot('it reads another element of cache than the one that it replaces', gather)
    refuses(update('«s === at(r) ? x(s, r) : cache(0, 0)»'), elsewhere)
    refuses(update('«cache(s, r) + cache(at(r), 0) + x(s, r)»'), elsewhere)
  })
  it('accepts a per-row number beside rows, and refuses the number of another row', () => {
    const scaled = (at: string): string =>
      update('', {
        inputs: "{ cache: tensor('f32', 's r'), x: tensor('f32', 's r'), at: tensor('f32', 's') }",
        outputs: "{ z: tensor('f32', 's r'), y: tensor('f32', 's') }",
        updates: "{ z: 'cache', y: 'at' }",
        body: `({ cache, x, at }, { r: n }) => (s) => {
    const v = row(n, (c) => cache(s, c) * at(${at}) + x(s, c))
    return { z: row(n, (c) => v(c)), y: «sum(n, (c) => v(c))» }
  }`,
      })
    expect(own(scaled('s'))).toEqual([])
    const elsewhere = cannot('it reads the number of another row of at than the one that it replaces', alone)
    refuses(scaled('0'), elsewhere)
    // The hint works.
    expect(own(scaled('0').replace(", y: 'at' }", ' }'))).toEqual([])
  })
  it('accepts rows that read their own row at any index, and refuses other rows', () => {
    const reduced = (total: string, value = '«row(n, (c) => v(c) / total)»'): string =>
      update('', {
        body: `({ cache, x, at }, { r: n }) => (s) => {
    const v = row(n, (c) => cache(s, c) + x(s, c) + at(c))
    const total = ${total}
    return { y: ${value} }
  }`,
      }).replace('op, row,', 'op, row, scan,')
    for (const total of ['sum(n, (c) => v(c))', 'sum(n, (c) => v(c) + cache(s, 0))', 'v(0)'])
      expect(own(reduced(total))).toEqual([])
    expect(own(reduced('sum(n, (c) => v(c))', 'row(n, (c) => v(n - 1 - c) / total)'))).toEqual([])
    expect(own(reduced('scan(n, (c) => v(c))', 'row(n, (c) => total(c))'))).toEqual([])
    const elsewhere = cannot('it reads another element of cache than the one that it replaces', gather)
    refuses(reduced('sum(n, (c) => v(c) + cache(0, c))'), elsewhere)
    expect(own(reduced('sum(n, (c) => v(c) + cache(0, c))').replace("updates: { y: 'cache' },", ''))).toEqual([])
  })
  it('takes windows that move on, in both forms and along each axis', () => {
    for (const value of ['cache(s + 1, r)', 'cache(s, r + 1)', 'cache(s, at(r))'])
      expect(own(update(`s > 0 && r > 0 ? x(s, r) + at(r) : ${value}`))).toEqual([])
    // Along both at once it is another row.
    refuses(
      update('«cache(s + 1, r + 1) + x(s, r) + at(r)»'),
      cannot('it reads another element of cache than the one that it replaces', gather),
    )
  })
  it('accepts reductions of other tensors as addends or conditions, and refuses another element before them', () => {
    const summed = (more: string, value: string): string =>
      update('', {
        dims: "['s', 'r', 'n']",
        inputs: "{ cache: tensor('f32', 's r'), x: tensor('f32', 's n'), at: tensor('i32', 'n') }",
        outputs: "{ y: tensor('f32', 's r'), z: tensor('f32', 's r') }",
        body: `({ cache, x, at }, { n }) => (s, r) => {
    const total = sum(n, (c) => x(s, c) + at(c)${more})
    const old = cache(s, r)
    return { y: «${value}», z: total }
  }`,
      })
    for (const value of ['cache(s, r) + total', 'old + total', 'total > old ? old / 2 : cache(s, r)', 'total > 1 ? 1 : old'])
      expect(
        read(summed(' * cache(s, r)', value).replace(/[«»]/g, '')).diagnostics.filter(({ code }) => code.startsWith('HED')),
      ).toEqual([])
    refuses(
      summed('', 'old + cache(0, r) + total'),
      cannot('it reads another element of cache than the one that it replaces', gather),
    )
    // If one place of an axis is chosen, no other loop runs over that axis.
    const chosen = summed('', 's === at(0) ? total : cache(s, r)').replace('const old = cache(s, r)', '')
    refuses(chosen.replace('«', '').replace('»', '').replace('z: total', 'z: «total»'), {
      ...cannot(''),
      message:
        'output z cannot be replaced in place: a kernel that replaces elements in place stores nothing else: every output must update an input',
      hint: apart,
    })
  })
  it('refuses several tensors of a layout that may separate their elements', () =>
    refuses(
      `import { layout, op, tensor } from 'heddle'
export const columns = layout('by_columns', ['i', 'j'], { offset: (at, of) => at.j * of.i + at.i })
export const t = op('t', {
  dims: ['s', 'r'],
  inputs: { a: tensor('f32', 's r', columns), b: tensor('f32', 's r', columns) },
  outputs: { y: tensor('f32', 's r', columns), z: tensor('f32', 's r', columns) },
  updates: { y: 'a', z: 'b' },
  body: ({ a, b }) => (s, r) => ({ y: «a(s, r) + b(s, r)», z: a(s, r) - b(s, r) }),
})
`,
      {
        ...cannot('several tensors can be replaced together only if all are row-major, and this one is not'),
        hint: 'make y the output of a separate op',
      },
    ))
  it('refuses an additional output of reduced rows', () =>
    refuses(
      update('', {
        outputs: "{ y: tensor('f32', 's r'), z: tensor('f32', 's') }",
        body: `({ cache, x, at }, { r: n }) => (s) => ({
    y: row(n, (c) => (s === at(c) ? x(s, c) : cache(s, c))),
    z: «sum(n, (c) => x(s, c))»,
  })`,
      }),
      {
        ...cannot(''),
        message:
          'output z cannot be replaced in place: a kernel that replaces elements in place stores nothing else: every output must update an input',
        hint: apart,
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
      cannot(
        'a row or reduction of the body depends on the index of dimension s, on which only elements may depend',
        'compute it in a separate op, whose output the new elements read',
      ),
    ))
})

describe('declarations of updates', () => {
  it('refuses names that are neither outputs nor inputs', () => {
    refuses(update('s === at(r) ? x(s, r) : cache(s, r)', { updates: "{ y: «'z'» }" }), {
      code: 'update',
      message: 'z is not an input',
      hint: "write updates: { y: 'x' } with the names of an output and an input",
    })
    refuses(update('s === at(r) ? x(s, r) : cache(s, r)', { updates: "{ «cache»: 'x' }" }), {
      code: 'update',
      message: 'cache is not an output',
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
