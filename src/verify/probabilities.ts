/** The correct probabilities of drawn tokens, computed by sorting: the reference for draws on a device. */

/** Sampling parameters of a row. */
export interface Request {
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
}

export const plain: Request = { temperature: 1, topK: 0, topP: 1, minP: 0 }

function softmax(logits: readonly number[]): number[] {
  const peak = Math.max(...logits)
  const weights = logits.map((x) => Math.exp(x - peak))
  const total = weights.reduce((a, b) => a + b, 0)
  return weights.map((weight) => weight / total)
}

const only = (logits: readonly number[], keep: (i: number) => boolean): number[] =>
  logits.map((x, i) => (keep(i) ? x : Number.NEGATIVE_INFINITY))

/** The probability of each token: logits are narrowed in the order temperature, top-k, top-p, min-p, as HF transformers does. */
export function probabilities(logits: readonly number[], { temperature, topK, topP, minP }: Request): number[] {
  let scores = logits.map((x) => x / temperature)
  if (topK > 0) {
    const kth = [...scores].sort((a, b) => b - a)[Math.min(topK, scores.length) - 1] ?? 0
    const before = scores
    scores = only(before, (i) => (before[i] ?? 0) >= kth)
  }
  if (topP < 1) {
    const before = scores
    const mass = softmax(before)
    // Tokens are removed from the least likely on until their mass would exceed 1 - topP. The last always stays.
    const ascending = mass.map((_, i) => i).sort((a, b) => (mass[a] ?? 0) - (mass[b] ?? 0))
    const gone = new Set<number>()
    let sum = 0
    for (const i of ascending.slice(0, -1)) {
      sum += mass[i] ?? 0
      if (sum <= 1 - topP) gone.add(i)
    }
    scores = only(before, (i) => !gone.has(i))
  }
  if (minP > 0) {
    const before = scores
    const mass = softmax(before)
    const most = Math.max(...mass)
    scores = only(before, (i) => (mass[i] ?? 0) >= minP * most)
  }
  return softmax(scores)
}
