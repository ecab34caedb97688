/** Template kernels as text, for people: what the main loop computes, and the expressions in its slots. */
import { printExpr, printKernel } from './print.js'
import { type AttentionKernel, type MatmulKernel, type RowAccess, storesAsIs, type TemplateKernel } from './template.js'

export const printTemplate = (kernel: TemplateKernel): string =>
  kernel.kind === 'matmul' ? printMatmul(kernel) : printAttention(kernel)

function printMatmul({ name, a, b, m, n, k, accumulator, epilogue }: MatmulKernel): string {
  const product = `${accumulator}[${m}, ${n}] = sum over ${k} of ${a}[${m}, ${k}] * ${b}[${n}, ${k}]`
  return `matmul ${name}: ${product}, then\n${printKernel(epilogue)}`
}

function printAttention(kernel: AttentionKernel): string {
  const row = ({ tensor, indices }: RowAccess): string =>
    `${tensor}[${[...indices.slice(0, -1).map(printExpr), '..'].join(', ')}]`
  return [
    `attention ${kernel.name}: out = softmax over j of score(query . key), times value; b sequence, h head, i query, j key`,
    `  query  ${row(kernel.query)}`,
    `  key    ${row(kernel.key)} for j < ${printExpr(kernel.keyCount)}`,
    `  value  ${row(kernel.value)}`,
    `  score  ${printExpr(kernel.score)}`,
    ...(storesAsIs(kernel) ? [] : [`  stored ${printExpr(kernel.stored)}`]),
    `  out    ${row(kernel.out)} for i < ${printExpr(kernel.queryCount)}, zero for i < ${printExpr(kernel.ownedCount)}`,
    '',
  ].join('\n')
}
