/** First step of the loop IR: lowers the steps of a row. Constructs that run once per row are single nodes; a pass is a loop (lower_pass.ts). */
import type { RowStmt } from '../schedule/normalise/normal.js'
import type { Step } from '../schedule/normalise/passes.js'
import { chunkAccesses } from './access.js'
import type { Loop } from './ir.js'
import { lowerPass } from './lower_pass.js'
import { newOffset, type State } from './state.js'

/** Lowers steps, in order. */
export const lowerSteps = (steps: readonly Step[], state: State): readonly Loop[] =>
  steps.flatMap((step) => {
    if (step.kind !== 'pass') return lowerStep(step, state)
    const offsets = chunkAccesses(step.pass).flatMap((access) => newOffset(access, state))
    return [...offsets, ...lowerPass(step.pass, state)]
  })

function lowerStep(step: RowStmt, { shared }: State): readonly Loop[] {
  switch (step.kind) {
    case 'let':
      return [{ kind: 'let', name: step.name, type: step.type, value: step.value }]
    case 'store':
      return [{ ...step, by: 'first lane' }]
    case 'meet':
      return [{ kind: 'barrier', publishes: [] }]
    case 'foldState':
      for (const { is, before, after, result } of step.fields)
        if (is === 'row') for (const row of [before, after, result]) shared.add(row)
      return [{ kind: 'call', stmt: step }]
    case 'team':
      return [{ kind: 'call', stmt: step }]
  }
}
