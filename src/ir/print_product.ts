/** Printer of matmul kernels in readable form: prologues of the factors, the sums, and the epilogue. */
import { printKernel } from './print.js'
import { factorParam, factorsOf, type MatmulKernel } from './product.js'

export function printMatmul(kernel: MatmulKernel): string {
  const { name, a, products, batch, m, n, k, epilogue, partials, reduced } = kernel
  const at = (tensor: string, axes: readonly string[]): string => `${tensor}[${axes.join(', ')}]`
  const left = at(a.tensor, factorParam(kernel, a).dims)
  const sums = products.map(({ b, accumulator }) => {
    const right = at(b.tensor, factorParam(kernel, b).dims)
    return `${at(accumulator, [...batch, m, n])} = sum over ${k} of ${left} * ${right}`
  })
  const before = factorsOf(kernel).flatMap(({ tensor, prologue }) =>
    prologue === undefined ? [] : [`with ${tensor} computed while it is loaded,\n${printKernel(prologue)}`],
  )
  const perGroup = partials === undefined ? '' : `and of each group of columns\n${printKernel(partials)}`
  if (reduced !== undefined) {
    const both = `groups of columns in its main loop and never stored,\n${printKernel(reduced.partials)}then\n${printKernel(reduced.rest)}`
    return `matmul ${name}: ${[...before, `${sums.join(',\n')}, reduced over ${both}`].join('')}`
  }
  return `matmul ${name}: ${[...before, `${sums.join(',\n')}, then\n${printKernel(epilogue)}`, perGroup].join('')}`
}
