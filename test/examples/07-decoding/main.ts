import assert from 'node:assert/strict'
import { openDevice, tensor, toNumbers, zeros } from 'heddle/runtime'
import { compare, tolerance } from 'heddle/testing'
import { step } from './specs/index.js'

const [b, h, t, d] = [2, 2, 12, 16]
const drawn = (seed: number) => Array.from({ length: b * h * d }, (_, i) => Math.fround(Math.sin(seed * 7.3 + i * 1.9)))
/** One query, key and value per step, sequence and head. */
const token = (place: number) => ({ query: drawn(3 * place), key: drawn(3 * place + 1), value: drawn(3 * place + 2) })

/** Attention of step `place` to all steps up to it, from the tokens themselves. */
const attended = (place: number): number[] =>
  Array.from({ length: b * h }, (_, head) => {
    const of = (values: number[]) => values.slice(head * d, (head + 1) * d)
    const past = Array.from({ length: place + 1 }, (_, i) => token(i))
    const query = of(token(place).query)
    const e = past.map(({ key }) => Math.exp(0.25 * of(key).reduce((sum, each, c) => sum + each * (query[c] ?? 0), 0)))
    const total = e.reduce((sum, each) => sum + each)
    return query.map((_, c) => past.reduce((sum, { value }, i) => sum + ((e[i] ?? 0) / total) * (of(value)[c] ?? 0), 0))
  }).flat()

// #region run
const device = await openDevice('simt')
for (const plan of ['unfused', 'one-kernel']) {
  const empty = { value: zeros('f32', [b, h, t, d]) }
  const model = await device.load(step, {
    plan,
    weights: {},
    dtype: 'f32',
    states: { keys: { ...empty, next: 'keys' }, values: { ...empty, next: 'values' } },
  })
  for (let place = 0; place < t; place++) {
    const { query, key, value } = token(place)
    const shape = [b, h, d]
    const { context } = await model.run({
      query: tensor('f32', shape, query),
      key: tensor('f32', shape, key),
      value: tensor('f32', shape, value),
      places: tensor('i32', [b], [place, place]),
    })
    const found = compare(toNumbers(context), attended(place), tolerance({ dtype: 'f32', class: 'attention', length: d }))
    assert.ok(found.passed, `step ${place}: ${found.summary}`)
  }
  const keys = await model.states.keys.read()
  assert.equal(toNumbers(keys)[(t - 1) * d], token(t - 1).key[0])
  console.log(`${plan}: ${t} steps`)
}
await device.close()
// #endregion
