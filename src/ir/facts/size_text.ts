/** Parser and printer of sizes as authors write them in facts, `2*h` and `w*p*k+1`. */
import type { Count } from './facts.js'

/** Parses a number, a name, a product of these, or a sum of products. Any text between the signs is a name, which the caller must look up. */
export function parseSize(text: string): Count {
  const [first = 0, ...more] = text.split('+').map(parseProduct)
  return more.reduce<Count>((left, right) => ['add', left, right], first)
}

function parseProduct(text: string): Count {
  const [first = 1, ...more] = text.split('*').map((part): Count => (/^[0-9]+$/.test(part) ? Number(part) : part))
  return more.reduce<Count>((left, right) => ['mul', left, right], first)
}

const signs = { add: '+', mul: '*', sub: '-' } as const

/** Prints a count in the syntax of facts. */
export function sizeText(count: Count): string {
  if (typeof count !== 'object') return String(count)
  const [operation, ...operands] = count
  const texts = operands.map(sizeText)
  return operation in signs ? texts.join(signs[operation as keyof typeof signs]) : `${operation}(${texts.join(', ')})`
}
