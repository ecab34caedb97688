/** Sizes as authors write them in facts, `2*h` and `w*p*k+1`: to counts and back. */
import type { Count } from './facts.js'

/** A number, a name, a product of such, or a sum of products. Any text between the signs is a name: whether it is known, the caller asks. */
export function parseSize(text: string): Count {
  const [first = 0, ...more] = text.split('+').map(parseProduct)
  return more.reduce<Count>((left, right) => ['add', left, right], first)
}

function parseProduct(text: string): Count {
  const [first = 1, ...more] = text.split('*').map((part): Count => (/^[0-9]+$/.test(part) ? Number(part) : part))
  return more.reduce<Count>((left, right) => ['mul', left, right], first)
}

const signs = { add: '+', mul: '*', sub: '-' } as const

/** A count as it is written. */
export function sizeText(count: Count): string {
  if (typeof count !== 'object') return String(count)
  const [operation, ...operands] = count
  const texts = operands.map(sizeText)
  return operation in signs ? texts.join(signs[operation as keyof typeof signs]) : `${operation}(${texts.join(', ')})`
}
