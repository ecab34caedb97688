/**
 * Numbers that scale what is stored as int8 (facts `fills`), chosen so that results span what it holds: only then is a step of the result
 * a tight bound. The scale lies half between two integers, so that products of integers are ties, and a little above what would fit, so
 * that some results lie beyond.
 */
import type { HostTensor } from '../ir/evaluate.js'
import { casesOf, inputsOf, type KernelCase } from './cases.js'
import { ruleOf } from './rules.js'

type Tensors = Readonly<Record<string, HostTensor>>
type Run = (test: KernelCase, inputs: Tensors) => Tensors

/** The largest int8, and where the largest results are brought to. */
const [largest, aim] = [127, 160]
/** Elements of the buffers of the case that is measured on, and tries at finding a scale that shows how large its results are. */
const [sample, tries] = [4096, 12]

const known = new Map<string, number>()

/** The case with these attributes chosen. @param run what the kernel should give */
export function filling(test: KernelCase, run: Run): KernelCase {
  const { entry, draw } = test
  const { fills } = ruleOf(entry)
  // What is asked for stays as it is.
  const names = Object.keys(fills).filter((name) => test.attrs[name] === entry.attrs.find((attr) => attr.name === name)?.default)
  if (names.length === 0) return test
  const attrs = { ...test.attrs }
  for (const name of names) {
    const key = `${entry.digest} ${entry.key} ${draw} ${name}`
    const scale = known.get(key) ?? scaleOf(sampleOf(test), name, fills[name] ?? '', run)
    known.set(key, scale)
    attrs[name] = scale
  }
  return { ...test, attrs }
}

/** The largest small case of the same draw: its results tell what those of others are like. */
const sampleOf = (test: KernelCase): KernelCase =>
  casesOf(test.entry, sample).findLast(({ draw, shift }) => draw === test.draw && shift === 0) ?? test

function scaleOf(test: KernelCase, attr: string, output: string, run: Run): number {
  const inputs = inputsOf(test)
  let scale = 1
  for (let i = 0; i < tries; i++) {
    const data = run({ ...test, attrs: { ...test.attrs, [attr]: scale } }, inputs)[output]?.data ?? []
    let peak = 0
    for (let at = 0; at < data.length; at++) if (Math.abs(data[at] ?? 0) > peak) peak = Math.abs(data[at] ?? 0)
    if (peak >= largest) scale /= 16
    else if (peak < largest / 4) scale *= peak === 0 ? 64 : largest / 2 / peak
    else return stepped((aim / peak) * scale)
  }
  return 1
}

/** The scale that is half between two integers, or of small ones a power of two. */
const stepped = (scale: number): number => (scale >= 1 ? Math.floor(scale) + 0.5 : 2 ** Math.floor(Math.log2(scale)))
