/**
 * Scales of int8 results (facts `fills`), chosen so that results span the range of int8: only then is one step of the result
 * a tight bound. A scale lies halfway between two integers, so that products of integers are rounding ties, and slightly above the fitting
 * one, so that some results saturate.
 */
import type { HostTensor } from '../ir/evaluate.js'
import { casesOf, inputsOf, type KernelCase } from './cases.js'
import { ruleOf } from './rules.js'

type Tensors = Readonly<Record<string, HostTensor>>
type Run = (test: KernelCase, inputs: Tensors) => Tensors

/** The largest int8, and the target of the largest results. */
const [largest, aim] = [127, 160]
/** Elements of the buffers of the measured case, and attempts at finding a scale at which its results are measurable. */
const [sample, tries] = [4096, 12]

const known = new Map<string, number>()

/** The case with its scales chosen. @param run computes the expected results of the kernel */
export function filling(test: KernelCase, run: Run): KernelCase {
  const { entry, draw } = test
  const { fills } = ruleOf(entry)
  // Explicitly given attributes stay as they are.
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

/** The largest small case of the same draw: its results are representative of the others. */
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

/** A scale that puts values halfway between integers (rounding ties); a power of two when small. */
const stepped = (scale: number): number => (scale >= 1 ? Math.floor(scale) + 0.5 : 2 ** Math.floor(Math.log2(scale)))
