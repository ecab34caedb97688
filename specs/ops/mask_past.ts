/**
 * Hides scores of places that a token does not attend: those after its own, and with a window also those further back than it. The hidden value is
 * lower than any score and may round to minus infinity; softmax then gives exact zeros, because every token attends itself.
 */
import { int, minimum, op, tensor } from 'heddle'

const floats = ['f32', 'f16', 'bf16'] as const

/** Masks for one token per row, at a place of its own. */
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

/** Window of `size` places, including its own. */
export const maskPlacesWindow = op('mask_places_window', {
  ...own,
  attrs: { size: int(4) },
  body:
    ({ x, places }, { size }) =>
    (r, h, u) => ({ y: u <= places(r) && u > places(r) - size ? x(r, h, u) : -1e30 }),
})

/** Masks for a run of tokens per sequence: token `s` of sequence `b` is at place `first(b) + s`. */
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

/**
 * Masks for one token per row, where rows of a sequence share the cached prompt, at places below `cached(r)`. Words chosen since by rows are at
 * places `first` to `slot`, the same ones in every row. Places in between belong to longer prompts.
 */
const beams = {
  dims: ['r', 'h', 'u', 'o'],
  types: { T: floats },
  inputs: { x: tensor('T', 'r h u'), cached: tensor('i32', 'r'), first: tensor('i32', 'o'), slot: tensor('i32', 'o') },
  outputs: { y: tensor('T', 'r h u') },
  facts: { cached: { from: 0, to: 'u' }, first: { index: 'u' }, slot: { index: 'u' }, o: 1 },
} as const

export const maskBeams = op('mask_beams', {
  ...beams,
  body:
    ({ x, cached, first, slot }) =>
    (r, h, u) => {
      const own = u >= minimum(first(0), slot(0))
      return { y: u <= slot(0) && (own || u < cached(r)) ? x(r, h, u) : -1e30 }
    },
})

/** A row's own places continue those of its cached prompt. */
export const maskBeamsWindow = op('mask_beams_window', {
  ...beams,
  attrs: { size: int(4) },
  body:
    ({ x, cached, first, slot }, { size }) =>
    (r, h, u) => {
      const from = minimum(first(0), slot(0))
      const at = u < from ? u : u - from + cached(r)
      const near = at > slot(0) - from + cached(r) - size
      return { y: u <= slot(0) && (u >= from || u < cached(r)) && near ? x(r, h, u) : -1e30 }
    },
})
