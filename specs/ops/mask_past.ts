/**
 * Hides scores of places that a token does not attend: those behind its own, and where there is a window those further back than it. The
 * hidden value is lower than any score and may round to minus infinity; softmax then gives exact zeros, because every token attends itself.
 */
import { int, op, tensor } from 'heddle'

const floats = ['f32', 'f16', 'bf16'] as const

/** Of one token for each row, at a place of its own. */
const own = {
  dims: ['r', 'h', 'u'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r h u'), places: tensor('i32', 'r') },
  outputs: { y: tensor('T', 'r h u') },
  facts: { places: { index: 'u' } },
} as const

export const maskPlaces = op('mask_places', {
  ...own,
  body:
    ({ x, places }) =>
    (r, h, u) => ({ y: u <= places(r) ? x(r, h, u) : -1e30 }),
})

/** `size` places, its own included. */
export const maskPlacesWindow = op('mask_places_window', {
  ...own,
  attrs: { size: int(4) },
  body:
    ({ x, places }, { size }) =>
    (r, h, u) => ({ y: u <= places(r) && u > places(r) - size ? x(r, h, u) : -1e30 }),
})

/** Of a run of tokens for each sequence: token `s` of sequence `b` is at place `first(b) + s`. */
const run = {
  dims: ['b', 'h', 's', 'u'],
  types: { T: floats },
  inputs: { x: tensor('T', 'b h s u'), first: tensor('i32', 'b') },
  outputs: { y: tensor('T', 'b h s u') },
  facts: { first: { index: 'u' } },
} as const

export const maskFuture = op('mask_future', {
  ...run,
  body:
    ({ x, first }) =>
    (b, h, s, u) => ({ y: u <= first(b) + s ? x(b, h, s, u) : -1e30 }),
})

export const maskFutureWindow = op('mask_future_window', {
  ...run,
  attrs: { size: int(4) },
  body:
    ({ x, first }, { size }) =>
    (b, h, s, u) => ({ y: u <= first(b) + s && u > first(b) + s - size ? x(b, h, s, u) : -1e30 }),
})
