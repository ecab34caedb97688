/** Ops that depend on the progress of decoding: `step`, one integer on the device, is the place of the token being decoded. */
import { int, minimum, op, tensor } from 'heddle'

/**
 * Adds the embedding of the place being decoded: row `first + step` of the table to every row. Places beyond the table, which a run of steps may
 * reach after the last token, have its last row.
 */
export const addStepPosition = op('add_step_position', {
  dims: ['m', 'n', 'p', 'o'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), table: tensor('T', 'p n'), step: tensor('i32', 'o') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { first: int(0) },
  facts: { step: { from: 0, to: 'p' }, o: 1 },
  body:
    ({ x, table, step }, { first, p }) =>
    (m, c) => ({ y: x(m, c) + table(minimum(first + step(0), p - 1), c) }),
})

/** Hides the scores of places that are not decoded yet. The hidden value may round to minus infinity; softmax gives exact zeros. */
export const maskSteps = op('mask_steps', {
  dims: ['r', 'h', 's', 'o'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'r h s'), step: tensor('i32', 'o') },
  outputs: { y: tensor('T', 'r h s') },
  facts: { step: { index: 's' }, o: 1 },
  body:
    ({ x, step }) =>
    (r, h, s) => ({ y: s <= step(0) ? x(r, h, s) : -1e30 }),
})

export const nextStep = op('next_step', {
  dims: ['o'],
  inputs: { step: tensor('i32', 'o') },
  outputs: { y: tensor('i32', 'o') },
  facts: { step: { from: -1000, to: 1000 } },
  body:
    ({ step }) =>
    (o) => ({ y: step(o) + 1 }),
})

/** The place of each row's next token: one further, except for rows that had ended before this step. */
export const nextPlaces = op('next_places', {
  dims: ['r'],
  inputs: { places: tensor('i32', 'r'), finished: tensor('i32', 'r') },
  outputs: { y: tensor('i32', 'r') },
  facts: { places: { from: 0, to: 1000 }, finished: { values: [0, 1] } },
  body:
    ({ places, finished }) =>
    (r) => ({ y: finished(r) === 0 ? places(r) + 1 : places(r) }),
})

/** Places of beams, which change rows: all advance by one until the last step. */
export const nextBeamPlaces = op('next_beam_places', {
  dims: ['r', 'o'],
  inputs: { places: tensor('i32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('i32', 'r') },
  attrs: { maxSteps: int(3) },
  facts: { places: { from: 0, to: 1000 }, step: { from: 0, to: 5 }, o: 1 },
  body:
    ({ places, step }, { maxSteps }) =>
    (r) => ({ y: step(0) + 1 < maxSteps ? places(r) + 1 : places(r) }),
})
