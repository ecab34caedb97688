/**
 * Execution of the loops that a kernel is lowered to (src/loop), on one small size, beside the evaluation of its IR. A difference is an error of the
 * compiler, whatever the device: its place, walk and element are reported with the kernel's other cases.
 */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { evaluateKernel } from '../ir/evaluate.js'
import type { Kernel } from '../ir/kernel.js'
import type { Schedule } from '../lang/plan.js'
import type { loopPasses } from '../loop/pipeline.js'
import { casesOf, inputsOf, type KernelCase } from './cases.js'
import type { CheckResult } from './conformance.js'
import { reordered } from './tolerance.js'

/** Most elements of all tensors: the evaluation takes microseconds per element and lane. */
const most = 800

const elementsOf = ({ entry, dims }: KernelCase): number =>
  entry.buffers.reduce((sum, { dims: of }) => sum + of.reduce((all, dim) => all * (dims[dim] ?? 1), 1), 0)

/** The largest case that an evaluation of loops takes, with small integers; undefined if all are larger. */
export function smallCase(entry: KernelEntry): KernelCase | undefined {
  const cases = casesOf(entry, most).filter(({ draw, shift }) => draw === 'integer' && shift === 0)
  return cases
    .filter((each) => elementsOf(each) <= most)
    .toSorted((a, b) => elementsOf(a) - elementsOf(b))
    .at(-1)
}

/**
 * The first difference between a kernel's loops and its IR, or the error of the loops; undefined if there is none, or no small case.
 * @param passes of the loops; the compiler's by default
 */
export async function loopFailure(
  kernel: Kernel,
  entry: KernelEntry,
  schedule?: Schedule,
  passes?: typeof loopPasses,
): Promise<CheckResult | undefined> {
  const [{ mapKernel }, { evaluateMapped }] = await Promise.all([
    import('../schedule/map.js'),
    import('../loop/evaluate_mapped.js'),
  ])
  const test = smallCase(entry)
  if (test === undefined) return undefined
  const tensors = inputsOf(test)
  const { dims, attrs } = test
  const mapped = mapKernel({ kernel, types: entry.types, dims: entry.fixedDims }, undefined, schedule)
  // A grouped matmul is a main loop of the device library.
  if (mapped.grouped !== undefined) return undefined
  const wanted = evaluateKernel(kernel, tensors, dims, attrs)
  const failed = (detail: string): CheckResult => ({ name: `${test.name}, by its loops`, passed: false, detail })
  try {
    for (const { walk, outputs } of evaluateMapped(mapped, { tensors, dims, attrs }, passes))
      for (const [name, { data }] of Object.entries(wanted)) {
        const found = outputs[name]?.data ?? []
        const at = data.findIndex((value, i) => !isNear(found[i] ?? Number.NaN, value))
        if (at >= 0) return failed(`${name}[${at}]: expected ${data[at]}, got ${found[at]} from the loops of walk ${walk}`)
      }
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error))
  }
  return undefined
}

const isNear = (got: number, want: number): boolean =>
  Object.is(got, want) || Math.abs(got - want) <= reordered * (1 + Math.abs(want))
