/** Random graphs by family and seed: the source of the tests of fusing and of emitted source. */
import { attention } from './random/attention.js'
import { type Case, Random } from './random/draft.js'
import { pairs, products } from './random/products.js'
import { rows } from './random/rows.js'

export const families = { rows, products, 'pairs of products': pairs, attention } as const
export type Family = keyof typeof families

/** The graph of a seed. */
export const drawCase = (family: Family, seed: number): Case => families[family](new Random(seed), seed)
