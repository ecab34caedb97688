/** Random ops that rank inside of elements: the largest of each group of a row. */
import { call, type Expr, element, load, named, reduce, type Stmt, whole } from './describe.js'
import type { OpDraft } from './draft.js'
import { type Drawn, output, rowsOf } from './families.js'
import { ranking, rowOver } from './ranked.js'

/** An op that splits a row into groups and ranks the elements of each: a score per group, and values computed from it. */
export function grouped(draft: OpDraft): Drawn {
  const { random } = draft
  const [t, g, e] = [draft.dim('t', 'few'), draft.dim('g', 'few'), draft.dim('n', 'few')]
  draft.input([t, g, e])
  if (random.chance(0.5)) draft.input([g, e])
  const [i, j, c] = [named(`i_${t}`), named('j'), named('c')]
  const [x, bias] = draft.inputs
  const own = load('f32', x?.name ?? '', i, j, c)
  const value = bias === undefined ? own : call('f32', 'maximum', own, load('f32', bias.name, j, c))
  const [best, score] = [draft.fresh('k'), draft.fresh('v')]
  const count = random.between(1, 5)
  const rank: Stmt = { kind: 'topK', name: best, k: count, loop: { length: e, index: 'c', value } }
  const nth = (which: 'values' | 'indices'): Expr => ranking(best, which, whole(random.below(count)))
  const isPlace = random.chance(0.3)
  const made = isPlace
    ? nth('indices')
    : random.chance(0.5)
      ? nth('values')
      : call('f32', 'maximum', nth('values'), nth('values'))
  draft.body.push({ kind: 'row', name: score, loop: { length: g, index: 'j', value: made }, inner: [rank] })
  const read = element(isPlace ? 'i32' : 'f32', score, named('c'))
  const outputs = [output(draft, [t, g], rowOver(g, 'c', read), isPlace ? 'i32' : undefined)]
  if (isPlace || random.chance(0.4)) return { rows: rowsOf([t]), outputs }
  const value2 = random.chance(0.5) ? reduce('max', g, 'c', read) : call('f32', 'toFloat', reduce('argmax', g, 'c', read))
  return { rows: rowsOf([t]), outputs: [...outputs, output(draft, [t], { kind: 'number', value: value2 }, 'f32')] }
}
