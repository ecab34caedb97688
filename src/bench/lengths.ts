/** Lengths of the sequences in a measured batch. */
import { readFileSync } from 'node:fs'
import { usageError } from '../errors.js'
import { integer, random } from '../verify/random.js'

/** Lengths for a shape: `batch` integers in [1, seq]. */
export type Lengths = (batch: number, seq: number) => readonly number[]

const full: Lengths = (batch, seq) => Array.from({ length: batch }, () => seq)

/** Uniform in 1..seq, so half of `seq` on average; equal for every plan and run. */
const half: Lengths = (batch, seq) => {
  const next = random(`lengths ${batch}x${seq}`)
  return Array.from({ length: batch }, () => integer(next, 1, seq))
}

/**
 * `full`, `half`, or a file of whitespace-separated lengths that are repeated over the batch and cut at `seq`.
 * @throws usage `bench.lengths` for a file that cannot be read or contains anything else
 */
export function lengthsOf(nameOrFile: string): Lengths {
  if (nameOrFile === 'full') return full
  if (nameOrFile === 'half') return half
  let text: string
  try {
    text = readFileSync(nameOrFile, 'utf8')
  } catch (cause) {
    throw usageError('bench.lengths', `cannot read lengths from ${nameOrFile}`, { hint: 'give full, half or a file', cause })
  }
  const values = text.split(/\s+/).flatMap((word) => (word === '' ? [] : [Number(word)]))
  const wrong = values.find((value) => !Number.isSafeInteger(value) || value < 1)
  if (values.length === 0 || wrong !== undefined) {
    const what = wrong === undefined ? 'contains no lengths' : `contains ${wrong}, expected positive integers`
    throw usageError('bench.lengths', `${nameOrFile} ${what}`)
  }
  return (batch, seq) => Array.from({ length: batch }, (_, i) => Math.min(values[i % values.length] ?? seq, seq))
}
