/** Tiles of a tuning file for a template kernel, each with the matmuls it is for. Counterpart of tuning.ts, which handles row programs. */
import type { DType } from '../../ir/dtype.js'
import { resolveDType } from '../../ir/instance.js'
import type { TemplateKernel } from '../../ir/template.js'
import { isTile, operandOf, type TileChoice, tileProblem } from '../tiles.js'
import { choiceName } from './choice.js'
import { dtypeName, reasonOf, refusal, sizeName, type Tuning } from './tuning.js'

export interface TunedTile {
  readonly choice: TileChoice
  readonly length: number
  readonly depth: number | undefined
  readonly fromRows: number
  /** Undefined: any number from `fromRows` on. */
  readonly toRows: number | undefined
  readonly architecture: string
  readonly reason: string
}

/** Type of the operands of a template kernel. */
export function operandType(kernel: TemplateKernel, types: Readonly<Record<string, DType>>): DType {
  const tensor = kernel.tensors.find(({ name }) => name === operandOf(kernel))
  if (tensor === undefined) throw new Error(`internal: ${kernel.name} has no tensor ${operandOf(kernel)}`)
  return resolveDType(tensor.dtype, types)
}

/** @throws usage `tuning.choice` for a tile the kernel cannot have */
export function tunedTiles(
  kernel: TemplateKernel,
  types: Readonly<Record<string, DType>>,
  tuning: Tuning | undefined,
): TunedTile[] {
  if (tuning === undefined) return []
  return tuning.entries.flatMap((entry, at) => {
    if (entry.kernel !== kernel.name || entry.dtype !== dtypeName({ types })) return []
    const { length, depth, architecture } = entry
    return entry.variants.map(({ choice, fromRows, toRows, measured }) => {
      const problem = isTile(choice)
        ? tileProblem(choice, kernel, operandType(kernel, types), entry)
        : `the kernel has tiles, such as those \`heddle tune\` measures for ${sizeName(entry)}`
      if (!isTile(choice) || problem !== undefined)
        throw refusal('tuning.choice', tuning, at, `${choiceName(choice)}: ${problem ?? ''}`, 'run `heddle tune` again')
      return { choice, length, depth, fromRows, toRows, architecture, reason: reasonOf(entry, measured) }
    })
  })
}
