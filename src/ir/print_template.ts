/** Printer of template kernels in readable form: the computation of the main loop, and the expressions in its slots. */
import { printExpr } from './print.js'
import { printMatmul } from './print_product.js'
import {
  type AttentionKernel,
  type CacheAccess,
  type DecodeAttentionKernel,
  isNormalised,
  type RowAccess,
  storesAsIs,
  type TemplateKernel,
} from './template.js'

export function printTemplate(kernel: TemplateKernel): string {
  switch (kernel.kind) {
    case 'matmul':
      return printMatmul(kernel)
    case 'attention':
      return printAttention(kernel)
    case 'decode attention':
      return printDecodeAttention(kernel)
  }
}

const row = ({ tensor, indices }: RowAccess): string => `${tensor}[${[...indices.slice(0, -1).map(printExpr), '..'].join(', ')}]`

/** A row of a cache, with the scale of its elements. */
const cached = ({ scale, ...access }: CacheAccess): string =>
  scale === undefined ? row(access) : `${row(access)} * ${printExpr(scale)}`

/** Values of rows that are stored beside the result. */
const perRow = ({ perRow: values = [] }: AttentionKernel | DecodeAttentionKernel): readonly string[] =>
  values.map(({ tensor, indices, value }) => `  row    ${tensor}[${indices.map(printExpr).join(', ')}] = ${printExpr(value)}`)

function printAttention(kernel: AttentionKernel): string {
  return [
    `attention ${kernel.name}: out = softmax over j of score(query . key), times value; b sequence, h head, i query, j key`,
    `  query  ${row(kernel.query)}`,
    `  key    ${row(kernel.key)} for ${printExpr(kernel.range.lower)} <= j < ${printExpr(kernel.range.upper)}`,
    `  value  ${row(kernel.value)}`,
    `  score  ${printExpr(kernel.score)}`,
    ...(isNormalised(kernel) ? [] : [`  over   ${printExpr(kernel.denominator)}`]),
    ...(storesAsIs(kernel) ? [] : [`  stored ${printExpr(kernel.stored)}`]),
    ...perRow(kernel),
    `  out    ${row(kernel.out)} for i < ${printExpr(kernel.queryCount)}, zero for i < ${printExpr(kernel.ownedCount)}`,
    '',
  ].join('\n')
}

function printDecodeAttention(kernel: DecodeAttentionKernel): string {
  const { fresh } = kernel
  const place =
    fresh === undefined
      ? []
      : [
          `  fresh  place ${printExpr(fresh.place)}`,
          `  key    ${printExpr(fresh.key)}, to ${row(fresh.keyCache)}`,
          `  value  ${printExpr(fresh.value)}, to ${row(fresh.valueCache)}`,
        ]
  return [
    `decode attention ${kernel.name}: out = softmax over j of score(query . key), times value; b sequence, h head, i query, j place, c element`,
    `  query  ${printExpr(kernel.query)} for i < ${printExpr(kernel.queries)}`,
    `  owner  ${printExpr(kernel.owner)}`,
    `  key    ${cached(kernel.key)} for ${printExpr(kernel.range.lower)} <= j < ${printExpr(kernel.range.upper)}`,
    `  value  ${cached(kernel.value)}`,
    ...place,
    `  score  ${printExpr(kernel.score)}`,
    ...(isNormalised(kernel) ? [] : [`  over   ${printExpr(kernel.denominator)}`]),
    ...(storesAsIs(kernel) ? [] : [`  stored ${printExpr(kernel.stored)}`]),
    ...perRow(kernel),
    `  out    ${row(kernel.out)}`,
    '',
  ].join('\n')
}
