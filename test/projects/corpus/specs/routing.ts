/** Gates of mixtures of experts, and sampling from logits. */
import { argmax, exp, idiv, log, max, op, row, sum, tensor, topK } from 'heddle'

const types = { T: ['f32', 'f16', 'bf16'] } as const

/** A group's score: the sum of its two best experts. */
export const groupScore = op('group_score', {
  dims: ['t', 'g', 'e'],
  types,
  inputs: { logits: tensor('T', 't g e'), bias: tensor('f32', 'g e') },
  outputs: { score: tensor('f32', 't g') },
  facts: { e: { atLeast: 2 } },
  body:
    ({ logits, bias }, { e }) =>
    (t, g) => {
      const two = topK(2, e, (j) => 1 / (1 + exp(-logits(t, g, j))) + bias(g, j))
      return { score: two.values(0) + two.values(1) }
    },
})

/** The best four experts of the two best groups, with weights that sum to a factor. */
export const groupGate = op('group_gate', {
  dims: ['t', 'g', 'e', 'k'],
  types,
  inputs: { logits: tensor('T', 't g e'), bias: tensor('f32', 'g e'), score: tensor('f32', 't g') },
  outputs: { weight: tensor('T', 't k'), expert: tensor('i32', 't k') },
  attrs: { factor: 2.5 },
  facts: { k: 4, g: 4, e: { atLeast: 2 } },
  body:
    ({ logits, bias, score }, { g, e, k, factor }) =>
    (t) => {
      const n = g * e
      const groups = topK(2, g, (i) => score(t, i))
      const one = groups.indices(0)
      const two = groups.indices(1)
      const best = topK(4, n, (c) =>
        idiv(c, e) === one || idiv(c, e) === two
          ? 1 / (1 + exp(-logits(t, idiv(c, e), c % e))) + bias(idiv(c, e), c % e)
          : -Infinity,
      )
      const p = row(k, (i) => 1 / (1 + exp(-logits(t, idiv(best.indices(i), e), best.indices(i) % e))))
      const total = sum(k, (i) => p(i))
      return { weight: row(k, (i) => (p(i) / total) * factor), expert: row(k, (i) => best.indices(i)) }
    },
})

/** The gate of a mixture of two of eight: a softmax over the two best alone. */
export const gateOfTwo = op('gate_of_two', {
  dims: ['t', 'e', 'k'],
  types,
  inputs: { logits: tensor('T', 't e') },
  outputs: { weight: tensor('T', 't k'), expert: tensor('i32', 't k') },
  facts: { k: 2, e: { atLeast: 2 } },
  body:
    ({ logits }, { e, k }) =>
    (t) => {
      const best = topK(2, e, (c) => logits(t, c))
      const total = sum(k, (i) => exp(best.values(i) - best.values(0)))
      return {
        weight: row(k, (i) => exp(best.values(i) - best.values(0)) / total),
        expert: row(k, (i) => best.indices(i)),
      }
    },
})

/** The loss that keeps logits of a gate small. */
export const gateLoss = op('gate_loss', {
  dims: ['t', 'e'],
  types,
  inputs: { logits: tensor('T', 't e') },
  outputs: { loss: tensor('f32', 't') },
  body:
    ({ logits }, { e }) =>
    (t) => {
      const v = row(e, (c) => logits(t, c))
      const top = max(e, v)
      const z = top + log(sum(e, (c) => exp(v(c) - top)))
      return { loss: z * z }
    },
})

/** Load of each expert in a batch. */
export const expertLoad = op('expert_load', {
  dims: ['t', 'k', 'e'],
  inputs: { expert: tensor('i32', 't k') },
  facts: { expert: { index: 'e' } },
  outputs: { count: tensor('i32', 'e') },
  body:
    ({ expert }, { t, k }) =>
    (e) => ({ count: sum(t, (i) => sum(k, (j) => (expert(i, j) === e ? 1 : 0))) }),
})

/** The likeliest word, its probability, and that of a word a draft proposed. */
export const checkDraft = op('check_draft', {
  dims: ['b', 'v'],
  types,
  inputs: { logits: tensor('T', 'b v'), draft: tensor('i32', 'b') },
  outputs: { best: tensor('i32', 'b'), share: tensor('f32', 'b'), proposed: tensor('f32', 'b') },
  attrs: { temperature: 0.7 },
  facts: { draft: { index: 'v' } },
  body:
    ({ logits, draft }, { v, temperature }) =>
    (b) => {
      const x = row(v, (c) => logits(b, c) / temperature)
      const top = max(v, x)
      const total = sum(v, (c) => exp(x(c) - top))
      return {
        best: argmax(v, (c) => x(c)),
        share: 1 / total,
        proposed: exp(logits(b, draft(b)) / temperature - top) / total,
      }
    },
})
