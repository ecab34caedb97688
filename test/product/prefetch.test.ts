/** Constants that an epilogue prefetches before it knows its row. */
import { expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { products } from './graphs.js'
import { planned, productOf, readOps } from './host.js'

const ops = readOps()

/** Prefetched loads, as text. */
function early(name: string): string {
  const given = products.find((each) => each.name === name)
  if (given === undefined) throw new Error(`there is no case ${name}`)
  const files = generate([], {}, [{ ...productOf(planned(given, ops)), types: { T: ['f32'] } }])
  const text = [...files].find(([path]) => path.endsWith('.cu'))?.[1] ?? ''
  return /void prefetch\(([\s\S]*?)\n {2}\}/.exec(text)?.[0] ?? ''
}

it('a bias is prefetched if its index follows from the column alone', () => {
  expect(early('plain')).toContain('heddle::prefetch(bias, column)')
  // Each matrix of a batch has a bias of its own, selected by the row.
  expect(early('batched')).toMatch(/^void prefetch\(int\) const \{\n? *\}?$/)
})
