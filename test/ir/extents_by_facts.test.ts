/** Extents that follow from facts, in both directions, and extents that contradict facts. */
import { describe, expect, it } from 'vitest'
import { parseSize, sizeText } from '../../src/ir/facts/size_text.js'
import { contradiction, fixedByFacts } from '../../src/ir/facts/solve.js'

const facts = (all: Readonly<Record<string, string | number>>) =>
  Object.fromEntries(
    Object.entries(all).map(([dim, size]) => [dim, { equal: typeof size === 'number' ? size : parseSize(size) }] as const),
  )

describe('fixedByFacts', () => {
  it.each([
    ['what a dimension is', { n: '2*h' }, { h: 3 }, ['n'], { n: 6 }],
    ['a number', { t: 16 }, {}, ['t'], { t: 16 }],
    ['a factor', { n: '2*h' }, { n: 6 }, ['h'], { h: 3 }],
    ['a term', { p: 'rows+1' }, { p: 5 }, ['rows'], { rows: 4 }],
    ['a factor of a sum', { p: '2*w+3' }, { p: 11 }, ['w'], { w: 4 }],
    ['one by another', { n: 'g*w', w: 8 }, { n: 16 }, ['g', 'w'], { w: 8, g: 2 }],
    ['nothing where no whole number does', { n: '2*h' }, { n: 7 }, ['h'], {}],
    ['nothing of two', { n: 'g*w' }, { n: 16 }, ['g', 'w'], {}],
    ['nothing that is not asked for', { n: '2*h' }, { h: 3 }, ['m'], {}],
    ['nothing by a factor of 0', { n: 'g*w' }, { n: 0, g: 0 }, ['w'], {}],
  ] as const)('%s', (_, stated, known, wanted, found) => expect(fixedByFacts(facts(stated), known, wanted)).toEqual(found))
})

describe('contradiction', () => {
  const stated = facts({ n: '2*h', p: 'rows+1' })
  it.each([
    [{ n: 6, h: 3 }, undefined],
    [{ n: 7, h: 3 }, 'n'],
    [{ n: 7 }, 'n'],
    [{ p: 0 }, 'p'],
    [{ p: 1 }, undefined],
  ] as const)('of %o is %s', (sizes, dim) => expect(contradiction(stated, sizes, ['h', 'rows'])?.dim).toBe(dim))
  it('is empty for dimensions without requests', () => expect(contradiction(stated, { n: 7, h: 3 }, ['m'])).toBeUndefined())
})

it('sizes are printed as they are written', () => {
  for (const text of ['2*h', 'w*p*k', 'h+2', '16', '2*w+3']) expect(sizeText(parseSize(text))).toBe(text)
})
