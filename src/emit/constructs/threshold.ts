/** A threshold as CUDA source: a call that the team of a row makes together, with a function from an index to its element. */
import type { Threshold } from '../../schedule/normalise/normal.js'
import { contains, rewriteDown, sameExpr, usesIndex } from '../../schedule/normalise/rewrite.js'
import { expressionText } from '../print/expression.js'
import type { RowText } from './construct.js'

export const thresholdText: RowText<Threshold> = {
  write: ({ name, target, loop, key, value }, scope) => {
    const [length, wanted, keyText] = [loop.length, target, key].map((e) => expressionText(e, scope))
    const place = scope.names.value(loop.index)
    const known = scope.names.fresh('key')
    // A weight usually depends on the key alone. The key is passed with the index, so that it is not read again.
    const ofKey = rewriteDown(value, (e) => (sameExpr(e, key) ? { kind: 'local', type: e.type, name: known } : undefined))
    const names = { ...scope.names, value: (name: string): string => (name === known ? known : scope.names.value(name)) }
    const weight = expressionText(ofKey, { ...scope, names })
    const keyOf = `[&](int ${place}) { return ${keyText}; }`
    const places = usesIndex(ofKey, loop.index) ? ` ${place}` : ''
    const keys = contains(ofKey, (e) => e.kind === 'local' && e.name === known) ? ` ${known}` : ''
    const weightOf = `[&](int${places}, float${keys}) { return ${weight}; }`
    return `const float ${scope.names.value(name)} = heddle::threshold(team, ${length}, ${wanted}, ${keyOf}, ${weightOf});`
  },
}
