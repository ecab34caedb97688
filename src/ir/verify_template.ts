/**
 * The verifier of template kernels: slots read only the names they may, and their row programs obey the rules of the IR. Runs when a
 * template is derived; a failure is a defect of the derivation, so the error is internal and names it.
 */

import { attentionReference } from './attention_reference.js'
import type { Expr } from './expr.js'
import { factorParam, factorsOf, type MatmulKernel } from './product.js'
import type { AttentionKernel, DecodeAttentionKernel, TemplateKernel } from './template.js'
import { verifyKernel } from './verify.js'
import { freeNames } from './walk.js'

type Fail = (problem: string) => never

/** @throws an internal error naming pass, kernel, slot and problem */
export function verifyTemplate(kernel: TemplateKernel, pass: string): void {
  const fail: Fail = (problem) => {
    throw new Error(`internal: after ${pass}: kernel ${kernel.name}: ${problem}`)
  }
  switch (kernel.kind) {
    case 'matmul':
      verifyMatmul(kernel, pass, fail)
      return
    case 'attention':
    case 'decode attention':
      verifySlots(kernel, fail)
      verifyKernel(attentionReference(kernel), pass)
  }
}

function verifyMatmul(kernel: MatmulKernel, pass: string, fail: Fail): void {
  const { epilogue, products, batch, m, n, k, reduced } = kernel
  verifyKernel(epilogue, pass)
  if (reduced !== undefined) for (const program of [reduced.partials, reduced.rest]) verifyKernel(program, pass)
  for (const { prologue } of factorsOf(kernel)) if (prologue !== undefined) verifyKernel(prologue, pass)
  const rows = [...batch, m]
  for (const { accumulator } of products) {
    const param = epilogue.tensors.find(({ name }) => name === accumulator)
    const axes = [...rows, n]
    // A result may be stored with its axes in any order.
    if (param?.dims.length !== axes.length || !axes.every((axis) => param.dims.includes(axis)))
      fail(`the product ${accumulator} is not over ${axes.join(', ')}`)
  }
  for (const [at, factor] of factorsOf(kernel).entries()) {
    const own = at === 0 ? m : n
    const { name, dims } = factorParam(kernel, factor)
    if (!dims.includes(own) || !dims.includes(k)) fail(`factor ${name} does not have the axes ${own} and ${k}`)
    const unknown = dims.find((dim) => dim !== own && dim !== k && !batch.includes(dim))
    if (unknown !== undefined) fail(`factor ${name} has an axis ${unknown}, which the matmul does not have`)
  }
  const declared = new Set(kernel.tensors.map(({ name }) => name))
  const missing = epilogue.tensors.find(
    ({ name }) => !declared.has(name) && !products.some(({ accumulator }) => accumulator === name),
  )
  if (missing !== undefined) fail(`the epilogue reads ${missing.name}, which the kernel does not have`)
}

/** Checks the names that each slot reads, besides those its own loops bind. */
function verifySlots(kernel: AttentionKernel | DecodeAttentionKernel, fail: Fail): void {
  const check = (slot: string, expr: Expr, allowed: string): void => {
    const unexpected = [...freeNames(expr)].find((name) => !allowed.split(' ').includes(name))
    if (unexpected !== undefined) fail(`${slot} reads ${unexpected}; it may read ${allowed}`)
  }
  const rows = (slot: string, { indices }: { readonly indices: readonly Expr[] }, allowed: string): void => {
    for (const place of indices) check(slot, place, allowed)
  }
  check('score', kernel.score, 'raw b h i j')
  check('range.lower', kernel.range.lower, 'b h i')
  check('range.upper', kernel.range.upper, 'b h i')
  check('denominator', kernel.denominator, 'total top b h i')
  check('stored', kernel.stored, 'result b h i c')
  rows('out', kernel.out, 'b h i')
  for (const { tensor, indices, value } of kernel.perRow ?? []) {
    rows(tensor, { indices }, 'b h i')
    check(tensor, value, 'total top b h i')
  }
  if (kernel.kind === 'attention') {
    for (const [slot, operand, position] of [
      ['query', kernel.query, 'i'],
      ['key', kernel.key, 'j'],
      ['value', kernel.value, 'j'],
    ] as const) {
      if (operand.element === undefined) rows(slot, operand, `b h ${position}`)
      else check(slot, operand.element, `b h ${position} c`)
    }
    check('queryCount', kernel.queryCount, 'b')
    check('ownedCount', kernel.ownedCount, 'b')
    return
  }
  check('query', kernel.query, 'b h i c')
  check('owner', kernel.owner, 'b j')
  rows('key', kernel.key, 'owner h j')
  rows('value', kernel.value, 'owner h j')
  for (const { scale } of [kernel.key, kernel.value]) if (scale !== undefined) check('scale', scale, 'owner h j')
  if (kernel.fresh === undefined) return
  check('fresh.place', kernel.fresh.place, 'b')
  check('fresh.key', kernel.fresh.key, 'b h c')
  check('fresh.value', kernel.fresh.value, 'b h c')
}
