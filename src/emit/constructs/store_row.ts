/**
 * Stores of a pass as CUDA source: values stored in chunks are gathered first, the others are written one by one. A store with a condition is made
 * only where it holds, and a value that might fault is not computed elsewhere.
 */
import type { LoopStore } from '../../schedule/normal.js'
import { expressionText, offsetText, type Scope, tensorOf } from '../expression.js'
import { faults } from '../faults.js'
import { widthText } from '../loads.js'
import { scalarText } from '../names.js'
import { chunkOffset } from '../offsets.js'
import { beforeStore } from '../stored.js'
import type { PassText } from './construct.js'

export const loopStoreText: PassText<LoopStore> = {
  write(s, { context, pass, first, guarded }) {
    const { names } = context
    const { run } = s
    if (run === undefined) {
      const at = (): string => offsetText(s.tensor, s.indices, context)
      return {
        anyElement: () => [
          `${whenText(s, context)}heddle::write(${names.tensor(s.tensor)}, ${at()}, ${storedText(s, context)});`,
        ],
      }
    }
    const values = names.fresh(`${s.tensor}_${pass.loop.index}`)
    const careful = s.when !== undefined && faults(s.value)
    return {
      // Elements that do not exist are not computed if that might fault.
      openChunk: () => [`${scalarText[s.value.type]} ${values}[VEC]${guarded || careful ? ' = {}' : ''};`],
      anyElement: () => [`${careful ? whenText(s, context) : ''}${values}[i] = ${storedText(s, context)};`],
      leaveChunk: () => {
        const access = { tensor: s.tensor, indices: s.indices, run, index: pass.loop.index }
        const offset = chunkOffset(access, first, context.starts, context)
        const call = `heddle::store_chunk<${widthText(access, context)}>`
        return [`${whenText(s, context)}${call}(${names.tensor(s.tensor)}, ${offset}, valid, ${values});`]
      },
    }
  },
}

/** Guard of the statements that a store executes only where its condition holds. */
const whenText = ({ when }: Pick<LoopStore, 'when'>, context: Scope): string =>
  when === undefined ? '' : `if (${expressionText(when, context)}) `

const storedText = ({ tensor, value }: Pick<LoopStore, 'tensor' | 'value'>, context: Scope): string =>
  expressionText(beforeStore(value, tensorOf(tensor, context).dtype), context)
